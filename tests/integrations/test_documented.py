"""Each configuration in the documents connects: read from the document, run by the official MCP client.

Addresses, files and the key's variable are replaced by the test's own; nothing else is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.api.conftest import template  # noqa: F401 - a fixture
from tests.mcp.clients import COMMAND, ask, refused
from tests.servers import key_for, must, people, served
from tests.test_docs import curls

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENTS = [DOCS / "mcp.md", *sorted((DOCS / "integrations").glob("*.md"))]
_BLOCK = re.compile(r"^```(json|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def servers(value: Any) -> list[dict[str, Any]]:
    """The MCP servers in a configuration, whatever stands around them."""
    if not isinstance(value, dict):
        return []
    if "url" in value or "command" in value:
        return [value]
    return [found for inner in value.values() for found in servers(inner)]


def documented() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for document in DOCUMENTS:
        for kind, block in _BLOCK.findall(document.read_text("utf-8")):
            value = json.loads(block) if kind == "json" else yaml.safe_load(block)
            for one in servers(value):
                how = "stdio" if "command" in one else "http"
                found.append((f"{document.stem}-{how}", one))
    return found


CONFIGURATIONS = documented()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, template):  # noqa: F811 - the fixture
    with served(tmp_path_factory.mktemp("integrations") / "data", template) as server:
        people(server)
        yield server


@pytest.fixture(scope="module")
def key(gateway) -> str:
    return key_for(gateway, "agent", "tom", "hermes")


def filled(value: Any, replaced: dict[str, str]) -> Any:
    """The configuration with the test's own address, files and key in it."""
    text = json.dumps(value)
    for old, new in replaced.items():
        text = text.replace(old, new)
    return json.loads(text)


@asynccontextmanager
async def connected(configuration: dict[str, Any]):
    if "command" in configuration:
        assert configuration["command"] == "memory-gateway"
        async with Client(StdioServerParameters(command=COMMAND, args=configuration["args"])) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=configuration["headers"], trust_env=False, timeout=60) as http,
        Client(streamable_http_client(configuration["url"], http_client=http)) as client,
    ):
        yield client


def test_every_framework_has_both_ways():
    names = [name for name, _ in CONFIGURATIONS]
    for document in DOCUMENTS:
        assert f"{document.stem}-http" in names
        assert f"{document.stem}-stdio" in names


@pytest.mark.parametrize(("name", "configuration"), CONFIGURATIONS, ids=[name for name, _ in CONFIGURATIONS])
def test_a_documented_configuration_connects_and_works(gateway, key, tmp_path, name, configuration):
    key_file = tmp_path / "agent.key"
    key_file.write_text(key, "ascii")
    replaced = {
        "http://127.0.0.1:8765": gateway.url,
        "${MEMORY_GATEWAY_KEY}": key,
        "/path/to/agent.key": str(key_file),
        "/path/to/hermes.key": str(key_file),
    }

    async def use():
        async with connected(filled(configuration, replaced)) as client:
            assert len((await client.list_tools()).tools) == 8
            made = await ask(client, "memory_upsert", content=f"Connected as {name} says.")
            found = await ask(client, "memory_search", query=f"Connected as {name}")
            assert made["id"] in {one["memory"]["id"] for one in found["results"]}
            assert "[not-found]" in await refused(client, "memory_delete", memory_id="mem_none", version=1)

    anyio.run(use)


def test_the_address_without_its_last_slash_works_too(gateway, key):
    """What people leave out first."""

    async def use():
        async with connected({"url": f"{gateway.url}/mcp", "headers": {"Authorization": f"Bearer {key}"}}) as client:
            assert len((await client.list_tools()).tools) == 8

    anyio.run(use)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_that_make_the_key(tmp_path, template):  # noqa: F811 - the fixture
    """As they stand in the document; the key they make opens the door."""
    commands = curls((DOCS / "mcp.md").read_text("utf-8"))
    assert len(commands) == 2
    with served(tmp_path / "data", template) as server:
        must(server, "POST", "/v1/users", json={"user_id": "tom"})
        given = {"KEY": server.key, "URL": server.url, "PATH": "/usr/bin:/bin:/usr/local/bin", "NO_PROXY": "*"}
        for command in commands:
            shell = ["sh", "-c", command.replace("curl ", "curl --fail ", 1)]
            done = subprocess.run(shell, env=given, capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 0, done.stderr
        answer = must(server, "GET", "/v1/namespaces", json.loads(done.stdout)["key"])
        assert {"namespace": "agent/hermes/memory", "visibility": "agent-only"} in answer

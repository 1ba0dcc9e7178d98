"""The official client, connected by each of the two transports."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

COMMAND = str(Path(sys.executable).parent / "memory-gateway")


@asynccontextmanager
async def over_http(url: str, key: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp/", http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(url: str, key_file: Path) -> AsyncIterator[Client]:
    arguments = ["mcp", "--url", url, "--key-file", str(key_file)]
    async with Client(StdioServerParameters(command=COMMAND, args=arguments)) as client:
        yield client


async def ask(client: Client, tool: str, **arguments) -> dict:
    """The structured answer of a tool that succeeds; its text says the same."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments) -> str:
    """The words of a tool that fails."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.structured_content
    return answer.content[0].text

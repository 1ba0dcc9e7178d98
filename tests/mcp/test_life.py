"""The whole life of a memory by the official MCP client, over HTTP and over standard input and output."""

from __future__ import annotations

import json
import subprocess
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.clients import COMMAND, ask, over_http, over_stdio, refused
from tests.servers import call, key_for, must

READS = {"memory_search", "memory_get_profile", "memory_list_namespaces"}


@pytest.fixture(params=["http", "stdio"])
def connect(request, gateway, hermes, tmp_path):
    """Opens a client with the key of Hermes."""

    @asynccontextmanager
    async def opened():
        if request.param == "http":
            async with over_http(gateway.url, hermes) as client:
                yield client
        else:
            key_file = tmp_path / "agent.key"
            key_file.write_text(hermes + "\n", "ascii")
            async with over_stdio(gateway.url, key_file) as client:
                yield client

    return opened, request.param


def test_the_whole_life_of_a_memory(gateway, connect):
    connected, how = connect

    async def live():
        async with connected() as client:
            text = f"Tom takes the night train by {how}."
            made = await ask(client, "memory_upsert", content=text, memory_type="preference", tags=["travel"])
            assert made["namespace"] == "user/tom/long_term"
            assert made["version"] == 1
            found = await ask(client, "memory_search", query=f"night train {how}")
            assert found["results"][0]["memory"]["content"] == text
            assert found["results"][0]["memory"]["id"] == made["id"]
            changed = await ask(
                client, "memory_upsert", memory_id=made["id"], etag=made["etag"], content=f"{text} Never by plane."
            )
            assert changed["version"] == 2
            found = await ask(client, "memory_search", query=f"never plane {how}")
            assert [one["memory"]["version"] for one in found["results"] if one["memory"]["id"] == made["id"]] == [2]
            profile = await ask(client, "memory_get_profile")
            assert profile["user_id"] == "tom"
            names = await ask(client, "memory_list_namespaces", session_id=None)
            assert {"namespace": "agent/hermes/memory", "visibility": "agent-only"} in names["namespaces"]
            await _session(client, how)
            judged = await ask(client, "memory_feedback", memory_id=made["id"], feedback="incorrect")
            assert judged == {"status": "ok", "memory_id": made["id"], "feedback": "incorrect"}
            found = await ask(client, "memory_search", query=f"never plane {how}")
            assert made["id"] not in {one["memory"]["id"] for one in found["results"]}
            gone = await ask(client, "memory_delete", memory_id=made["id"], version=2)
            assert {name: gone[name] for name in ("deleted", "id")} == {"deleted": True, "id": made["id"]}
            assert {"place": "file", "state": "done"} in gone["erasure"]
            assert "not-found" in await refused(client, "memory_delete", memory_id=made["id"], version=2)

    anyio.run(live)


async def _session(client: Client, how: str) -> None:
    session = f"chat-{how}"
    said = f"User: please remember that the {how} ticket number is 4711."
    first = await ask(client, "memory_append_episode", session_id=session, content=said, tags=["chat"])
    second = await ask(client, "memory_append_episode", session_id=session, content="Assistant: I prefer tea.")
    assert second["seq"] > first["seq"]
    assert first["namespace"] == f"session/{session}/episodic"
    found = await ask(client, "memory_search", query=f"{how} ticket number", session_id=session)
    assert any(one["memory"]["namespace"] == f"session/{session}/episodic" for one in found["results"])
    done = await ask(client, "memory_commit_session", session_id=session)
    assert done["episodes"] == 2
    assert done["promoted"] == []
    assert [one["status"] for one in done["reviews"]] == ["pending"]
    again = await ask(client, "memory_commit_session", session_id=session)
    assert again["reviews"] == done["reviews"]


def test_resources(connect):
    connected, _ = connect

    async def read():
        async with connected() as client:
            offered = {str(one.uri): one.mime_type for one in (await client.list_resources()).resources}
            assert offered == {
                "memory://profile": "application/json",
                "memory://namespaces": "application/json",
            }
            profile = json.loads((await client.read_resource("memory://profile")).contents[0].text)
            assert profile["namespace"] == "user/tom/profile"
            rooms = json.loads((await client.read_resource("memory://namespaces")).contents[0].text)
            assert {"user/tom/long_term", "global/public"} <= {one["namespace"] for one in rooms}
            with pytest.raises(MCPError):
                await client.read_resource("memory://secrets")

    anyio.run(read)


def test_tools_say_what_they_do(connect):
    """Hosts ask the user before a tool that destroys, and do not before one that reads."""
    connected, _ = connect

    async def read():
        async with connected() as client:
            tools = {one.name: one for one in (await client.list_tools()).tools}
            assert len(tools) == 8
            assert {name for name, one in tools.items() if one.annotations.read_only_hint} == READS
            assert {name for name, one in tools.items() if one.annotations.destructive_hint} == {"memory_delete"}
            for one in tools.values():
                assert one.annotations.open_world_hint is False
                assert one.description
                assert one.output_schema["type"] == "object"
                assert "ctx" not in one.input_schema["properties"]

    anyio.run(read)


def test_errors_have_the_words_of_rest(gateway, hermes, connect):
    connected, how = connect
    made = gateway.write(f"what is changed twice by {how}", user_id="tom")
    must(gateway, "PATCH", f"/v1/memory/{made['id']}", json={"content": "changed once", "version": 1})
    path = f"/v1/memory/{made['id']}"
    pairs = [
        (("PATCH", path, {"content": "x", "version": 1}), ("memory_upsert", {"memory_id": made["id"], "version": 1})),
        (("PATCH", path, {"content": "x"}), ("memory_upsert", {"memory_id": made["id"]})),
        (("PATCH", "/v1/memory/mem_x", {"content": "x", "version": 1}), ("memory_upsert", {"memory_id": "mem_x"})),
        (("POST", "/v1/memory", {"content": "x", "user_id": "ann"}), ("memory_upsert", {"user_id": "ann"})),
        (("POST", "/v1/memory", {"content": "x", "visibility": "global"}), ("memory_upsert", {"visibility": "global"})),
        (("POST", "/v1/sessions/none/commit", {}), ("memory_commit_session", {"session_id": "none"})),
        (
            ("POST", "/v1/memory/search", {"query": "x", "agent_id": "claude"}),
            ("memory_search", {"agent_id": "claude"}),
        ),
    ]

    async def fail():
        async with connected() as client:
            for (method, route, body), (tool, arguments) in pairs:
                problem = call(gateway, method, route, hermes, json=body).json()
                given = {"content": "x"} if tool == "memory_upsert" else {"query": "x"} if "search" in tool else {}
                if "mem_x" in route:
                    given["version"] = 1
                words = await refused(client, tool, **(given | arguments))
                assert problem["detail"] in words
                assert problem.get("advice", "") in words
                assert f"[{problem['type'].rpartition(':')[2]}]" in words
                if "diff" in problem:
                    assert json.dumps(problem["diff"], ensure_ascii=False) in words

    anyio.run(fail)


def test_wrong_arguments_are_named_before_anything_happens(connect):
    connected, _ = connect

    async def fail():
        async with connected() as client:
            assert "query" in await refused(client, "memory_search")
            assert "limit" in await refused(client, "memory_search", query="x", limit=0)
            assert "user_id" in await refused(client, "memory_search", query="x", user_id="")
            assert "feedback" in await refused(client, "memory_feedback", memory_id="x", feedback="rubbish")
            assert await refused(client, "memory_burn")

    anyio.run(fail)


def test_another_user_neither_finds_nor_forgets_it(gateway, hermes, ann):
    made = must(gateway, "POST", "/v1/memory?wait=5", hermes, json={"content": "Tom's safe opens with 1-2-3."})

    async def look():
        async with over_http(gateway.url, ann) as client:
            assert (await ask(client, "memory_search", query="safe opens"))["results"] == []
            foreign = await refused(client, "memory_delete", memory_id=made["id"], version=1)
            missing = await refused(client, "memory_delete", memory_id="mem_none", version=1)
            assert foreign.replace(made["id"], "mem_none") == missing

    anyio.run(look)
    assert call(gateway, "GET", f"/v1/memory/{made['id']}", hermes).status_code == 200


def test_http_without_a_valid_key_is_401(gateway):
    for headers in ({}, {"Authorization": "Bearer mgk_wrong"}, {"Authorization": "Basic YTpi"}):
        answer = httpx2.post(f"{gateway.url}/mcp/", headers=headers, json={}, trust_env=False)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["type"] == "urn:memory-gateway:problem:not-authenticated"


def test_a_revoked_key_ends_an_open_connection(gateway):
    made = must(gateway, "POST", "/v1/keys", json={"role": "agent", "user_id": "tom", "agent_id": "hermes"})

    async def use():
        async with over_http(gateway.url, made["key"]) as client:
            await ask(client, "memory_get_profile")
            await anyio.to_thread.run_sync(lambda: must(gateway, "DELETE", f"/v1/keys/{made['id']}"))
            with pytest.raises((MCPError, httpx2.HTTPError)):
                await ask(client, "memory_get_profile")

    anyio.run(use)


def test_a_page_of_another_origin_is_refused(gateway, hermes):
    headers = {"Authorization": f"Bearer {hermes}", "Origin": "http://evil.example"}
    answer = httpx2.post(f"{gateway.url}/mcp/", headers=headers, json={}, trust_env=False)
    assert answer.status_code == 403


def test_many_calls_at_once_over_one_connection(gateway, hermes):
    async def use():
        headers = {"Authorization": f"Bearer {hermes}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(f"{gateway.url}/mcp/", http_client=http)) as client,
            anyio.create_task_group() as group,
        ):
            for number in range(20):
                group.start_soon(lambda n: ask(client, "memory_search", query=f"train {n}"), number)

    anyio.run(use)


def test_stdio_says_what_is_wrong_and_stops(gateway, tmp_path):
    """No server, no key: one message on standard error, nothing on standard output, exit code 2."""
    key = tmp_path / "key"
    key.write_text("mgk_x", "ascii")
    for arguments in (["--data-dir", str(tmp_path / "none")], ["--data-dir", str(tmp_path), "--url", gateway.url]):
        done = subprocess.run(
            [COMMAND, "mcp", *arguments], capture_output=True, text=True, timeout=60, input="", check=False
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.strip()


def test_readers_may_read_and_not_write(gateway):
    key = key_for(gateway, "reader", "tom")

    async def use():
        async with over_http(gateway.url, key) as client:
            await ask(client, "memory_search", query="train")
            assert "[not-allowed]" in await refused(client, "memory_upsert", content="x")

    anyio.run(use)

"""Every MCP tool and resource, by every kind of principal, with its own, another's, empty and forged ids."""

from __future__ import annotations

import itertools

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.isolation.world import ALLOWED, TOKENS, WORD, WRITERS, World

USERS = [None, "tom", "ann", "", "forged"]
AGENTS = [None, "hermes", "nanobot", "claude", "forged"]
WORKSPACES = [None, "ws1", "ws2", "forged"]


def _ids(**values) -> dict:
    return {name: value for name, value in values.items() if value is not None}


def _contexts():
    yield from (_ids(user_id=user, agent_id=agent) for user, agent in itertools.product(USERS, AGENTS))
    yield from (
        _ids(workspace_id=workspace, agent_id=agent) for workspace, agent in itertools.product(WORKSPACES, AGENTS)
    )


def searching(world: World, principal: str):
    yield from ({"query": WORD, "limit": 200, **context} for context in _contexts())
    yield from ({"query": WORD, "session_id": "s_tom", **_ids(agent_id=agent)} for agent in AGENTS)
    yield {"query": WORD, "namespaces": ["user/tom/long_term"]}
    yield {"query": WORD, "namespaces": ["user/ann/long_term"]}


def upserting(world: World, principal: str):
    for token, made in world.memories.items():
        if principal not in WRITERS.get(token, set()):
            yield {"memory_id": made["id"], "version": made["version"], "content": "an intruder's text", "fails": True}
    for user in ("forged", "", "tom" if ALLOWED[principal] & {"annprivate"} else "ann"):
        yield {"content": "an intruder's text", "user_id": user, "fails": True}


def appending(world: World, principal: str):
    for user in ("forged", "", "tom" if ALLOWED[principal] & {"annprivate"} else "ann"):
        yield {"session_id": "s_tom", "content": "an intruder's text", "user_id": user, "fails": True}


def committing(world: World, principal: str):
    yield {"session_id": "s_old", "fails": True}
    if principal not in ("tom", "hermes", "tom_ws1_only"):
        yield {"session_id": "s_tom", "fails": True}


def profiles(world: World, principal: str):
    yield from (_ids(user_id=user) for user in USERS)


def listing(world: World, principal: str):
    yield from _contexts()


def deleting(world: World, principal: str):
    for token, made in world.memories.items():
        if principal not in WRITERS.get(token, set()):
            yield {"memory_id": made["id"], "version": made["version"], "fails": True}


def judging(world: World, principal: str):
    for token, made in world.memories.items():
        if token not in ALLOWED[principal]:
            yield {"memory_id": made["id"], "feedback": "incorrect", "fails": True}


# A tool that is not in this table fails the kit.
CASES = {
    "memory_search": searching,
    "memory_upsert": upserting,
    "memory_append_episode": appending,
    "memory_commit_session": committing,
    "memory_get_profile": profiles,
    "memory_list_namespaces": listing,
    "memory_delete": deleting,
    "memory_feedback": judging,
}


@pytest.mark.parametrize("principal", sorted(set(ALLOWED) - {"revoked"}))
def test_no_tool_shows_or_changes_what_is_anothers(world, principal):
    anyio.run(_try_all, world, principal)


async def _try_all(world: World, principal: str) -> None:
    headers = {"Authorization": f"Bearer {world.keys[principal]}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{world.url}/mcp/", http_client=http)) as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} == set(CASES)
        for tool, cases in CASES.items():
            for case in cases(world, principal):
                fails = case.pop("fails", False)
                answer = await client.call_tool(tool, case)
                text = str(answer.structured_content) + "".join(getattr(one, "text", "") for one in answer.content)
                where = f"{principal}: {tool} {case} -> {text[:300]}"
                assert answer.is_error or not fails, where
                assert not {token for token in TOKENS - ALLOWED[principal] if token in text}, where
        for uri in ("memory://profile", "memory://namespaces"):
            text = (await client.read_resource(uri)).contents[0].text
            other = "ann" if ALLOWED[principal] & {"tomprivate"} else "tom"
            assert f"user/{other}/" not in text


def test_a_revoked_key_reaches_no_tool(world):
    answer = httpx2.post(f"{world.url}/mcp/", headers={"Authorization": f"Bearer {world.keys['revoked']}"}, json={})
    assert answer.status_code == 401

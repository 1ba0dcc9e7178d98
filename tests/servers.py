"""Servers that several tests share, with identities and keys in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.api.conftest import Server, start


@contextmanager
def served(data: Path, template: Path, **settings) -> Iterator[Server]:
    """A server on a copy of the first start's data directory."""
    if not data.exists():
        shutil.copytree(template, data, symlinks=True)
    running, server, thread, listener = start(data, **settings)
    try:
        yield running
    finally:
        running.http.close()
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
        assert not thread.is_alive()


def must(server: Server, method: str, path: str, key: str | None = None, **options) -> dict:
    """The answer to a request that succeeds."""
    answer = call(server, method, path, key, **options)
    assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
    return answer.json()


def call(server: Server, method: str, path: str, key: str | None = None, **options) -> httpx.Response:
    """Any answer; with the admin key where none is given."""
    headers = {"Authorization": f"Bearer {key or server.key}"} | options.pop("headers", {})
    return server.http.request(method, path, headers=headers, **options)


def key_for(server: Server, role: str, user_id: str, agent_id: str | None = None, **fields) -> str:
    """A new key's secret."""
    body = {"role": role, "user_id": user_id, **({"agent_id": agent_id} if agent_id else {}), **fields}
    return must(server, "POST", "/v1/keys", json=body)["key"]


def people(server: Server) -> None:
    """Tom with Hermes and Nanobot, Ann with Claude."""
    for user_id in ("tom", "ann"):
        must(server, "POST", "/v1/users", json={"user_id": user_id})
    for agent_id, owner in (("hermes", "tom"), ("nanobot", "tom"), ("claude", "ann")):
        must(server, "POST", "/v1/agents", json={"agent_id": agent_id, "owner_user_id": owner})

"""MCP over standard input and output, for hosts that start a process: passes messages to the running gateway.

There is still one writer: this process opens no data directory, it only speaks HTTP.
"""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server

_TIMEOUT_SECONDS = 120.0


def serve_stdio(url: str, key: str) -> None:
    """Pass MCP messages between standard input/output and `<url>/mcp` until the input ends."""
    anyio.run(_serve, f"{url.rstrip('/')}/mcp/", key)


async def _serve(endpoint: str, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_SECONDS, trust_env=False) as http,
        streamable_http_client(endpoint, http_client=http) as (from_gateway, to_gateway),
        stdio_server() as (from_host, to_host),
        anyio.create_task_group() as group,
    ):
        group.start_soon(_pass_on, from_gateway, to_host)
        await _pass_on(from_host, to_gateway)
        group.cancel_scope.cancel()


async def _pass_on(source: Any, target: Any) -> None:
    async for message in source:
        if not isinstance(message, Exception):
            await target.send(message)

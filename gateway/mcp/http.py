"""MCP over streamable HTTP: mounted at `/mcp`, stateless, with the same bearer keys as REST."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send
from mcp.server.transport_security import TransportSecuritySettings

from gateway.bootstrap import Gateway
from gateway.errors import NotAuthenticated
from gateway.mcp.server import create_mcp, request_authorization


class MountedMcp:
    """The MCP endpoint of one application: a route handler and its lifespan."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._server = create_mcp(gateway)
        # Host and Origin are checked for the whole application already.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app: Any = self._server.streamable_http_app(
            streamable_http_path="/", stateless_http=True, json_response=True, transport_security=security
        )

    def handler(self) -> Any:
        """The route handler to mount."""

        @asgi("/mcp", is_mount=True, copy_scope=True)
        async def mcp_endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            """MCP, for hosts that speak streamable HTTP."""
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            try:
                self._gateway.authenticator.principal(headers.get(b"authorization"), None)
            except NotAuthenticated as error:
                await _refuse(error, send)
                return
            token = request_authorization.set(headers.get(b"authorization"))
            try:
                await self._app(scope, receive, send)
            finally:
                request_authorization.reset(token)

        return mcp_endpoint

    @asynccontextmanager
    async def running(self, _app: Litestar) -> AsyncGenerator[None, None]:
        """Keeps the MCP session manager alive while the application runs."""
        async with self._server.session_manager.run():
            yield


async def _refuse(error: NotAuthenticated, send: Send) -> None:
    body = json.dumps(
        {
            "type": f"urn:memory-gateway:problem:{error.code}",
            "title": error.title,
            "status": 401,
            "detail": error.detail,
            "instance": "/mcp",
            "advice": error.advice,
        }
    ).encode("utf-8")
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode("ascii")),
        (b"www-authenticate", b'Bearer realm="memory-gateway"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})

"""The server: uvicorn on one gateway, stopping both in order."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import uvicorn
from litestar import Litestar

from gateway.api.app import create_app
from gateway.bootstrap import Gateway
from gateway.errors import BadSettings
from gateway.mcp.http import MountedMcp
from gateway.vault.lock import forget_address, write_address


def build(gateway: Gateway) -> Litestar:
    """The application; the gateway's background work begins and ends with it."""

    @asynccontextmanager
    async def running(_app: Litestar) -> AsyncGenerator[None, None]:
        gateway.start()
        try:
            yield
        finally:
            gateway.close()

    mounted = MountedMcp(gateway)
    return create_app(gateway, mounts=[mounted.handler()], lifespan=[running, mounted.running])


class Server(uvicorn.Server):
    """Uvicorn waits for open answers before it stops; a stream of events is one that would never end by itself."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then stop as uvicorn does."""
        self._gateway.streams.close()
        await super().shutdown(sockets)


def serve(gateway: Gateway, *, ready: Callable[[str], None]) -> None:
    """Serve until told to stop (SIGINT, SIGTERM).

    Args:
        ready: is called with the base URL once the port is open.

    Raises:
        BadSettings: the address cannot be listened on.
    """
    settings = gateway.parts.settings
    listener = _listen(settings.host, settings.port)
    url = _url(listener)
    write_address(settings.data_dir, url)
    config = uvicorn.Config(
        build(gateway),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
        server_header=False,
    )
    # uvicorn raises the signal again when it has stopped; it must not end us before the gateway is closed.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        ready(url)
        Server(config, gateway).run(sockets=[listener])
    finally:
        forget_address(settings.data_dir)
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: without it asyncio sets no TCP_NODELAY, and each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise BadSettings(
            f"The gateway cannot listen on {host}:{port}: {error.strerror}.",
            field="port",
            advice="Choose another with --port, or stop what uses it.",
        ) from error
    listener.listen(1024)
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not listened on
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

"""`/v1/events`: what happened, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Annotated, Any

from anyio import CancelScope, create_task_group, fail_after
from litestar import Request, get
from litestar.concurrency import sync_to_thread
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from gateway import log
from gateway.access.principal import Principal
from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.bootstrap import Gateway
from gateway.errors import GatewayError, NotAuthenticated
from gateway.services import events
from gateway.services.events import Batch

Http = Request[Any, Any, Any]
LastEventId = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", description="The `id` of the last event that was received.")
]
LastSeen = Annotated[
    str | None, QueryParameter(name="last_event_id", description="The same, for those who cannot set a header.")
]
Kinds = Annotated[
    str | None, QueryParameter(name="kinds", description="`memory`, `draft`, `problem`, `job`, separated by commas.")
]
_LOG = log.get("events")
_MEDIA_TYPE = "text/event-stream"
_HEARTBEAT_SECONDS = 15.0
_POLL_SECONDS = 1.0
_GATHER_SECONDS = 0.05  # what is written in one moment is read in one go
_SLOW_SECONDS = 10.0
_RETRY_MS = 2_000
_LOST = "What happened since is no longer kept: list anew what you follow, then go on from here."


@get("/v1/events", media_type=_MEDIA_TYPE, responses=ERRORS)
async def stream_events(
    request: Http, last_event_id: LastEventId = None, last_seen: LastSeen = None, kinds: Kinds = None
) -> Stream:
    """What happens from now on, or since `Last-Event-ID`, as server-sent events. It ends only with the connection."""
    wanted = events.kinds_of(kinds)
    last = events.number_of(last_event_id, last_seen)
    listener = _Listener(gateway_of(request), principal_of(request), wanted)
    await listener.begin(last)
    return _EventStream(listener)


class _Listener:
    """One stream: reads in worker threads, sends within a bound, ends with its key, its connection or the gateway."""

    def __init__(self, gateway: Gateway, principal: Principal, kinds: frozenset[str]) -> None:
        self._gateway = gateway
        self._principal = principal
        self._kinds = kinds
        self._seq = 0
        self._lost = False
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._entered = gateway.streams.entered(principal.key_id, self._wake)

    async def begin(self, last: int | None) -> None:
        """Take a place among the streams, and find where this one begins."""
        with CancelScope(shield=True):
            self._seq, self._lost = await sync_to_thread(events.beginning, self._principal, self._gateway.parts, last)
        self._entered.__enter__()

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the end."""
        async with create_task_group() as group:
            group.start_soon(_until_disconnect, receive, group.cancel_scope)
            await self._pump(send)
            group.cancel_scope.cancel()

    def end(self) -> None:
        """Give the place back."""
        self._entered.__exit__(None, None, None)

    async def _pump(self, send: Send) -> None:
        try:
            await _send(send, self._greeting())
            await self._tell(send)
            await _send(send, "", more=False)
        except TimeoutError:
            _LOG.warning("a listener reads too slowly and was cut off", key_id=self._principal.key_id)

    def _greeting(self) -> str:
        said = _block("reset", self._seq, {"advice": _LOST}) if self._lost else _block("ready", self._seq, {})
        return f"retry: {_RETRY_MS}\n\n{said}"

    async def _tell(self, send: Send) -> None:
        silent_since = time.monotonic()
        while not self._gateway.streams.closed:
            self._woken.clear()
            try:
                batch = await sync_to_thread(self._read)
            except NotAuthenticated:
                return
            except GatewayError as error:
                _LOG.warning("a stream of events ends", reason=str(error))
                return
            self._seq = batch.seq
            if batch.told:
                await _send(send, "".join(_block(one.kind, one.seq, events.shown(one)) for one in batch.told))
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since >= _HEARTBEAT_SECONDS:
                await _send(send, f": still here\nid: {self._seq}\n\n")
                silent_since = time.monotonic()
            if not batch.more:
                await self._wait()

    def _read(self) -> Batch:
        """What is next, for the key as it is now: it may have been revoked, or may read less than before."""
        principal = self._gateway.authenticator.holder(self._principal.key_id, self._principal.request_id)
        return events.following(principal, self._gateway.parts, self._seq, self._kinds)

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
            await asyncio.sleep(_GATHER_SECONDS)
        except TimeoutError:
            pass  # look anyway

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)


class _EventStream(Stream):
    """The answer that a listener's stream is."""

    def __init__(self, listener: _Listener) -> None:
        super().__init__(iter(()), media_type=_MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self._listener = listener

    def to_asgi_response(self, *arguments: Any, **options: Any) -> ASGIResponse:
        """The answer with a body of its own."""
        del arguments
        given: dict[str, str] = options.get("headers") or {}
        headers = {**given, **self.headers}
        return _Sending(self._listener, headers, self.status_code or options.get("status_code"))


class _Sending(ASGIResponse):
    _should_set_content_length = False

    def __init__(self, listener: _Listener, headers: dict[str, str], status_code: int | None) -> None:
        super().__init__(headers=headers, media_type=_MEDIA_TYPE, status_code=status_code)
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listener.end()

    async def send_body(self, send: Send, receive: Receive) -> None:
        await self._listener.run(receive, send)


def _block(name: str, seq: int, data: dict[str, Any]) -> str:
    return f"id: {seq}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


async def _send(send: Send, text: str, *, more: bool = True) -> None:
    with fail_after(_SLOW_SECONDS):
        await send({"type": "http.response.body", "body": text.encode("ascii"), "more_body": more})


async def _until_disconnect(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


ROUTES = [stream_events]

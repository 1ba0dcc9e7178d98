"""What requests say in their headers: who asks, from where, how long to wait, which retry it is."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import uuid
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from gateway.access.principal import Principal
from gateway.bootstrap import Gateway
from gateway.errors import Invalid, NotAllowed, NotFound
from gateway.ledger.idempotency import Claim

MAX_WAIT_SECONDS = 30.0
_SEARCHABLE_SECONDS = 5.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def gateway_of(request: Request[Any, Any, Any]) -> Gateway:
    """The gateway that serves this application."""
    return request.app.state["gateway"]


def principal_of(request: Request[Any, Any, Any]) -> Principal:
    """Who asks.

    Raises:
        NotAuthenticated: no valid key.
    """
    known = request.scope["state"].get("principal")
    return known if isinstance(known, Principal) else _authenticated(request)


def authenticated(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """A guard: nothing of a request is read before its key is known.

    Raises:
        NotAuthenticated: no valid key.
        RateLimited: too many requests with it.
    """
    principal = _authenticated(connection)
    gateway: Gateway = connection.app.state["gateway"]
    gateway.rate_limit.take(principal.key_id)
    connection.scope["state"]["principal"] = principal


def _authenticated(connection: ASGIConnection[Any, Any, Any, Any]) -> Principal:
    gateway: Gateway = connection.app.state["gateway"]
    return gateway.authenticator.principal(
        connection.headers.get("authorization"), connection.scope["state"].get("request_id")
    )


def wait_seconds(request: Request[Any, Any, Any], wait: str | None) -> float:
    """How long the caller wants to wait: `Prefer: wait=N` (RFC 7240) or `?wait=N|searchable`; at most 30 seconds.

    Raises:
        Invalid: neither a number nor `searchable`.
    """
    asked = wait
    if asked is None:
        for preference in (request.headers.get("prefer") or "").split(","):
            name, _, value = preference.strip().partition("=")
            if name.strip().lower() == "wait":
                asked = value.strip().strip('"')
    if asked is None:
        return 0.0
    if asked == "searchable":
        return _SEARCHABLE_SECONDS
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", asked):
        raise Invalid("`wait` is a number of seconds, or `searchable`.", field="wait")
    return min(float(asked), MAX_WAIT_SECONDS)


async def claim_of(request: Request[Any, Any, Any], principal: Principal) -> Claim | None:
    """The idempotency key of a request, tied to what exactly was asked.

    Raises:
        Invalid: the key is empty or too long.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not key.isprintable():
        raise Invalid("An idempotency key has 1 to 255 printable characters.", field="Idempotency-Key")
    digest = hashlib.sha256()
    for part in (request.method, request.url.path, request.url.query or "", request.headers.get("if-match") or ""):
        digest.update(part.encode("utf-8") + b"\0")
    digest.update(await request.body())
    return Claim(principal.key_id, key, digest.hexdigest())


class HostGuard:
    """Refuses requests for other hosts (DNS rebinding) or from pages of other origins; gives each request its id."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] == "http":
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            given = headers.get(b"x-request-id", "")
            scope["state"]["request_id"] = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
            self._check(headers.get(b"host", ""), headers.get(b"origin"))
            if b"%2f" in scope.get("raw_path", b"").lower():
                raise NotFound("There is no such route.")  # a slash in an id would name another route
        await self._app(scope, receive, send)

    def _check(self, host: str, origin: str | None) -> None:
        if not self._known(_host_name(host)):
            raise NotAllowed(
                "This host name is not one of the gateway's.",
                field="Host",
                advice="Add it to `allowed_hosts` in the settings if it is yours.",
            )
        if origin is not None and (origin == "null" or urlsplit(origin).netloc.lower() != host.lower()):
            raise NotAllowed("Requests from pages of other origins are refused.", field="Origin")

    def _known(self, name: str) -> bool:
        if name in self._allowed:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # an address is not a name that somebody's DNS could bind anew


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if re.search(r":\d*$", host) else host.lower()

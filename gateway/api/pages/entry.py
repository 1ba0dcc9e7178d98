"""Getting in and out: a key is shown once, and a cookie with an opaque id stands for it afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.response import Redirect

from gateway.access.limits import RateLimit
from gateway.access.principal import Principal
from gateway.api.headers import gateway_of
from gateway.api.pages.rendering import ROOT, Http, cookie, render
from gateway.api.pages.sessions import LIFETIME_SECONDS, PageSession, PageSessions
from gateway.api.problems import status_of
from gateway.bootstrap import Gateway
from gateway.errors import GatewayError, Invalid, NotAllowed, NotAuthenticated, RateLimited

SESSION_COOKIE = "memory_gateway_review"
LOGIN = f"{ROOT}/login"
_OWN_PATH = re.compile(r"/review(?:[/?][^\s\\]*)?")
_PEOPLE = ("admin", "user")


@dataclass(slots=True)
class Visit:
    """A person on the page: who they are by their key, and their session."""

    principal: Principal
    session: PageSession

    @property
    def csrf(self) -> str:
        """What each form carries."""
        return self.session.csrf

    @property
    def name(self) -> str:
        """Whom the page greets."""
        return self.principal.user_id or self.principal.role

    def tell(self, name: str, **values: str) -> None:
        """Have the next page say something."""
        self.session.told.append((name, values))

    def take_told(self) -> list[tuple[str, dict[str, str]]]:
        """What is to be said now, once."""
        told, self.session.told = self.session.told, []
        return told


class PageState:
    """What the pages of one application keep in memory."""

    def __init__(self) -> None:
        self.sessions = PageSessions()
        self.attempts = RateLimit(per_minute=20, burst=20)


def people_only(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """A guard: who is logged in, with a key that is valid still.

    Raises:
        NotAuthenticated: nobody, or the key was revoked or has expired.
        RateLimited: too many requests with the key.
    """
    gateway: Gateway = connection.app.state["gateway"]
    state: PageState = connection.app.state["pages"]
    session_id = connection.cookies.get(SESSION_COOKIE)
    session = state.sessions.find(session_id)
    if session is None:
        raise NotAuthenticated("Nobody is logged in.")
    try:
        principal = gateway.authenticator.holder(session.key_id, connection.scope["state"].get("request_id"))
    except NotAuthenticated:
        state.sessions.close(session_id)
        raise
    if principal.role not in _PEOPLE:
        raise NotAuthenticated("This key is no person's.")
    gateway.rate_limit.take(principal.key_id)
    connection.scope["state"]["visit"] = Visit(principal, session)


def visit_of(request: Http) -> Visit:
    """Who is on the page; the guard has seen to it that somebody is."""
    visit: Visit = request.scope["state"]["visit"]
    return visit


async def fields_of(request: Http) -> dict[str, str]:
    """The fields of a form that was sent from a page of this session.

    Raises:
        Invalid: it is no form.
        NotAllowed: it does not carry the session's token.
    """
    fields = await _form(request)
    token = fields.get("csrf") or request.headers.get("x-csrf-token") or ""
    if not visit_of(request).session.knows(token):
        raise NotAllowed("The form does not belong to this login.", field="csrf")
    return fields


@get(LOGIN, include_in_schema=False, sync_to_thread=True)
def show_login(request: Http) -> Response[Any]:
    """The form that takes a key."""
    ended = "ended" in request.query_params
    return render(request, "login.html", following=_own(request.query_params.get("next")), ended=ended)


@post(LOGIN, include_in_schema=False, status_code=200)
async def log_in(request: Http) -> Response[Any]:
    """Check a key; all that are not valid are answered alike."""
    fields = await _form(request)
    following = _own(fields.get("next"))
    try:
        principal = await sync_to_thread(_admitted, request, fields.get("key", ""))
    except GatewayError as error:
        return render(request, "login.html", status=status_of(error), error=error, following=following, ended=False)
    state: PageState = request.app.state["pages"]
    state.sessions.close(request.cookies.get(SESSION_COOKIE))
    session_id, _ = state.sessions.open(principal.key_id)
    answer = Redirect(following, status_code=303)
    answer.set_cookie(cookie(request, SESSION_COOKIE, session_id, LIFETIME_SECONDS))
    return answer


@post(f"{ROOT}/logout", include_in_schema=False, guards=[people_only])
async def log_out(request: Http) -> Response[Any]:
    """End the session."""
    await fields_of(request)
    state: PageState = request.app.state["pages"]
    state.sessions.close(request.cookies.get(SESSION_COOKIE))
    answer = Redirect(LOGIN, status_code=303)
    answer.set_cookie(cookie(request, SESSION_COOKIE, "", 0))
    return answer


def to_login(request: Http, _error: NotAuthenticated) -> Response[Any]:
    """Send whoever is not logged in to the form, and back afterwards."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    said = [("next", here)] if request.method == "GET" and here != ROOT else []
    if request.cookies.get(SESSION_COOKIE):
        said.append(("ended", "1"))
    return Redirect(f"{LOGIN}?{urlencode(said)}" if said else LOGIN, status_code=303)


def _admitted(request: Http, key: str) -> Principal:
    gateway = gateway_of(request)
    state: PageState = request.app.state["pages"]
    try:
        state.attempts.take(request.client.host if request.client else "")
    except RateLimited as error:
        raise RateLimited("Too many attempts to log in.", advice=error.advice) from None
    try:
        principal = gateway.authenticator.principal(f"Bearer {key.strip()}", request.scope["state"].get("request_id"))
    except NotAuthenticated:
        raise NotAuthenticated("The key is unknown, revoked or expired.", field="key") from None
    if principal.role not in _PEOPLE:
        raise NotAllowed("This is the key of an agent or reader; only people decide drafts.", field="role")
    return principal


async def _form(request: Http) -> dict[str, str]:
    kind = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Invalid("This takes a form.")
    try:
        text = (await request.body()).decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=50, errors="strict"))
    except ValueError:
        raise Invalid("The form cannot be read.") from None


def _own(path: str | None) -> str:
    """A page of ours to go to; nothing else, so that no link leads through here to another site."""
    return path if path and len(path) < 2_000 and _OWN_PATH.fullmatch(path) and LOGIN not in path else ROOT


ROUTES = [show_login, log_in]

"""From values to a page: templates that escape everything, in the person's language, with strict headers."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from typing import Any, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie, MutableScopeHeaders
from litestar.types import Message, Scope
from markupsafe import escape

from gateway.api.pages.language import LANGUAGES, Language, known, said, wanted
from gateway.api.pages.visible import hidden_count, shown
from gateway.errors import GatewayError
from gateway.notes.secrets import mask

Http = Request[Any, Any, Any]
ROOT = "/review"
LANGUAGE_COOKIE = "lang"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it browsers send forms with `Origin: null`, which no check of the origin may let through.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def page_headers(message: Message, scope: Scope) -> None:
    """Put the strict headers on every answer below `/review`, whoever gives it."""
    path = scope["path"]
    if message["type"] == "http.response.start" and (path == ROOT or path.startswith(f"{ROOT}/")):
        headers = MutableScopeHeaders.from_message(message)
        for name, value in _HEADERS.items():
            headers[name] = value


def language_of(request: Http) -> Language:
    """The language of a request's answer."""
    cookie = request.cookies.get(LANGUAGE_COOKIE)
    return wanted(request.query_params.get("lang"), cookie, request.headers.get("accept-language"))


def render(
    request: Http, template: str, *, status: int = 200, error: GatewayError | None = None, **values: Any
) -> Response[str]:
    """A page. What it knows of its visitor is in the request's state."""
    language = language_of(request)
    visit: Any = request.scope["state"].get("visit")
    done: list[tuple[str, dict[str, str]]] = visit.take_told() if visit is not None and error is None else []
    text = _environment().get_template(template).render(
        say=partial(said, language),
        has_words=partial(known, language),
        language=language,
        others=[(one, _with_language(request, one)) for one in LANGUAGES if one != language],
        visit=visit,
        done=[said(language, name, **given) for name, given in done],
        trouble=_trouble(error),
        asked=request.query_params.get("q", "") if request.url.path == f"{ROOT}/search" else "",
        path=request.url.path,
        **values,
    )  # fmt: skip
    answer = Response(text, status_code=status, media_type=MediaType.HTML, headers={"Content-Language": language})
    if request.query_params.get("lang") in LANGUAGES:
        answer.set_cookie(cookie(request, LANGUAGE_COOKIE, language, 365 * 86_400))
    return answer


def cookie(request: Http, name: str, value: str, seconds: int) -> Cookie:
    """A cookie for these pages alone, which no script reads and no other site sends."""
    secure = request.url.scheme == "https"
    return Cookie(name, value=value, max_age=seconds, path=ROOT, secure=secure, httponly=True, samesite="strict")


def _trouble(error: GatewayError | None) -> dict[str, str | None] | None:
    """An error as a page shows it: what it means in the person's language, and what was said exactly."""
    if error is None:
        return None
    code = "stale-form" if error.field == "csrf" else error.code
    return {"code": code, "detail": mask(error.detail), "advice": error.advice}


def _with_language(request: Http, language: Language) -> str:
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "lang"]
    return f"{request.url.path}?{urlencode([*query, ('lang', language)])}"


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(str(files("gateway.api.pages").joinpath("templates")))
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    filters = cast("dict[str, Any]", environment.filters)
    filters["exactly"] = escape  # escaped text passes `shown` as it is
    filters["hidden_count"] = hidden_count
    filters["percent"] = "{:.0%}".format
    return environment

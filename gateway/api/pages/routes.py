"""The pages as one router, what they load, and how their errors look."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Response, Router, get
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from gateway import __version__, log
from gateway.api.headers import gateway_of
from gateway.api.pages import drafts, entry, memories
from gateway.api.pages.entry import people_only, to_login, visit_of
from gateway.api.pages.rendering import ROOT, Http, render
from gateway.api.problems import status_of
from gateway.errors import GatewayError, Invalid, NotAuthenticated, NotFound, TooLarge
from gateway.services.status import brief, health, problem_list

_LOG = log.get("pages")
_KINDS = {"css": "text/css", "js": "text/javascript", "LICENSE": "text/plain"}


@get(f"{ROOT}/health", include_in_schema=False, sync_to_thread=True)
def show_health(request: Http) -> Response[Any]:
    """How the gateway is; all of it for administrators only."""
    parts, principal = gateway_of(request).parts, visit_of(request).principal
    if not principal.is_admin:
        return render(request, "health.html", health=brief(parts, __version__), problems=None)
    problems = problem_list(principal, parts)
    return render(request, "health.html", health=health(principal, parts, __version__), problems=problems)


@get(f"{ROOT}/assets/{{name:str}}", include_in_schema=False)
async def get_asset(name: FromPath[str]) -> Response[bytes]:
    """A style sheet or script of the pages."""
    data = _assets().get(name)
    if data is None:
        raise NotFound("There is no such file.")
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(data, headers={"Content-Type": f"{kind}; charset=utf-8"})


@get(f"{ROOT}/{{rest:path}}", include_in_schema=False, sync_to_thread=True)
def no_page(rest: FromPath[str]) -> Response[Any]:
    """Any other address below `/review`."""
    del rest
    raise NotFound("There is no such page.")


def pages() -> Router:
    """All pages below `/review`."""
    inside = Router("/", route_handlers=[*drafts.ROUTES, *memories.ROUTES, show_health, no_page], guards=[people_only])
    return Router(
        "/",
        route_handlers=[inside, *entry.ROUTES, entry.log_out, get_asset],
        exception_handlers={  # pyright: ignore[reportArgumentType]
            NotAuthenticated: to_login,
            GatewayError: _show_error,
            HTTPException: _show_http_error,
            Exception: _show_unexpected,
        },
        include_in_schema=False,
    )


def _show_error(request: Http, error: GatewayError) -> Response[Any]:
    return render(request, "error.html", status=status_of(error), error=error)


def _show_http_error(request: Http, error: HTTPException) -> Response[Any]:
    status = int(error.status_code)
    kind = {404: NotFound, 413: TooLarge}.get(status, Invalid if status < 500 else GatewayError)
    return render(request, "error.html", status=status, error=kind(error.detail if status < 500 else ""))


def _show_unexpected(request: Http, error: Exception) -> Response[Any]:
    _LOG.exception("unexpected error", path=request.url.path, error=type(error).__name__)
    wrong = GatewayError("Something went wrong in the gateway; its log says what.")
    return render(request, "error.html", status=500, error=wrong)


@cache
def _assets() -> dict[str, bytes]:
    folder = files("gateway.api.pages").joinpath("assets")
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}

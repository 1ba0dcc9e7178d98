"""Errors as RFC 9457 problem details. The only place where an error meets a status code."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from gateway import errors, log
from gateway.errors import GatewayError
from gateway.notes.secrets import mask

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:memory-gateway:problem:"
_LOG = log.get("api")

# The most special class first; a class not named here answers as its parent does.
_STATUS: dict[type[GatewayError], int] = {
    errors.BadNote: 422,
    errors.SecretFound: 422,
    errors.TooLarge: 413,
    errors.BadSettings: 500,
    errors.Invalid: 400,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.RateLimited: 429,
    errors.Conflict: 409,
    errors.TooMuchGone: 409,
    errors.RemoteRewritten: 409,
    errors.PreconditionRequired: 428,
    errors.Busy: 409,
    errors.Unavailable: 503,
    errors.GatewayError: 500,
}


def status_of(error: GatewayError) -> int:
    """The HTTP status of an error."""
    return next(status for kind in type(error).__mro__ if (status := _STATUS.get(kind)) is not None)


def problem(error: GatewayError, instance: str) -> dict[str, Any]:
    """The problem document of an error."""
    document: dict[str, Any] = {
        "type": TYPE_PREFIX + error.code,
        "title": error.title,
        "status": status_of(error),
        "detail": error.detail,
        "instance": instance,
    }
    named = {"advice": error.advice, "field": error.field, "file": error.file, "line": error.line}
    return document | {name: value for name, value in named.items() if value is not None} | error.facts


def handle_gateway_error(request: Request[Any, Any, Any], error: GatewayError) -> Response[Any]:
    """Answer an error of ours."""
    document = problem(error, request.url.path)
    headers: dict[str, str] = {}
    if isinstance(error, errors.NotAuthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="memory-gateway"'
    if isinstance(error, errors.Unavailable):
        headers["Retry-After"] = "1"
    if isinstance(error, errors.RateLimited):
        headers["Retry-After"] = str(error.facts.get("retry_after", 1))
    etag = error.facts.get("etag")
    if isinstance(etag, str):
        headers["ETag"] = f'"{etag}"'
    return _answer(document, headers)


def handle_validation(request: Request[Any, Any, Any], error: ValidationException) -> Response[Any]:
    """Answer a request whose body or query does not fit: every wrong field by name."""
    found = _fields(error.extra)
    first = found[0] if found else {"field": None, "message": "The request does not fit."}
    document: dict[str, Any] = {
        "type": TYPE_PREFIX + errors.Invalid.code,
        "title": errors.Invalid.title,
        "status": 400,
        "detail": f"`{first['field']}`: {first['message']}." if first["field"] else f"{first['message']}.",
        "instance": request.url.path,
        "advice": "See /schema for what this route takes.",
    }
    if first["field"]:
        document["field"] = first["field"]
    if found:
        document["errors"] = found
    return _answer(document, {})


_TITLES = {400: errors.Invalid.title, 404: errors.NotFound.title, 413: errors.TooLarge.title}


def handle_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Answer an error of the framework: no such route, wrong method, unreadable JSON, too large."""
    codes = {404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "unsupported-media-type"}
    status = int(error.status_code)
    title = _TITLES.get(status, HTTPStatus(status).phrase)
    code = codes.get(status, "invalid" if status < 500 else "internal")
    detail = title if status >= 500 or status in codes else (error.detail or title)
    document = {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.url.path,
    }
    return _answer(document, dict(error.headers or {}))


def handle_recursion(request: Request[Any, Any, Any], _error: RecursionError) -> Response[Any]:
    """Answer JSON that is nested too deeply to be read."""
    error = errors.Invalid("The JSON is nested too deeply.", advice="See /schema for what this route takes.")
    return _answer(problem(error, request.url.path), {})


def handle_unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Answer what should not have happened, without its details; they are in the log."""
    _LOG.exception("unexpected error", path=request.url.path, error=type(error).__name__)
    document = {
        "type": TYPE_PREFIX + "internal",
        "title": "Internal error",
        "status": 500,
        "detail": "Something went wrong in the gateway; its log says what.",
        "instance": request.url.path,
    }
    return _answer(document, {})


def _answer(document: dict[str, Any], headers: dict[str, str]) -> Response[Any]:
    document |= {"detail": mask(str(document["detail"])), "instance": mask(str(document["instance"]))}
    for one in document.get("errors", ()):
        one["message"] = mask(one["message"])
    given = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} | headers
    return Response(document, status_code=document["status"], media_type=MEDIA_TYPE, headers=given)


def _fields(extra: Any) -> list[dict[str, str | None]]:
    items = cast("list[dict[str, Any]]", extra) if isinstance(extra, list) else []
    return [_field(item) for item in items if isinstance(item, dict)]  # pyright: ignore[reportUnnecessaryIsInstance]


def _field(item: dict[str, Any]) -> dict[str, str | None]:
    place = item.get("key") or item.get("loc")
    parts = cast("list[object]", place) if isinstance(place, list | tuple) else [place] if place else []
    name = ".".join(str(part) for part in parts)
    message = str(item.get("message") or item.get("msg") or "is wrong").rstrip(".")
    return {"field": name or None, "message": message.removeprefix("Value error, ")}


@dataclass(frozen=True, slots=True)
class ProblemDocument:
    """A problem (RFC 9457). Further members belong to its type: `advice`, `field`, `file`, `line`, `etag`, `diff`."""

    type: str
    title: str
    status: int
    detail: str
    instance: str


def _documented(status: int) -> ResponseSpec:
    return ResponseSpec(
        data_container=ProblemDocument,
        generate_examples=False,
        media_type=MEDIA_TYPE,  # pyright: ignore[reportArgumentType]
        description=HTTPStatus(status).phrase,
    )


# Every route with a key may answer so; which statuses mean what is in docs/api.md.
ERRORS = {status: _documented(status) for status in (400, 401, 403, 404, 409, 413, 422, 428, 429, 500, 503)}


HANDLERS: Any = {
    GatewayError: handle_gateway_error,
    ValidationException: handle_validation,
    HTTPException: handle_http_error,
    RecursionError: handle_recursion,
    Exception: handle_unexpected,
}

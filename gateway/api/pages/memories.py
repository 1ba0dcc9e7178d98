"""A memory, its versions, and the search for memories."""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.params import FromPath
from pydantic import ValidationError

from gateway.api.headers import gateway_of
from gateway.api.pages.comparing import side_by_side
from gateway.api.pages.entry import visit_of
from gateway.api.pages.rendering import ROOT, Http, render
from gateway.api.problems import status_of
from gateway.errors import GatewayError, Invalid, NotFound
from gateway.services import history, memories, search
from gateway.services.records import SearchAnswer
from gateway.services.requests import Search

_RESULTS = 20
_VERSIONS_SHOWN = 100


@get(f"{ROOT}/memories/{{memory_id:str}}", include_in_schema=False, sync_to_thread=True)
def show_memory(request: Http, memory_id: FromPath[str]) -> Response[Any]:
    """One memory with its text, its properties and its versions."""
    parts, principal = gateway_of(request).parts, visit_of(request).principal
    found = memories.get(principal, parts, memory_id)
    versions = history.history(principal, parts, memory_id, with_diff=False)
    names = [_named(one.version, one.commit) for one in versions]
    return render(
        request, "memory.html", memory=found, versions=list(zip(versions, names, [*names[1:], None], strict=True)),
        shown_versions=_VERSIONS_SHOWN,
    )  # fmt: skip


@get(f"{ROOT}/memories/{{memory_id:str}}/compare", include_in_schema=False, sync_to_thread=True)
def compare_versions(request: Http, memory_id: FromPath[str]) -> Response[Any]:
    """Two versions of a memory side by side; without `from` the whole of one."""
    parts, principal = gateway_of(request).parts, visit_of(request).principal
    newer = request.query_params.get("to")
    if newer is None:
        raise NotFound("The address names no version.", field="to")
    older = request.query_params.get("from")
    new = history.text_at(principal, parts, memory_id, newer)
    old = history.text_at(principal, parts, memory_id, older) if older else None
    rows = side_by_side(old.text if old else "", new.text)
    return render(request, "compare.html", memory_id=memory_id, old=old, new=new, rows=rows)


@get(f"{ROOT}/search", include_in_schema=False, sync_to_thread=True)
def search_memories(request: Http) -> Response[Any]:
    """Memories that answer a question, and why each was found."""
    gateway, visit = gateway_of(request), visit_of(request)
    asked = {name: request.query_params.get(name, "").strip() for name in ("q", "user", "agent", "workspace")}
    answer: SearchAnswer | None = None
    error: GatewayError | None = None
    if asked["q"]:
        try:
            answer = search.search(visit.principal, gateway.parts, gateway.query_vectors, _wanted(asked))
        except GatewayError as wrong:
            error = wrong
    status = status_of(error) if error is not None else 200
    return render(request, "search.html", status=status, error=error, answer=answer, given=asked)


def _wanted(asked: dict[str, str]) -> Search:
    ids = {f"{name}_id": asked[name] for name in ("user", "agent", "workspace") if asked[name]}
    try:
        return Search.model_validate({"query": asked["q"], "limit": _RESULTS, "explain": True, **ids})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(one) for one in first["loc"])
        raise Invalid(f"`{name}`: {first['msg'].removeprefix('Value error, ')}.", field=name) from None


def _named(version: int | None, commit: str | None) -> str | None:
    return str(version) if version is not None else commit


ROUTES = [show_memory, compare_versions, search_memories]

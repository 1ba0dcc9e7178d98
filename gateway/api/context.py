"""`/v1/context` and `/v1/directives`: what an agent puts before a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody

from gateway.api.headers import gateway_of, principal_of
from gateway.api.memories import IN_REVIEW, Http, in_review
from gateway.api.problems import ERRORS
from gateway.notes.paths import check_id
from gateway.services import context, directives
from gateway.services.context import ContextAnswer
from gateway.services.context_requests import ContextRequest, DirectivePatch, NewDirective
from gateway.services.directives import DirectiveRecord
from gateway.services.records import InReview


@dataclass(frozen=True, slots=True)
class DirectiveList:
    """The directives of a user: active ones, last changed first, then drafts."""

    directives: list[DirectiveRecord]
    total: int


@dataclass(frozen=True, slots=True)
class DirectiveRemoved:
    """A directive that was taken away."""

    deleted: bool
    id: str


@post("/v1/context", responses=ERRORS, status_code=200, sync_to_thread=True)
def make_context(request: Http, data: JSONBody[ContextRequest]) -> ContextAnswer:
    """What to put before a turn: memory as data in one fence, directives to follow, and how both were chosen."""
    gateway = gateway_of(request)
    return context.context(principal_of(request), gateway.parts, gateway.query_vectors, gateway.turns, data)


@get("/v1/directives", responses=ERRORS, sync_to_thread=True)
def list_directives(request: Http, user_id: FromQuery[str | None] = None) -> DirectiveList:
    """The standing instructions of a user, last changed first, and the drafts of more."""
    if user_id is not None:
        check_id(user_id, "user_id")
    found = directives.listed(principal_of(request), gateway_of(request).parts, user_id)
    return DirectiveList(found, len(found))


@post("/v1/directives", responses=ERRORS | {202: IN_REVIEW}, status_code=201, sync_to_thread=True)
def create_directive(request: Http, data: JSONBody[NewDirective]) -> Response[DirectiveRecord]:
    """Make a standing instruction: by a user it is active (201), by an agent a draft (202)."""
    done = directives.create(principal_of(request), gateway_of(request).parts, data)
    return _answered(done, 201)


@patch("/v1/directives/{directive_id:str}", responses=ERRORS, sync_to_thread=True)
def change_directive(request: Http, directive_id: FromPath[str], data: JSONBody[DirectivePatch]) -> DirectiveRecord:
    """Change a standing instruction. Agents cannot."""
    return directives.change(principal_of(request), gateway_of(request).parts, directive_id, data)


@delete("/v1/directives/{directive_id:str}", responses=ERRORS, status_code=200, sync_to_thread=True)
def delete_directive(request: Http, directive_id: FromPath[str]) -> DirectiveRemoved:
    """Take a standing instruction away. Agents cannot."""
    return DirectiveRemoved(True, directives.remove(principal_of(request), gateway_of(request).parts, directive_id))


@post("/v1/directives/{directive_id:str}/approve", responses=ERRORS, status_code=200, sync_to_thread=True)
def approve_directive(request: Http, directive_id: FromPath[str]) -> DirectiveRecord:
    """Let a suggested instruction become active; takes the review's id. Agents cannot."""
    return directives.approve(principal_of(request), gateway_of(request).parts, directive_id)


def _answered(done: DirectiveRecord | InReview, status: int) -> Response[Any]:
    return in_review(done) if isinstance(done, InReview) else Response(done, status_code=status)


ROUTES = [
    make_context,
    list_directives,
    create_directive,
    change_directive,
    delete_directive,
    approve_directive,
]

"""`/v1/context` and `/v1/directives`: what an agent puts before a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from gateway.api.headers import gateway_of, principal_of
from gateway.api.memories import IN_REVIEW, Http, Limit, in_review
from gateway.api.problems import ERRORS
from gateway.notes.paths import check_id
from gateway.services import context, directives, prompts
from gateway.services.context import ContextAnswer
from gateway.services.context_requests import ContextRequest, DirectivePatch, NewDirective
from gateway.services.directives import DirectiveRecord
from gateway.services.prompts import Prompt
from gateway.services.records import InReview

Asked = Annotated[
    str, QueryParameter(name="query", description="What the turn is about; without it nothing is recalled.")
]


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


@get("/v1/prompts/router", responses=ERRORS, sync_to_thread=True)
def router_prompt(request: Http, user_id: FromQuery[str | None] = None, token_limit: Limit = 32_000) -> Prompt:
    """The prompt of whoever distributes requests: who the user is."""
    return prompts.router(
        principal_of(request), gateway_of(request).parts, user_id=_checked(user_id), token_limit=token_limit
    )


@get("/v1/prompts/worker", responses=ERRORS, sync_to_thread=True)
def worker_prompt(request: Http, user_id: FromQuery[str | None] = None, token_limit: Limit = 32_000) -> Prompt:
    """The prompt of whoever carries out requests: what the user works on."""
    return prompts.worker(
        principal_of(request), gateway_of(request).parts, user_id=_checked(user_id), token_limit=token_limit
    )


@get("/v1/prompts/system", responses=ERRORS, sync_to_thread=True)
def system_prompt(
    request: Http, user_id: FromQuery[str | None] = None, token_limit: Limit = 32_000, asked: Asked = ""
) -> Prompt:
    """The system prompt in 15 % of the limit: platform rules, SOUL, directives, USER, MEMORY, and what is recalled."""
    gateway = gateway_of(request)
    return prompts.system(
        principal_of(request),
        gateway.parts,
        gateway.query_vectors,
        user_id=_checked(user_id),
        token_limit=token_limit,
        query=asked,
    )


def _checked(user_id: str | None) -> str | None:
    return None if user_id is None else check_id(user_id, "user_id")


def _answered(done: DirectiveRecord | InReview, status: int) -> Response[Any]:
    return in_review(done) if isinstance(done, InReview) else Response(done, status_code=status)


ROUTES = [
    make_context,
    list_directives,
    create_directive,
    change_directive,
    delete_directive,
    approve_directive,
    router_prompt,
    worker_prompt,
    system_prompt,
]

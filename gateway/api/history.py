"""`/v1/memory/{id}`: history, text, diff, blame, revert"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import ResponseHeader
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from gateway.api.headers import claim_of, gateway_of, principal_of, wait_seconds
from gateway.api.memories import IN_REVIEW, Http, IdempotencyKey, IfMatch, Prefer, Wait, written
from gateway.api.problems import ERRORS
from gateway.services import history, origins
from gateway.services.history import Blame, Difference, VersionText
from gateway.services.lineage import VersionRecord
from gateway.services.origins import Lineage
from gateway.services.records import Written
from gateway.services.requests import Precondition, Revert

_NAMED = "A commit of this memory (7 digits at least), or the number of a version."
From = Annotated[str | None, QueryParameter(name="from", description=f"{_NAMED} Without it: the one before `to`.")]
To = Annotated[str | None, QueryParameter(name="to", description=f"{_NAMED} Without it: the newest.")]
Depth = Annotated[int, QueryParameter(ge=1, le=10, description="How many steps away, in both directions.")]
_ETAG = ResponseHeader(
    name="ETag", value='"8da1"', documentation_only=True, description="The note's etag, for `If-Match`."
)


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """The versions of a memory, newest first."""

    id: str
    versions: list[VersionRecord]


@get("/v1/memory/{memory_id:str}/history", responses=ERRORS, sync_to_thread=True)
def memory_history(request: Http, memory_id: FromPath[str], diff: FromQuery[bool] = False) -> HistoryAnswer:
    """All versions of a memory, newest first; with `diff=true` what each of them changed."""
    found = history.history(principal_of(request), gateway_of(request).parts, memory_id, with_diff=diff)
    return HistoryAnswer(memory_id, found)


@get("/v1/memory/{memory_id:str}/history/{commit:str}", responses=ERRORS, sync_to_thread=True)
def memory_text(request: Http, memory_id: FromPath[str], commit: FromPath[str]) -> VersionText:
    """What a memory said in one version: `commit` is one of its commits (7 digits at least), or a version number."""
    return history.text_at(principal_of(request), gateway_of(request).parts, memory_id, commit)


@get("/v1/memory/{memory_id:str}/diff", responses=ERRORS, sync_to_thread=True)
def memory_difference(request: Http, memory_id: FromPath[str], start: From = None, end: To = None) -> Difference:
    """What changed between two versions of a memory."""
    return history.changes_between(principal_of(request), gateway_of(request).parts, memory_id, start, end)


@get("/v1/memory/{memory_id:str}/blame", responses=ERRORS, sync_to_thread=True)
def memory_blame(request: Http, memory_id: FromPath[str]) -> Blame:
    """Who wrote which line of a memory, and when."""
    return history.blame(principal_of(request), gateway_of(request).parts, memory_id)


@post(
    "/v1/memory/{memory_id:str}/revert", responses=ERRORS | {202: IN_REVIEW}, status_code=200, response_headers=[_ETAG]
)
async def revert_memory(
    request: Http,
    memory_id: FromPath[str],
    data: JSONBody[Revert],
    *,
    if_match: IfMatch = None,
    prefer: Prefer = None,
    idempotency_key: IdempotencyKey = None,
    version: FromQuery[int | None] = None,
    wait: Wait = None,
) -> Response[Written]:
    """Make a memory say again what it said once, as a new version. Needs `If-Match` or `version`, as a change does."""
    del prefer, idempotency_key  # read from the request, named here for the documentation
    principal = principal_of(request)
    precondition = Precondition.of(if_match, data.version if data.version is not None else version)
    claim = await claim_of(request, principal)
    seconds = wait_seconds(request, wait)
    parts = gateway_of(request).parts
    done = await sync_to_thread(
        history.revert, principal, parts, memory_id, data, precondition, claim=claim, wait=seconds
    )
    return written(done, 200, seconds)


@get("/v1/memory/{memory_id:str}/lineage", responses=ERRORS, sync_to_thread=True)
def memory_lineage(request: Http, memory_id: FromPath[str], depth: Depth = 3) -> Lineage:
    """What a memory came from and what came of it; and in how many turns it was shown."""
    return origins.graph(principal_of(request), gateway_of(request).parts, memory_id, depth)


ROUTES = [memory_history, memory_text, memory_difference, memory_blame, revert_memory, memory_lineage]

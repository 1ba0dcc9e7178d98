"""`/v1/memory`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from litestar import Request, Response, delete, get, patch, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter

from gateway.api.headers import claim_of, gateway_of, principal_of, wait_seconds
from gateway.api.problems import ERRORS
from gateway.ledger.idempotency import FirstAnswer
from gateway.ledger.registry import NoteFilter
from gateway.notes.namespace import parse_namespace
from gateway.notes.paths import check_id
from gateway.services import forgetting, memories, search, versions
from gateway.services.records import Deleted, InReview, MemoryRecord, Page, SearchAnswer, Written
from gateway.services.requests import MemoryPatch, NewMemory, Precondition, Search

Http = Request[Any, Any, Any]
IfMatch = Annotated[
    str | None, HeaderParameter(name="If-Match", description='The etag the change is based on: "<etag>".')
]
Prefer = Annotated[str | None, HeaderParameter(name="Prefer", description="`wait=N`: wait up to N seconds.")]
IdempotencyKey = Annotated[
    str | None, HeaderParameter(name="Idempotency-Key", description="A retried request with the same key is done once.")
]
Wait = Annotated[str | None, QueryParameter(name="wait", description="Seconds, or `searchable`.")]

Duplicates = Annotated[
    Literal["forget", "keep"],
    QueryParameter(description="What becomes of other memories there with the same text."),
]

# Named for the documentation; each answer sets its own.
_ETAG = ResponseHeader(
    name="ETag", value='"8da1"', documentation_only=True, description="The note's etag, for `If-Match`."
)
Limit = Annotated[int, QueryParameter(ge=1)]
IN_REVIEW = ResponseSpec(InReview, generate_examples=False, description="A draft waits for a person's decision")
_SAME = ResponseSpec(Written, generate_examples=False, description="The same text is there already")


@post("/v1/memory", responses=ERRORS | {200: _SAME, 202: IN_REVIEW}, status_code=201, response_headers=[_ETAG])
async def create_memory(
    request: Http,
    data: JSONBody[NewMemory],
    prefer: Prefer = None,
    idempotency_key: IdempotencyKey = None,
    wait: Wait = None,
) -> Response[Written]:
    """Write a memory. 201 for a new one; 200 where the same text is there already; 202 where a person must decide."""
    del prefer, idempotency_key  # read from the request, named here for the documentation
    principal = principal_of(request)
    claim = await claim_of(request, principal)
    seconds = wait_seconds(request, wait)
    parts = gateway_of(request).parts
    done = await sync_to_thread(memories.create, principal, parts, data, claim=claim, wait=seconds)
    created = isinstance(done, Written) and not done.duplicate
    return written(done, 201 if created else 200, seconds)


@get("/v1/memory", responses=ERRORS, sync_to_thread=True)
def list_memories(
    request: Http,
    *,
    namespace: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    workspace_id: FromQuery[str | None] = None,
    memory_type: FromQuery[str | None] = None,
    status: FromQuery[str | None] = "active",
    tag: FromQuery[str | None] = None,
    limit: Limit = 50,
    cursor: FromQuery[str | None] = None,
) -> Page:
    """A page of memories, last changed first. `status=any` lists all of them."""
    principal = principal_of(request)
    named = (("user_id", user_id), ("agent_id", agent_id), ("workspace_id", workspace_id))
    for name, value in named:
        if value is not None:
            check_id(value, name)
    wanted = NoteFilter(
        namespaces=(str(parse_namespace(namespace)),) if namespace is not None else None,
        user_id=user_id,
        agent_id=agent_id,
        workspace_id=workspace_id,
        memory_type=memory_type,
        status=None if status == "any" else status,
        tag=tag,
    )
    return memories.page(principal, gateway_of(request).parts, wanted, limit=limit, cursor=cursor)


@get("/v1/memory/{memory_id:str}", responses=ERRORS, response_headers=[_ETAG], sync_to_thread=True)
def get_memory(
    request: Http,
    memory_id: FromPath[str],
    user_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    workspace_id: FromQuery[str | None] = None,
) -> Response[MemoryRecord]:
    """One memory with its text; where ids are given, the memory must be theirs."""
    parts = gateway_of(request).parts
    asked = {"user_id": user_id, "agent_id": agent_id, "workspace_id": workspace_id}
    found = memories.get(memories.acting(principal_of(request), parts, **asked), parts, memory_id)
    memories.check_owner(found, **asked)
    return Response(found, headers={"ETag": f'"{found.etag}"'})


@patch("/v1/memory/{memory_id:str}", responses=ERRORS | {202: IN_REVIEW}, response_headers=[_ETAG])
async def change_memory(
    request: Http,
    memory_id: FromPath[str],
    data: JSONBody[MemoryPatch],
    *,
    if_match: IfMatch = None,
    prefer: Prefer = None,
    idempotency_key: IdempotencyKey = None,
    version: FromQuery[int | None] = None,
    wait: Wait = None,
) -> Response[Written]:
    """Change a memory in place. Needs `If-Match`, or `version` in body or query."""
    del prefer, idempotency_key
    principal = principal_of(request)
    precondition = Precondition.of(if_match, data.version if data.version is not None else version)
    claim = await claim_of(request, principal)
    seconds = wait_seconds(request, wait)
    done = await sync_to_thread(
        memories.update, principal, gateway_of(request).parts, memory_id, data, precondition, claim=claim, wait=seconds
    )
    return written(done, 200, seconds)


@delete("/v1/memory/{memory_id:str}", responses=ERRORS | {202: IN_REVIEW}, status_code=200)
async def delete_memory(
    request: Http,
    memory_id: FromPath[str],
    *,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
    version: FromQuery[int | None] = None,
    duplicates: Duplicates = "forget",
) -> Response[Deleted]:
    """Forget a memory. Needs `If-Match` or `version`. 202 where an agent can only propose to retire it."""
    del idempotency_key
    principal = principal_of(request)
    precondition = Precondition.of(if_match, version)
    claim = await claim_of(request, principal)
    done = await sync_to_thread(
        forgetting.forget,
        principal,
        gateway_of(request).parts,
        memory_id,
        precondition,
        alone=duplicates == "keep",
        claim=claim,
    )
    if isinstance(done, FirstAnswer):
        return replayed(done)
    return in_review(done) if isinstance(done, InReview) else Response(done)


@get("/v1/memory/{memory_id:str}/receipt", responses=ERRORS, response_headers=[_ETAG], sync_to_thread=True)
def memory_receipt(request: Http, memory_id: FromPath[str]) -> Response[Written]:
    """How far the newest version has come: file, ledger, commit, keywords, vector."""
    found = versions.receipt(principal_of(request), gateway_of(request).parts, memory_id)
    return Response(found, headers={"ETag": f'"{found.etag}"'})


@post("/v1/memory/search", responses=ERRORS, status_code=200, sync_to_thread=True)
def search_memories(request: Http, data: JSONBody[Search]) -> SearchAnswer:
    """Find memories by keywords and meaning."""
    gateway = gateway_of(request)
    return search.search(principal_of(request), gateway.parts, gateway.query_vectors, data)


def written(done: Written | InReview | FirstAnswer, status: int, waited: float) -> Response[Any]:
    """The answer to a write, or the first answer to a repeated one."""
    if isinstance(done, FirstAnswer):
        return replayed(done)
    if isinstance(done, InReview):
        return in_review(done)
    headers = {"ETag": f'"{done.etag}"'}
    if status == 201:
        headers["Location"] = f"/v1/memory/{done.id}"
    if waited:
        headers["Preference-Applied"] = f"wait={waited:g}"
    return Response(done, status_code=status, headers=headers)


def in_review(done: InReview) -> Response[Any]:
    """The answer to a write that waits for a person (RFC 9110 section 15.3.3)."""
    return Response(done, status_code=202, headers={"Location": f"/v1/reviews/{done.review.id}"})


def replayed(first: FirstAnswer) -> Response[Any]:
    """The first answer to a request that is repeated."""
    headers = {"Idempotent-Replayed": "true"}
    etag = first.answer.get("etag")
    if isinstance(etag, str):
        headers["ETag"] = f'"{etag}"'
    return Response(first.answer, status_code=first.status, headers=headers)


ROUTES = [
    create_memory,
    list_memories,
    get_memory,
    change_memory,
    delete_memory,
    memory_receipt,
    search_memories,
]

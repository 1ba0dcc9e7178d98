"""`/api/v1/memories`: the structured memories of seed 001."""

from __future__ import annotations

import json
from typing import Annotated, Any

from litestar import Request, Response, get, patch, put
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery, HeaderParameter, JSONBody

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.notes.structured import plain
from gateway.notes.structured_content import UserMemoryContent, WorkProfileContent
from gateway.services import structured
from gateway.services.records import InReview
from gateway.services.requests import Precondition
from gateway.services.structured import ANY, AllMemories, Asked, GivenContent, Stored

Http = Request[Any, Any, Any]
IfMatch = Annotated[
    str | None, HeaderParameter(name="If-Match", description='The etag the change is based on: "<etag>". Optional.')
]
UserId = FromQuery[str | None]
ETAG = ResponseHeader(
    name="ETag", value='"8da1"', documentation_only=True, description="The note's etag, for `If-Match`."
)
IN_REVIEW = ERRORS | {
    202: ResponseSpec(InReview, generate_examples=False, description="A draft waits for a person's decision")
}


@get("/api/v1/memories", responses=ERRORS, sync_to_thread=True)
def get_structured(request: Http, user_id: UserId = None) -> Response[AllMemories]:
    """Both structured memories of the key's user; of another for an administrator."""
    found = structured.get_all(principal_of(request), gateway_of(request).parts, user_id=user_id)
    both = {"user_memory": found.user_memory, "work_memory": found.work_memory}
    return _json({name: plain(one) if one is not None else None for name, one in both.items()}, None)


@get("/api/v1/memories/user", responses=ERRORS, response_headers=[ETAG], sync_to_thread=True)
def get_user_memory(request: Http, user_id: UserId = None) -> Response[UserMemoryContent | None]:
    """What is kept about the person; null where the note never read well."""
    return _stored(structured.get(principal_of(request), gateway_of(request).parts, "user", user_id=user_id))


@get("/api/v1/memories/work", responses=ERRORS, response_headers=[ETAG], sync_to_thread=True)
def get_work_memory(request: Http, user_id: UserId = None) -> Response[WorkProfileContent | None]:
    """What is kept about the person's work; null where the note never read well."""
    return _stored(structured.get(principal_of(request), gateway_of(request).parts, "work", user_id=user_id))


@put("/api/v1/memories/user", responses=IN_REVIEW, response_headers=[ETAG], sync_to_thread=True)
def put_user_memory(
    request: Http, data: JSONBody[GivenContent], user_id: UserId = None, if_match: IfMatch = None
) -> Response[UserMemoryContent]:
    """Replace what is kept about the person. 202 where an agent can only propose it."""
    parts = gateway_of(request).parts
    return _done(structured.put(principal_of(request), parts, "user", data, _asked(user_id, if_match)))


@put("/api/v1/memories/work", responses=IN_REVIEW, response_headers=[ETAG], sync_to_thread=True)
def put_work_memory(
    request: Http, data: JSONBody[GivenContent], user_id: UserId = None, if_match: IfMatch = None
) -> Response[WorkProfileContent]:
    """Replace what is kept about the person's work. 202 where an agent can only propose it."""
    parts = gateway_of(request).parts
    return _done(structured.put(principal_of(request), parts, "work", data, _asked(user_id, if_match)))


@patch("/api/v1/memories/user", responses=IN_REVIEW, response_headers=[ETAG], sync_to_thread=True)
def patch_user_memory(
    request: Http, data: JSONBody[GivenContent], user_id: UserId = None, if_match: IfMatch = None
) -> Response[UserMemoryContent]:
    """Change a part of what is kept about the person. 202 where an agent can only propose it."""
    parts = gateway_of(request).parts
    return _done(structured.patch(principal_of(request), parts, "user", data, _asked(user_id, if_match)))


@patch("/api/v1/memories/work", responses=IN_REVIEW, response_headers=[ETAG], sync_to_thread=True)
def patch_work_memory(
    request: Http, data: JSONBody[GivenContent], user_id: UserId = None, if_match: IfMatch = None
) -> Response[WorkProfileContent]:
    """Change a part of what is kept about the person's work. 202 where an agent can only propose it."""
    parts = gateway_of(request).parts
    return _done(structured.patch(principal_of(request), parts, "work", data, _asked(user_id, if_match)))


def _asked(user_id: str | None, if_match: str | None) -> Asked:
    return Asked(user_id, ANY if if_match is None else Precondition.of(if_match, None))


def _done(done: Stored | InReview) -> Response[Any]:
    if isinstance(done, InReview):
        return Response(done, status_code=202, headers={"Location": f"/v1/reviews/{done.review.id}"})
    return _stored(done)


def _stored(found: Stored) -> Response[Any]:
    return _json(plain(found.content) if found.content is not None else None, found.etag)


def _json(content: Any, etag: str | None) -> Response[Any]:
    headers = {"ETag": f'"{etag}"'} if etag is not None else {}
    # Written out here: the framework answers nothing at all for null.
    return Response(json.dumps(content, ensure_ascii=False).encode(), media_type="application/json", headers=headers)


ROUTES = [
    get_structured,
    get_user_memory,
    get_work_memory,
    put_user_memory,
    put_work_memory,
    patch_user_memory,
    patch_work_memory,
]

"""`/v1/reviews`"""

from __future__ import annotations

from typing import Any, Literal

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.params import FromPath, FromQuery, JSONBody

from gateway.api.headers import claim_of, gateway_of, principal_of
from gateway.api.memories import Http, IdempotencyKey, IfMatch, Limit, replayed
from gateway.api.problems import ERRORS
from gateway.ledger.idempotency import FirstAnswer
from gateway.ledger.reviews import ReviewFilter
from gateway.notes.drafts import ProposalKind
from gateway.notes.namespace import parse_namespace
from gateway.notes.paths import check_id
from gateway.services import reviews
from gateway.services.requests import AcceptReview, Precondition, RejectReview
from gateway.services.reviews import DecisionRecord, ReviewDetail, ReviewPage

Status = Literal["pending", "accepted", "rejected", "withdrawn", "any"]


@get("/v1/reviews", responses=ERRORS, sync_to_thread=True)
def list_reviews(
    request: Http,
    *,
    status: FromQuery[Status] = "pending",
    proposal: FromQuery[ProposalKind | None] = None,
    namespace: FromQuery[str | None] = None,
    target: FromQuery[str | None] = None,
    proposed_by: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    limit: Limit = 50,
    cursor: FromQuery[str | None] = None,
) -> ReviewPage:
    """A page of drafts, oldest first. `status=any` lists the decided ones too."""
    if user_id is not None:
        check_id(user_id, "user_id")
    wanted = ReviewFilter(
        status=None if status == "any" else status,
        proposal=proposal,
        namespace=str(parse_namespace(namespace)) if namespace is not None else None,
        target_id=target,
        proposed_by=proposed_by,
        user_id=user_id,
    )
    return reviews.page(principal_of(request), gateway_of(request).parts, wanted, limit=limit, cursor=cursor)


@get("/v1/reviews/{review_id:str}", responses=ERRORS, sync_to_thread=True)
def get_review(request: Http, review_id: FromPath[str]) -> Response[ReviewDetail]:
    """One draft: its text, and what accepting it would change in the memory as it is now."""
    found = reviews.get(principal_of(request), gateway_of(request).parts, review_id)
    return Response(found, headers={"ETag": f'"{found.review.etag}"'})


@post("/v1/reviews/{review_id:str}/accept", responses=ERRORS, status_code=200)
async def accept_review(
    request: Http,
    review_id: FromPath[str],
    data: JSONBody[AcceptReview | None] = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
) -> Response[DecisionRecord]:
    """Accept a draft, if wanted with another text. `If-Match` takes the draft's etag. Agents cannot accept."""
    del idempotency_key
    principal = principal_of(request)
    claim = await claim_of(request, principal)
    done = await sync_to_thread(
        reviews.accept,
        principal,
        gateway_of(request).parts,
        review_id,
        data or AcceptReview.model_validate({}),
        etag=_etag(if_match),
        claim=claim,
    )
    return _decided(done)


@post("/v1/reviews/{review_id:str}/reject", responses=ERRORS, status_code=200)
async def reject_review(
    request: Http,
    review_id: FromPath[str],
    data: JSONBody[RejectReview | None] = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
) -> Response[DecisionRecord]:
    """Reject a draft: the same proposal does not come back. Agents cannot reject."""
    del idempotency_key
    principal = principal_of(request)
    claim = await claim_of(request, principal)
    done = await sync_to_thread(
        reviews.reject,
        principal,
        gateway_of(request).parts,
        review_id,
        data or RejectReview.model_validate({}),
        etag=_etag(if_match),
        claim=claim,
    )
    return _decided(done)


def _etag(if_match: str | None) -> str | None:
    """The draft's etag that the caller saw; None where they do not say, or take any."""
    if if_match is None:
        return None
    etags = Precondition.of(if_match, None).etags
    return None if "*" in etags else etags[0]


def _decided(done: DecisionRecord | FirstAnswer) -> Response[Any]:
    return replayed(done) if isinstance(done, FirstAnswer) else Response(done)


ROUTES = [list_reviews, get_review, accept_review, reject_review]

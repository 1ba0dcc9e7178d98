"""The drafts that wait, one draft with what it would change, and the decision."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.params import FromPath
from litestar.response import Redirect
from pydantic import ValidationError

from gateway.api.headers import gateway_of
from gateway.api.pages.comparing import side_by_side
from gateway.api.pages.entry import Visit, fields_of, visit_of
from gateway.api.pages.rendering import ROOT, Http, render
from gateway.api.problems import status_of
from gateway.errors import GatewayError, Invalid
from gateway.importer.parts import Parts
from gateway.ledger.reviews import PENDING, STATUSES, ReviewFilter
from gateway.notes.drafts import PROPOSALS
from gateway.notes.namespace import parse_namespace
from gateway.services import paging, reviews
from gateway.services.requests import AcceptReview, RejectReview
from gateway.services.reviews import ReviewDetail, ReviewPage, ReviewRecord

_ON_A_PAGE = 50
_MOST_PAGES = 10
_FILTERS = ("status", "kind", "namespace", "by")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which drafts a person looks at; empty: any."""

    status: str = PENDING
    kind: str = ""
    namespace: str = ""
    by: str = ""

    @classmethod
    def of(cls, query: dict[str, str]) -> Wanted:
        """From the page's address; what is no such status or kind counts as not said."""
        status, kind = query.get("status", PENDING), query.get("kind", "")
        return cls(
            status=status if status in (*STATUSES, "any") else PENDING,
            kind=kind if kind in PROPOSALS else "",
            namespace=query.get("namespace", "").strip()[:300],
            by=query.get("by", "").strip()[:300],
        )

    @property
    def query(self) -> str:
        """The same as the end of an address."""
        plain = Wanted()
        said = [(name, getattr(self, name)) for name in _FILTERS if getattr(self, name) != getattr(plain, name)]
        return f"?{urlencode(said)}" if said else ""

    @property
    def filter(self) -> ReviewFilter:
        """What is asked of the service.

        Raises:
            Invalid: the namespace is none.
        """
        return ReviewFilter(
            status=None if self.status == "any" else self.status,
            proposal=self.kind or None,
            namespace=str(parse_namespace(self.namespace)) if self.namespace else None,
            proposed_by=self.by or None,
        )


@dataclass(frozen=True, slots=True)
class Around:
    """Where a draft stands among those that a person looks at."""

    before: str | None = None
    after: str | None = None
    place: int = 0
    total: int = 0


@get(ROOT, include_in_schema=False, sync_to_thread=True)
def show_queue(request: Http) -> Response[Any]:
    """The drafts that wait."""
    wanted = Wanted.of(dict(request.query_params.items()))
    cursor = request.query_params.get("cursor")
    parts, principal = gateway_of(request).parts, visit_of(request).principal
    limit = min(_ON_A_PAGE, parts.settings.policy.max_page)
    error, status = None, 200
    try:
        found = reviews.page(principal, parts, wanted.filter, limit=limit, cursor=cursor)
    except GatewayError as wrong:
        error, status, found = wrong, status_of(wrong), ReviewPage([], 0, None)
    following = _with_cursor(wanted, found.next_cursor) if found.next_cursor else None
    return render(
        request, "queue.html", status=status, error=error, wanted=wanted, found=found, following=following,
        first=cursor is None, statuses=(*STATUSES, "any"), kinds=PROPOSALS,
    )  # fmt: skip


@get(f"{ROOT}/drafts/{{review_id:str}}", include_in_schema=False, sync_to_thread=True)
def show_draft(request: Http, review_id: FromPath[str]) -> Response[Any]:
    """One draft: who proposes what and why, and what accepting it would change."""
    return _draft(request, review_id)


@post(f"{ROOT}/drafts/{{review_id:str}}", include_in_schema=False)
async def decide_draft(request: Http, review_id: FromPath[str]) -> Response[Any]:
    """Accept or reject; then comes the next draft."""
    fields = await fields_of(request)
    return await sync_to_thread(_decide, request, review_id, fields)


def _decide(request: Http, review_id: str, fields: dict[str, str]) -> Response[Any]:
    visit, parts = visit_of(request), gateway_of(request).parts
    wanted = Wanted.of(dict(request.query_params.items()))
    edited = _edited(fields)
    try:
        before = reviews.get(visit.principal, parts, review_id)
        around = _around(visit, parts, replace(wanted, status=PENDING), before.review)
        _carry_out(visit, parts, review_id, fields, edited)
    except GatewayError as error:
        return _draft(request, review_id, error=error, unsaved=edited)
    visit.tell(f"told.{fields['decision']}ed", title=before.review.title)
    following = around.after or _first(visit, parts, wanted)
    return Redirect(
        f"{ROOT}/drafts/{following}{wanted.query}" if following else f"{ROOT}{wanted.query}", status_code=303
    )


def _carry_out(visit: Visit, parts: Parts, review_id: str, fields: dict[str, str], text: str | None) -> None:
    reason = " ".join(fields.get("reason", "").split()) or None
    etag = fields.get("etag") or None
    if etag is None:
        raise Invalid("The form does not say which state of the draft was seen.", field="etag")
    try:
        match fields.get("decision"):
            case "accept":
                accepted = AcceptReview.model_validate({"text": text, "reason": reason})
                reviews.accept(visit.principal, parts, review_id, accepted, etag=etag)
            case "reject":
                rejected = RejectReview.model_validate({"reason": reason})
                reviews.reject(visit.principal, parts, review_id, rejected, etag=etag)
            case _:
                raise Invalid("A decision is to accept or to reject.", field="decision")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(one) for one in first["loc"])
        raise Invalid(f"`{name}`: {first['msg'].removeprefix('Value error, ')}.", field=name) from None


def _draft(
    request: Http, review_id: str, *, error: GatewayError | None = None, unsaved: str | None = None
) -> Response[Any]:
    visit, parts = visit_of(request), gateway_of(request).parts
    wanted = Wanted.of(dict(request.query_params.items()))
    found = reviews.get(visit.principal, parts, review_id)
    # A text that was refused for what it says can be mended in place; one for a draft that changed cannot.
    mendable = isinstance(error, Invalid)
    return render(
        request,
        "draft.html",
        status=status_of(error) if error else 200,
        error=error,
        found=found,
        review=found.review,
        wanted=wanted,
        around=_around(visit, parts, wanted, found.review),
        rows=_rows(found),
        seen=_digest(found.text),
        editing=unsaved if mendable else None,
        lost=None if mendable else unsaved,
    )


def _rows(found: ReviewDetail) -> list[Any] | None:
    if found.current is None or found.review.proposal == "archive":
        return None
    return side_by_side(found.current, found.text)


def _around(visit: Visit, parts: Parts, wanted: Wanted, review: ReviewRecord) -> Around:
    """The neighbours of a draft; beyond the first pages only what follows it is known."""
    limit = parts.settings.policy.max_page
    try:
        asked = wanted.filter
    except GatewayError:
        return Around()
    before, place, cursor = None, 0, None
    for _ in range(_MOST_PAGES):
        page = reviews.page(visit.principal, parts, asked, limit=limit, cursor=cursor)
        for one in page.reviews:
            place += 1
            if one.id == review.id:
                return Around(before, _after(visit, parts, asked, review), place, page.total)
            before = one.id
        cursor = page.next_cursor
        if cursor is None:
            break
    return Around(None, _after(visit, parts, asked, review))


def _after(visit: Visit, parts: Parts, asked: ReviewFilter, review: ReviewRecord) -> str | None:
    at = datetime.fromisoformat(review.created_at)
    cursor = paging.encoded(round(at.timestamp() * 1000), review.id)
    found = reviews.page(visit.principal, parts, asked, limit=1, cursor=cursor).reviews
    return found[0].id if found else None


def _first(visit: Visit, parts: Parts, wanted: Wanted) -> str | None:
    asked = replace(wanted, status=PENDING).filter
    found = reviews.page(visit.principal, parts, asked, limit=1, cursor=None).reviews
    return found[0].id if found else None


def _with_cursor(wanted: Wanted, cursor: str) -> str:
    return f"{ROOT}{wanted.query}{'&' if wanted.query else '?'}{urlencode({'cursor': cursor})}"


def _edited(fields: dict[str, str]) -> str | None:
    """The text of a form, where a person changed it; browsers send its lines with CRLF."""
    text = fields.get("text")
    if text is None or _digest(text) == fields.get("seen"):
        return None
    return _plain(text)


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "replace")).hexdigest()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


ROUTES = [show_queue, show_draft, decide_draft]

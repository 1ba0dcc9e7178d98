"""Reviews: which drafts wait for a person, and their decision."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import NOWHERE, Decision, Resource, decide
from gateway.clock import now
from gateway.errors import GatewayError, NotFound
from gateway.importer.parts import Parts
from gateway.ledger import agents, idempotency, registry, reviews
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.ledger.reviews import Review, ReviewFilter
from gateway.notes.difference import difference
from gateway.notes.drafts import DraftNote, memory_properties
from gateway.notes.namespace import Namespace, parse_namespace
from gateway.services import paging
from gateway.services.authors import person_of
from gateway.services.records import content_of, text_time
from gateway.services.requests import AcceptReview, RejectReview
from gateway.services.secrets import check_request
from gateway.services.skills_enabled import require
from gateway.skills import import_from_obsidian
from gateway.skills.deciding import Decider
from gateway.skills.import_from_obsidian import DecidedDraft, read_in
from gateway.skills.proposals import changed_note


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """A draft, as lists show it. Times are RFC 3339 in UTC.

    Attributes:
        status: `pending`, `accepted`, `rejected`, or `withdrawn` (its file was deleted).
        target: the memory that would change; None for a new one.
        memory_id: the memory that an accepted draft became.
        etag: of the draft's file, for `If-Match`.
        branch: the git branch that carries the change, if there is one.
    """

    id: str
    status: str
    proposal: str
    target: str | None
    target_namespace: str
    title: str
    confidence: float
    proposed_by: str
    why: str
    evidence: list[str]
    path: str
    etag: str
    branch: str | None
    memory_id: str | None
    created_at: str
    updated_at: str
    decided_at: str | None
    decided_by: str | None
    decided_via: str | None
    decision_reason: str | None


@dataclass(frozen=True, slots=True)
class ReviewDetail:
    """A draft with everything needed to decide it.

    Attributes:
        text: the text that would be kept.
        properties: the properties that the memory would have.
        current: the text of the target as it is now; None for a new memory.
        diff: what accepting would change, as a unified diff of the note; empty for a new memory.
        stale: the target changed since this was proposed; deciding brings the draft up to date first.
        problem: why the draft cannot be read right now.
    """

    review: ReviewRecord
    text: str
    properties: dict[str, Any]
    current: str | None
    diff: str
    stale: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """One page of drafts, oldest first; `next_cursor` is None on the last."""

    reviews: list[ReviewRecord]
    total: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What came of a decision; `memory_id` is None for a rejected draft."""

    review: ReviewRecord
    memory_id: str | None


def page(principal: Principal, parts: Parts, wanted: ReviewFilter, *, limit: int, cursor: str | None) -> ReviewPage:
    """A page of drafts that the principal may see, oldest first.

    Raises:
        Invalid: the limit is out of range, or the cursor is not one of ours.
    """
    paging.check_limit(limit, parts.settings.policy.max_page)
    narrowed = _visible(principal, parts, wanted)
    with parts.ledger.read() as tx:
        rows, total = reviews.page(tx, narrowed, limit=limit + 1, after=paging.cursor(cursor))
    shown = rows[:limit]
    following = paging.encoded(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None
    return ReviewPage([record(one) for one in shown], total, following)


def get(principal: Principal, parts: Parts, review_id: str) -> ReviewDetail:
    """One draft with its text, and what accepting it would change now.

    Raises:
        NotFound: there is none, or none for this principal.
    """
    review = _find(principal, parts, review_id)
    read = parts.files.read(review.path)
    if read is None:
        return ReviewDetail(record(review), "", {}, None, "", False, "The file of the draft is gone.")
    try:
        draft = read_in(parts, review, read.data)
    except GatewayError as error:
        return ReviewDetail(record(review), content_of(read.data), {}, None, "", False, str(error))
    current, diff, stale, problem = _compared(parts, review, draft)
    shown = replace(review, etag=read.etag)
    return ReviewDetail(record(shown), draft.text, dict(memory_properties(draft)), current, diff, stale, problem)


def accept(
    principal: Principal,
    parts: Parts,
    review_id: str,
    wanted: AcceptReview,
    *,
    etag: str | None = None,
    claim: Claim | None = None,
) -> DecisionRecord | FirstAnswer:
    """Accept a draft, with the edits that were made in it and those that come along.

    Raises:
        NotFound: there is none, or none for this principal.
        NotAllowed: agents and readers do not decide.
        AlreadyDecided, DraftStale, ChangedElsewhere: nothing was done; the error says what to do.
    """
    check_request(parts, wanted)
    draft = DecidedDraft(review_id, "accept", wanted.text, etag)
    return _decided(principal, parts, draft, wanted.reason, claim)


def reject(
    principal: Principal,
    parts: Parts,
    review_id: str,
    wanted: RejectReview,
    *,
    etag: str | None = None,
    claim: Claim | None = None,
) -> DecisionRecord | FirstAnswer:
    """Reject a draft: the same proposal does not come back.

    Raises:
        NotFound, NotAllowed, AlreadyDecided, ChangedElsewhere: as for `accept`.
    """
    check_request(parts, wanted)
    return _decided(principal, parts, DecidedDraft(review_id, "reject", etag=etag), wanted.reason, claim)


def record(review: Review) -> ReviewRecord:
    """A review as it is shown."""
    return ReviewRecord(
        id=review.id,
        status=review.status,
        proposal=review.proposal,
        target=review.target_id,
        target_namespace=review.namespace,
        title=review.title,
        confidence=review.confidence,
        proposed_by=review.proposed_by,
        why=review.why,
        evidence=review.evidence,
        path=review.path,
        etag=review.etag,
        branch=f"review/{review.id}" if review.branch_sha else None,
        memory_id=review.memory_id if review.status == reviews.ACCEPTED else None,
        created_at=text_time(review.created_at) or "",
        updated_at=text_time(review.updated_at) or "",
        decided_at=text_time(review.decided_at),
        decided_by=review.decided_by,
        decided_via=review.decided_via,
        decision_reason=review.decision_reason,
    )


def missing(review_id: str) -> NotFound:
    """The answer for a draft that does not exist, or is another's."""
    return NotFound(f"There is no review {review_id!r}.", field="review_id")


def _decided(
    principal: Principal, parts: Parts, wanted: DecidedDraft, reason: str | None, claim: Claim | None
) -> DecisionRecord | FirstAnswer:
    with parts.importer.lock:
        if claim is not None:
            with parts.ledger.read() as tx:
                first = idempotency.recall(tx, claim)
            if first is not None:
                return first
        review, decision = _decidable(principal, parts, wanted.review_id)
        if wanted.decision == "accept":
            require(parts, principal.user_id, "import_from_obsidian")
        parts.importer.import_paths([review.path], settled=True)  # what a person changed meanwhile comes first
        actor = person_of(principal, parts)
        entry = guard.entry(principal, "accept", "memory", namespace=review.namespace, decision=decision)
        via = "command" if principal.key_id == "local" else "api"
        done = import_from_obsidian.decide(parts, wanted, Decider(actor.label, actor, via, entry, reason))
        answer = DecisionRecord(record(done.review), done.memory_id)
        if claim is not None:
            with parts.ledger.write() as tx:
                idempotency.reserve(tx, claim, f"decide_{done.review.id}")
                idempotency.answer(tx, f"decide_{done.review.id}", 200, asdict(answer))
    return answer


def _compared(parts: Parts, review: Review, draft: DraftNote) -> tuple[str | None, str, bool, str | None]:
    """The target's text now, what accepting would change, whether the draft is stale, and what is wrong."""
    if review.target_id is None:
        return None, "", False, None
    with parts.ledger.read() as tx:
        row = registry.note(tx, review.target_id)
    read = parts.files.read(row.path) if row is not None else None
    if row is None or read is None:
        open_ = review.status == reviews.PENDING
        return None, "", open_, "The memory that the draft is about is gone." if open_ else None
    current = content_of(read.data)
    stale = review.status == reviews.PENDING and review.base.get(review.target_id) != read.etag
    if review.proposal == "archive" or review.status != reviews.PENDING:
        return current, "", stale, None
    try:
        after = changed_note(
            read.data,
            row,
            text=draft.text,
            properties=memory_properties(draft),
            removes=draft.removes,
            at=now(),
        )
    except GatewayError as error:
        return current, "", stale, str(error)
    return current, difference(read.data, after, old_name="now", new_name="proposed"), stale, None


def _find(principal: Principal, parts: Parts, review_id: str) -> Review:
    with parts.ledger.read() as tx:
        review = reviews.shown(tx, review_id)
        resource = guard.resource_at(tx, parse_namespace(review.namespace)) if review is not None else NOWHERE
    if review is None or not may_see(principal, review, resource):
        raise missing(review_id)
    return review


def may_see(principal: Principal, review: Review, resource: Resource) -> bool:
    """Whether a principal may see a draft: people who could decide it, and the agent that proposed it.

    Args:
        resource: the draft's namespace.
    """
    if _proposed(principal, review):
        return True
    as_person = replace(principal, role="user", agent_id=None) if principal.role == "reader" else principal
    return principal.agent_id is None and decide(as_person, "decide", resource).allowed


def _proposed(principal: Principal, review: Review) -> bool:
    """An agent sees what became of its own proposals."""
    own = principal.agent_id is not None and review.agent_id == principal.agent_id
    return own and review.user_id == principal.user_id


def _decidable(principal: Principal, parts: Parts, review_id: str) -> tuple[Review, Decision]:
    with parts.ledger.read() as tx:
        review = reviews.shown(tx, review_id)
        resource = guard.resource_at(tx, parse_namespace(review.namespace)) if review is not None else NOWHERE
    decision = guard.check(parts.ledger, principal, "decide", resource, missing(review_id))
    if review is None:
        raise missing(review_id)
    return review, decision


def _visible(principal: Principal, parts: Parts, wanted: ReviewFilter) -> ReviewFilter:
    """Narrow a list to what the principal may see; an administrator may see everything.

    Raises:
        NotFound: the user of the filter is unknown, or not the key's.
    """
    guard.identify(parts.ledger, principal, user_id=wanted.user_id)
    if wanted.user_id is not None:
        wanted = replace(wanted, user_id=None, below=(f"user/{wanted.user_id}/",), namespaces=())
    if principal.is_admin:
        return wanted
    if principal.agent_id is not None:
        return replace(wanted, agent_id=principal.agent_id, user_id=principal.user_id, below=None, namespaces=None)
    with parts.ledger.read() as tx:
        mine = [
            f"agent/{one.id}/{room}"
            for one in agents.agents_of(tx, principal.user_id)
            for room in ("memory", "experience")
        ]
        shared = [one.id for one in agents.all_workspaces(tx)]
        person = replace(principal, role="user")
        for workspace_id in shared:
            namespace = Namespace("workspace", workspace_id, "shared")
            if decide(person, "decide", guard.resource_at(tx, namespace)).allowed:
                mine.append(str(namespace))
    return replace(wanted, below=(f"user/{principal.user_id}/",), namespaces=tuple(mine))

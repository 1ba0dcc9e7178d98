"""Reviews: one row per draft, the decisions that are being carried out, and the lineage of what came of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import agents, events
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.events import Event
from gateway.ledger.schema import decisions, lineage, reviews

PENDING, ACCEPTED, REJECTED, WITHDRAWN = "pending", "accepted", "rejected", "withdrawn"
# What it said was forgotten: shown to nobody, and its file goes.
FORGOTTEN = "forgotten"
STATUSES = (PENDING, ACCEPTED, REJECTED, WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Review:
    """What the ledger knows of a draft; times in ms since 1970 UTC.

    Attributes:
        subject: what it is about; there is one open draft per subject.
        target_id: the memory that would change; None for a new one.
        memory_id: the memory that it becomes or changes; reserved from the beginning.
        etag: hash of the draft's file as last seen; `written_etag`: as the gateway last wrote it.
        base: etags of the notes that the proposal is based on, by memory id.
        content_hash: of the proposed text, normalised.
        branch_sha, branch_etag: the commit that makes the change on its branch, and the hash of the note there.
        pushed_sha: the commit of the branch that a remote is known to have.
        decided_via: `vault`, `api`, `command` or `git`.
    """

    id: str
    proposal: str
    status: str
    subject: str
    namespace: str
    target_id: str | None
    memory_id: str
    title: str
    confidence: float
    path: str
    etag: str
    written_etag: str
    base: dict[str, str]
    content_hash: str
    proposed_by: str
    user_id: str | None
    agent_id: str | None
    why: str
    evidence: list[str]
    candidate_id: str | None
    branch_sha: str | None
    branch_etag: str | None
    pushed_sha: str | None
    decided_by: str | None
    decided_via: str | None
    decision_reason: str | None
    created_at: int
    updated_at: int
    decided_at: int | None


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which reviews a list asks for; None means "any".

    Attributes:
        namespaces: exact names; `below` are beginnings such as `user/tom/`. With both None nothing is left out.
        agent_id: proposed by this agent.
    """

    status: str | None = PENDING
    proposal: str | None = None
    namespace: str | None = None
    target_id: str | None = None
    proposed_by: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    namespaces: tuple[str, ...] | None = None
    below: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge of lineage: `child` came from `parent` (a memory, a draft, an episode, a session)."""

    child: str
    parent: str
    relation: str
    created_at: int


_COLUMNS = [reviews.c[field.name] for field in fields(Review)]
_EDGE = [lineage.c[field.name] for field in fields(Edge)]
_AT_ONCE = 5_000


def save(tx: Transaction, review: Review) -> None:
    """Add a review, or bring its row up to date; a new status is an event."""
    before = tx.scalar(sa.select(reviews.c.status).where(reviews.c.id == review.id))
    upsert(tx, reviews, [asdict(review)], keys=["id"])
    if before != review.status:
        events.write(tx, _event(review))


def review(tx: Transaction, review_id: str) -> Review | None:
    """The review of this id."""
    row = tx.execute(sa.select(*_COLUMNS).where(reviews.c.id == review_id)).first()
    return Review(*row) if row else None


def shown(tx: Transaction, review_id: str) -> Review | None:
    """The review of this id, unless what it says was forgotten."""
    found = review(tx, review_id)
    return found if found is not None and found.status != FORGOTTEN else None


def by_id(tx: Transaction, review_ids: Collection[str]) -> dict[str, Review]:
    """Several reviews at once."""
    found: dict[str, Review] = {}
    ordered = list(review_ids)
    for start in range(0, len(ordered), _AT_ONCE):
        where = reviews.c.id.in_(ordered[start : start + _AT_ONCE])
        found |= {row.id: Review(*row) for row in tx.execute(sa.select(*_COLUMNS).where(where))}
    return found


def open_for(tx: Transaction, subject: str) -> Review | None:
    """The open draft of a subject."""
    query = sa.select(*_COLUMNS).where(reviews.c.subject == subject, reviews.c.status == PENDING)
    row = tx.execute(query.order_by(reviews.c.created_at)).first()
    return Review(*row) if row else None


def pending(tx: Transaction, *, with_branch: bool = False) -> list[Review]:
    """All open drafts, oldest first; only those that have a branch, if asked."""
    query = sa.select(*_COLUMNS).where(reviews.c.status == PENDING)
    if with_branch:
        query = query.where(reviews.c.branch_sha.is_not(None))
    return [Review(*row) for row in tx.execute(query.order_by(reviews.c.created_at, reviews.c.id))]


def pushed(tx: Transaction) -> list[Review]:
    """Reviews, open or decided, whose branch a remote is known to have."""
    return [Review(*row) for row in tx.execute(sa.select(*_COLUMNS).where(reviews.c.pushed_sha.is_not(None)))]


def of_paths(tx: Transaction, paths: Collection[str]) -> dict[str, Review]:
    """Reviews by the path of their draft."""
    found: dict[str, Review] = {}
    ordered = list(paths)
    for start in range(0, len(ordered), _AT_ONCE):
        where = reviews.c.path.in_(ordered[start : start + _AT_ONCE])
        found |= {row.path: Review(*row) for row in tx.execute(sa.select(*_COLUMNS).where(where))}
    return found


def reserved(tx: Transaction, memory_ids: Collection[str]) -> dict[str, Review]:
    """Open drafts whose branch makes or changes one of these memories, by memory id."""
    if not memory_ids:
        return {}
    found: dict[str, Review] = {}
    ordered = list(memory_ids)
    for start in range(0, len(ordered), _AT_ONCE):
        where = sa.and_(
            reviews.c.memory_id.in_(ordered[start : start + _AT_ONCE]),
            reviews.c.status == PENDING,
            reviews.c.branch_sha.is_not(None),
        )
        found |= {row.memory_id: Review(*row) for row in tx.execute(sa.select(*_COLUMNS).where(where))}
    return found


def of_candidates(tx: Transaction, candidate_ids: Collection[str]) -> dict[str, Review]:
    """Reviews by the candidate that they came from."""
    rows = tx.execute(sa.select(*_COLUMNS).where(reviews.c.candidate_id.in_(list(candidate_ids))))
    return {row.candidate_id: Review(*row) for row in rows}


def was_reviewed(tx: Transaction, memory_id: str) -> bool:
    """Whether a person accepted a draft of this memory."""
    query = sa.select(reviews.c.id).where(reviews.c.memory_id == memory_id, reviews.c.status == ACCEPTED).limit(1)
    return tx.execute(query).first() is not None


def page(
    tx: Transaction, wanted: ReviewFilter, *, limit: int, after: tuple[int, str] | None
) -> tuple[list[Review], int]:
    """One page, oldest first, and how many there are in all. `after` is the (time, id) of the last one seen."""
    where = _conditions(wanted)
    total = tx.scalar(sa.select(sa.func.count()).select_from(reviews).where(*where)) or 0
    if after is not None:
        at, last = after
        later = sa.and_(reviews.c.created_at == at, reviews.c.id > last)
        where.append(sa.or_(reviews.c.created_at > at, later))
    query = sa.select(*_COLUMNS).where(*where).order_by(reviews.c.created_at, reviews.c.id).limit(limit)
    return [Review(*row) for row in tx.execute(query)], total


def counts(tx: Transaction) -> dict[str, int]:
    """How many reviews have which status."""
    query = sa.select(reviews.c.status, sa.func.count()).group_by(reviews.c.status)
    return {row[0]: row[1] for row in tx.execute(query)}


def trust(tx: Transaction, proposed_by: str, namespace: str) -> float:
    """By how much the confidence of an author's proposals for a namespace counts, between 0.5 and 1.

    1 - rejected / (2 * (accepted + rejected + 4)): 1 without any decision; one rejection alone does not silence it.
    What an agent of this name did that was taken out since says nothing of the one that bears it now.
    """
    kind, _, name = proposed_by.partition(":")
    bearer = agents.agent(tx, name) if kind == "agent" else None
    query = (
        sa.select(reviews.c.status, sa.func.count())
        .where(reviews.c.proposed_by == proposed_by, reviews.c.namespace == namespace)
        .where(reviews.c.status.in_([ACCEPTED, REJECTED]))
        .where(reviews.c.created_at >= (bearer.created_at if bearer else 0))
        .group_by(reviews.c.status)
    )
    found: dict[str, int] = {row[0]: row[1] for row in tx.execute(query)}
    accepted, rejected = found.get(ACCEPTED, 0), found.get(REJECTED, 0)
    return 1 - rejected / (2 * (accepted + rejected + 4))


def begin_decision(tx: Transaction, review_id: str, plan: dict[str, Any]) -> None:
    """Write down how a decision is being carried out, before any file is touched."""
    upsert(tx, decisions, [{"review_id": review_id, "plan": plan, "created_at": now_ms()}], keys=["review_id"])


def open_decisions(tx: Transaction) -> dict[str, dict[str, Any]]:
    """Decisions that were begun and neither finished nor given up, oldest first."""
    query = sa.select(decisions.c.review_id, decisions.c.plan).order_by(decisions.c.created_at, decisions.c.review_id)
    return {row[0]: row[1] for row in tx.execute(query)}


def end_decision(tx: Transaction, review_id: str) -> None:
    """The decision is carried out, or was given up."""
    tx.execute(sa.delete(decisions).where(decisions.c.review_id == review_id))


def add_edges(tx: Transaction, edges: Sequence[tuple[str, str, str]]) -> None:
    """Record lineage: (child, parent, relation). A known edge stays as it is."""
    rows = [
        {"child": child, "parent": parent, "relation": relation, "created_at": now_ms()}
        for child, parent, relation in edges
    ]
    upsert(tx, lineage, rows, keys=["child", "parent", "relation"])


def edges_of(tx: Transaction, identifier: str) -> list[Edge]:
    """All edges that begin or end at a memory or draft, oldest first."""
    where = sa.or_(lineage.c.child == identifier, lineage.c.parent == identifier)
    return [Edge(*row) for row in tx.execute(sa.select(*_EDGE).where(where).order_by(lineage.c.id))]


def _event(review: Review) -> Event:
    change = "waiting" if review.status == PENDING else review.status
    data = {"memory_id": review.memory_id, "agent_id": review.agent_id}
    return Event(events.DRAFT, change, review.id, review.namespace, user_id=review.user_id, data=data)


def _conditions(wanted: ReviewFilter) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = [reviews.c.status != FORGOTTEN]
    for name in ("status", "proposal", "namespace", "target_id", "proposed_by", "agent_id", "user_id"):
        value = getattr(wanted, name)
        if value is not None:
            where.append(reviews.c[name] == value)
    if wanted.namespaces is not None or wanted.below is not None:
        among = [reviews.c.namespace.in_(wanted.namespaces or ())]
        among += [reviews.c.namespace.startswith(start, autoescape=True) for start in wanted.below or ()]
        where.append(sa.or_(*among))
    return where

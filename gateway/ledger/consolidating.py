"""What consolidation looks up: open candidates, those that were united, memories in turn, drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

import sqlalchemy as sa

from gateway.ledger.database import Transaction
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import Review, open_for, review
from gateway.ledger.schema import candidates, lineage, notes, reviews, sessions
from gateway.ledger.sessions import Candidate

OPEN, PROPOSED, MERGED = "candidate", "proposed", "merged"
_CANDIDATE = [candidates.c[field.name] for field in fields(Candidate)]
_NOTE = [notes.c[field.name] for field in fields(NoteRow)]


@dataclass(frozen=True, slots=True)
class Lasting:
    """A candidate, and when its session ends (ms)."""

    candidate: Candidate
    until: int


def open_candidates(tx: Transaction, user_id: str, namespace: str, *, limit: int, at: int) -> list[Lasting]:
    """Candidates of a user for a namespace that wait, themselves or as drafts, in living sessions; newest first."""
    query = (
        sa.select(*_CANDIDATE, sessions.c.expires_at)
        .join(sessions, sa.and_(sessions.c.user_id == candidates.c.user_id, sessions.c.id == candidates.c.session_id))
        .where(candidates.c.user_id == user_id, candidates.c.namespace == namespace)
        .where(candidates.c.status.in_([OPEN, PROPOSED]), sessions.c.expires_at > at)
        .order_by(candidates.c.created_at.desc(), candidates.c.id)
        .limit(limit)
    )
    rows = [tuple(row) for row in tx.execute(query)]
    return [Lasting(Candidate(*row[: len(_CANDIDATE)]), row[-1]) for row in rows]


def living(tx: Transaction, candidate_ids: Collection[str], *, at: int) -> list[Candidate]:
    """Those candidates whose session has not ended at a time (ms)."""
    query = (
        sa.select(*_CANDIDATE)
        .join(sessions, sa.and_(sessions.c.user_id == candidates.c.user_id, sessions.c.id == candidates.c.session_id))
        .where(candidates.c.id.in_(list(candidate_ids)), sessions.c.expires_at > at)
        .order_by(candidates.c.created_at, candidates.c.id)
    )
    return [Candidate(*row) for row in tx.execute(query)]


def united(tx: Transaction, lead_ids: Collection[str]) -> dict[str, list[Candidate]]:
    """What says the same as these candidates and was united with them."""
    query = sa.select(*_CANDIDATE).where(candidates.c.status == MERGED, candidates.c.memory_id.in_(list(lead_ids)))
    found: dict[str, list[Candidate]] = {}
    for row in tx.execute(query.order_by(candidates.c.created_at, candidates.c.id)):
        found.setdefault(row.memory_id, []).append(Candidate(*row))
    return found


def unite(tx: Transaction, lead_id: str, others: Collection[str]) -> None:
    """These candidates, and what was united with them, now stand behind another."""
    behind = sa.or_(
        sa.and_(candidates.c.id.in_(list(others)), candidates.c.status == OPEN),
        sa.and_(candidates.c.memory_id.in_(list(others)), candidates.c.status == MERGED),
    )
    tx.execute(sa.update(candidates).where(behind).values(status=MERGED, memory_id=lead_id))


def free_orphans(tx: Transaction) -> int:
    """A candidate whose leader went with its session stands for itself again. Returns how many."""
    leader = candidates.alias("leader")
    known = sa.select(leader.c.id).where(leader.c.id == candidates.c.memory_id).exists()
    orphans = sa.and_(candidates.c.status == MERGED, ~known)
    return tx.execute(sa.update(candidates).where(orphans).values(status=OPEN, memory_id=None)).rowcount


def still(tx: Transaction, candidate_ids: Sequence[str]) -> dict[str, str]:
    """The present status of candidates that are still there."""
    query = sa.select(candidates.c.id, candidates.c.status).where(candidates.c.id.in_(list(candidate_ids)))
    return {row[0]: row[1] for row in tx.execute(query)}


def active_after(tx: Transaction, note_id: str, limit: int) -> list[NoteRow]:
    """Active memories that the gateway may move, by id, after one."""
    where = (notes.c.note_id > note_id, notes.c.status == "active", sa.not_(notes.c.read_only))
    query = sa.select(*_NOTE).where(*where).order_by(notes.c.note_id).limit(limit)
    return [NoteRow(*row) for row in tx.execute(query)]


def last_said(tx: Transaction, note_ids: Collection[str]) -> dict[str, int]:
    """When something was last added to what memories rest on (ms), by id."""
    query = sa.select(lineage.c.child, sa.func.max(lineage.c.created_at)).where(
        lineage.c.child.in_(list(note_ids)), lineage.c.relation == "evidence"
    )
    return {row[0]: row[1] for row in tx.execute(query.group_by(lineage.c.child))}


def open_drafts(tx: Transaction, proposed_by: str) -> int:
    """How many drafts of an author wait."""
    where = (reviews.c.proposed_by == proposed_by, reviews.c.status == "pending")
    return tx.scalar(sa.select(sa.func.count()).select_from(reviews).where(*where)) or 0


def open_draft(tx: Transaction, namespace: str, proposed_by: str, target_id: str | None) -> Review | None:
    """The open draft of a memory, whoever made it; of a new one in a namespace, an author's."""
    if target_id is not None:
        return open_for(tx, f"memory:{target_id}")
    where = (reviews.c.namespace == namespace, reviews.c.proposed_by == proposed_by, reviews.c.status == "pending")
    found = tx.scalar(sa.select(reviews.c.id).where(*where).limit(1))
    return review(tx, found) if found is not None else None


def decided_drafts(tx: Transaction, namespace: str, proposed_by: str) -> list[tuple[str, list[str]]]:
    """Path and evidence of an author's drafts for a namespace that a person has decided."""
    where = (reviews.c.namespace == namespace, reviews.c.proposed_by == proposed_by, reviews.c.status != "pending")
    return [(row[0], list(row[1])) for row in tx.execute(sa.select(reviews.c.path, reviews.c.evidence).where(*where))]

"""Clearing a scope in the ledger: what is hidden in the first transaction, and what goes in the batches after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import dirty, erasure, jobs, registry, tombstones
from gateway.ledger.database import Transaction
from gateway.ledger.fences import Fence
from gateway.ledger.jobs import Job
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import PENDING
from gateway.ledger.schema import candidates, lineage, reviews, sessions
from gateway.ledger.schema_upkeep import erasures
from gateway.ledger.schema_users import sandbox_files


def begin(tx: Transaction, job: Job, fence: Fence) -> None:
    """Order a clear job and hide all it concerns, in one transaction."""
    jobs.add(tx, replace(job, total=registry.begin_clearing(tx, fence.start, fence.kept)))
    below = sa.and_(
        reviews.c.namespace.startswith(fence.start, autoescape=True), reviews.c.namespace.not_in(fence.kept)
    )
    concerned = below
    if fence.scope == "agent":  # what it proposed to others and nobody decided goes with it
        concerned = sa.or_(below, sa.and_(reviews.c.agent_id == fence.scope_id, reviews.c.status == PENDING))
    erasure.forget_drafts(tx, list(tx.scalars(sa.select(reviews.c.id).where(concerned))))
    if (theirs := _sessions(fence)) is not None:
        tx.execute(sa.update(sessions).where(theirs).values(expires_at=now_ms(), summary=""))


def widen(tx: Transaction, job: Job, fence: Fence) -> None:
    """An open job is to take more than it was first asked to."""
    more = registry.begin_clearing(tx, fence.start, fence.kept)
    jobs.change(tx, job.id, options=job.options, total=(job.total or 0) + more)


def forget_rows(tx: Transaction, rows: Sequence[NoteRow], job_id: str) -> None:
    """Memories whose file is not the gateway's to take away, or is gone: only the ledger forgets them."""
    erasure.bury(tx, rows, job_id=job_id)
    registry.drop_notes(tx, [row.note_id for row in rows])
    registry.drop_files(tx, [row.path for row in rows])


def clear_sessions(tx: Transaction, fence: Fence, limit: int) -> int:
    """Remove sessions of the scope with their episodes and candidates, a batch at a time. Returns how many."""
    theirs = _sessions(fence)
    return _drop_sessions(tx, theirs, limit) if theirs is not None else 0


def clear_earlier_sessions(tx: Transaction, fence: Fence, *, before: int) -> None:
    """Remove the scope's sessions that were begun before a time in ms: in a restored ledger, what was cleared since."""
    if (theirs := _sessions(fence)) is not None:
        _drop_sessions(tx, sa.and_(theirs, sessions.c.created_at < before))


def finish(tx: Transaction, fence: Fence) -> None:
    """Candidates for the scope, kept answers about it and its sandboxes go."""
    tx.execute(sa.delete(candidates).where(candidates.c.namespace.startswith(fence.start, autoescape=True)))
    if fence.scope == "user":
        tx.execute(sa.delete(sandbox_files).where(sandbox_files.c.user_id == fence.scope_id))
    erasure.shorten_answers(tx, f'"{fence.start}')


def retire(tx: Transaction, fence: Fence, job_id: str) -> None:
    """Nothing of a retired agent stays that would concern another of its name."""
    finish(tx, fence)
    tombstones.drop_scope(tx, fence.start)
    gone = sa.select(erasures.c.note_id).where(erasures.c.job_id == job_id)
    tx.execute(sa.delete(lineage).where(sa.or_(lineage.c.child.in_(gone), lineage.c.parent.in_(gone))))


def _drop_sessions(tx: Transaction, where: sa.ColumnElement[bool], limit: int | None = None) -> int:
    found = tx.execute(sa.select(sessions.c.user_id, sessions.c.id).where(where).limit(limit)).all()
    for user_id, session_id in found:
        tx.execute(sa.delete(sessions).where(sessions.c.user_id == user_id, sessions.c.id == session_id))
        dirty.forget(tx, dirty.SESSION, f"{user_id}/{session_id}")
    return len(found)


def _sessions(fence: Fence) -> sa.ColumnElement[bool] | None:
    match fence.scope:
        case "user":
            return sessions.c.user_id == fence.scope_id
        case "agent":
            return sessions.c.agent_id == fence.scope_id
        case "session":
            return sa.and_(sessions.c.user_id == (fence.user_id or ""), sessions.c.id == fence.scope_id)
        case _:
            return None

"""Jobs: long work that survives a crash, with its progress. A job names a scope, never any text."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import events
from gateway.ledger.database import Transaction
from gateway.ledger.events import Event
from gateway.ledger.schema_upkeep import jobs

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
OPEN = (WAITING, RUNNING)


@dataclass(frozen=True, slots=True)
class Job:
    """One job; times in ms since 1970 UTC.

    Attributes:
        kind: `clear`, `retire`, `purge`, `rebuild`, `migrate`, `maintain`, `consolidate`.
        scope, scope_id: what it works on: `user`, `agent`, `workspace`, `session` and its id.
        user_id: the user who may follow it besides administrators.
        options: what was asked for.
        phase: where it is; a crash goes on from there.
        total: how much there is to do; None where nobody knows.
    """

    id: str
    kind: str
    status: str
    scope: str | None
    scope_id: str | None
    user_id: str | None
    options: dict[str, Any]
    phase: str
    done: int
    total: int | None
    error: str | None
    requested_by: str
    created_at: int
    updated_at: int
    finished_at: int | None


_COLUMNS = [jobs.c[field.name] for field in fields(Job)]


def new(
    kind: str,
    *,
    requested_by: str,
    scope: str | None = None,
    scope_id: str | None = None,
    user_id: str | None = None,
    options: dict[str, Any] | None = None,
    phase: str = "",
) -> Job:
    """A job that waits to be begun; not yet written."""
    at = now_ms()
    return Job(
        f"job_{uuid.uuid4().hex[:24]}", kind, WAITING, scope, scope_id, user_id, options or {}, phase, 0, None, None,
        requested_by, at, at, None,
    )  # fmt: skip


def add(tx: Transaction, job: Job) -> None:
    """Write a new job."""
    tx.execute(sa.insert(jobs).values(**asdict(job)))
    events.write(tx, _event(job, job.status))


def change(tx: Transaction, job_id: str, **values: Any) -> None:
    """Set columns of a job."""
    tx.execute(sa.update(jobs).where(jobs.c.id == job_id).values(updated_at=now_ms(), **values))
    changed = job(tx, job_id)
    if changed is not None:
        events.write(tx, _event(changed, changed.status if "status" in values else "progress"))


def finish(tx: Transaction, job_id: str, *, error: str | None = None) -> None:
    """The job is over: done, or failed for a reason."""
    change(tx, job_id, status=FAILED if error else DONE, error=error, finished_at=now_ms())


def job(tx: Transaction, job_id: str) -> Job | None:
    """The job of this id."""
    row = tx.execute(sa.select(*_COLUMNS).where(jobs.c.id == job_id)).first()
    return Job(*row) if row else None


def open_jobs(tx: Transaction, kinds: Collection[str] | None = None) -> list[Job]:
    """Jobs that wait or run, oldest first."""
    query = sa.select(*_COLUMNS).where(jobs.c.status.in_(OPEN))
    if kinds is not None:
        query = query.where(jobs.c.kind.in_(list(kinds)))
    return [Job(*row) for row in tx.execute(query.order_by(jobs.c.created_at, jobs.c.id))]


def of_kinds(tx: Transaction, kinds: Collection[str]) -> list[Job]:
    """All jobs of some kinds, oldest first."""
    query = sa.select(*_COLUMNS).where(jobs.c.kind.in_(list(kinds)))
    return [Job(*row) for row in tx.execute(query.order_by(jobs.c.created_at, jobs.c.id))]


def page(
    tx: Transaction, *, user_id: str | None, limit: int, before: tuple[int, str] | None, status: str | None = None
) -> list[Job]:
    """Jobs, newest first; only those that a user may follow, if one is named."""
    query = sa.select(*_COLUMNS)
    if user_id is not None:
        query = query.where(jobs.c.user_id == user_id)
    if status is not None:
        query = query.where(jobs.c.status == status)
    if before is not None:
        at, job_id = before
        earlier = sa.and_(jobs.c.created_at == at, jobs.c.id < job_id)
        query = query.where(sa.or_(jobs.c.created_at < at, earlier))
    query = query.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit)
    return [Job(*row) for row in tx.execute(query)]


def _event(job: Job, change: str) -> Event:
    data = {"job": job.kind, "phase": job.phase, "done": job.done, "total": job.total}
    return Event(events.JOB, change, job.id, user_id=job.user_id, data=data)


def trim(tx: Transaction, older_than: int, *, most: int = 100_000) -> int:
    """Remove jobs that ended before a time (ms), at most so many at once. Returns how many."""
    ended = sa.select(jobs.c.id).where(jobs.c.finished_at < older_than).limit(most)
    return tx.execute(sa.delete(jobs).where(jobs.c.id.in_(ended))).rowcount

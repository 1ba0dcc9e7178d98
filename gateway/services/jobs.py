"""Jobs: long work and how far it is, for those it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.errors import Invalid, NotFound
from gateway.importer.parts import Parts
from gateway.ledger import jobs
from gateway.ledger.jobs import Job
from gateway.services import paging
from gateway.services.records import text_time

STATUSES = (jobs.WAITING, jobs.RUNNING, jobs.DONE, jobs.FAILED)
_NOBODY = ""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job. Times are RFC 3339 in UTC.

    Attributes:
        status: `waiting`, `running`, `done` or `failed`.
        scope, scope_id: what it works on, e.g. `user` and its id.
        phase: where it is.
        done, total: how far it is; `total` is None where nobody knows.
        error: why it failed.
    """

    id: str
    kind: str
    status: str
    scope: str | None
    scope_id: str | None
    phase: str
    done: int
    total: int | None
    error: str | None
    created_at: str
    updated_at: str
    finished_at: str | None
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of jobs, newest first; `next_cursor` is None on the last."""

    jobs: list[JobRecord]
    next_cursor: str | None


def page(principal: Principal, parts: Parts, *, status: str | None, limit: int, cursor: str | None) -> JobPage:
    """A page of jobs that the principal may follow, newest first.

    Raises:
        Invalid: the limit is out of range, there is no such status, or the cursor is not one of ours.
    """
    paging.check_limit(limit, parts.settings.policy.max_page)
    if status is not None and status not in STATUSES:
        raise Invalid(f"A job is one of {list(STATUSES)}.", field="status")
    user_id = None if principal.is_admin else _follower(principal)
    with parts.ledger.read() as tx:
        found = jobs.page(tx, user_id=user_id, limit=limit + 1, before=paging.cursor(cursor), status=status)
    shown = found[:limit]
    following = paging.encoded(shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    parts.reads.add(guard.entry(principal, "list", "job", decision=_why(principal)))
    return JobPage([record(one) for one in shown], following)


def get(principal: Principal, parts: Parts, job_id: str) -> JobRecord:
    """One job.

    Raises:
        NotFound: there is none, or none that the principal may follow.
    """
    with parts.ledger.read() as tx:
        found = jobs.job(tx, job_id)
    if found is None or not (principal.is_admin or found.user_id == _follower(principal)):
        refusal = Decision(False, "no job that the key may follow")
        parts.reads.add(guard.entry(principal, "read", "job", target_id=job_id[:64], decision=refusal))
        raise NotFound(f"There is no job {job_id[:80]!r}.", field="job_id")
    parts.reads.add(guard.entry(principal, "read", "job", target_id=found.id, decision=_why(principal)))
    return record(found)


def record(job: Job) -> JobRecord:
    """A job as it is shown."""
    return JobRecord(
        id=job.id,
        kind=job.kind,
        status=job.status,
        scope=job.scope,
        scope_id=job.scope_id,
        phase=job.phase,
        done=job.done,
        total=job.total,
        error=job.error,
        created_at=text_time(job.created_at) or "",
        updated_at=text_time(job.updated_at) or "",
        finished_at=text_time(job.finished_at),
        options=job.options,
    )


def _follower(principal: Principal) -> str:
    """The user whose jobs the key may follow. An agent follows none: a job names what else its user has."""
    return principal.user_id or _NOBODY if principal.agent_id is None else _NOBODY


def _why(principal: Principal) -> Decision:
    return Decision(True, "admin" if principal.is_admin else "the user's own jobs")

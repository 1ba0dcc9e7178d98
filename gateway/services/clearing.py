"""Clearing a whole user, agent, workspace or session: ordered in one transaction, closed from then on, done in batches.

Design section 8, seed 002: persistent, fenced for readers and writers at once, 256 at a time, resumed after a crash.
Standing directives stay unless asked for. Tombstones stay, except those of an agent that retires.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from pydantic import Field

from gateway import log
from gateway.access import guard
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import ChangedElsewhere, GatewayError, Invalid, NotFound
from gateway.importer.drafts import GATEWAY
from gateway.importer.parts import Parts
from gateway.importer.plan import Observation
from gateway.importer.write import Order
from gateway.ledger import Transaction, audit, clearing, fences, jobs, keys, registry, sessions
from gateway.ledger import agents as agent_rows
from gateway.ledger.audit import AuditEntry
from gateway.ledger.fences import CLEAR, RETIRE, Fence
from gateway.ledger.jobs import Job
from gateway.ledger.registry import NoteRow
from gateway.services import agents, fixed_notes, forgetting, workspaces
from gateway.services.requests import RequestBody

BATCH = 256
KINDS = (CLEAR, RETIRE)
_LOG = log.get("clearing")


class ClearRequest(RequestBody):
    """The body of `POST /v1/clear`.

    Attributes:
        user_id: of a `session`, whose it is; an administrator may need to say.
    """

    scope: Literal["user", "agent", "workspace", "session"]
    id: str = Field(min_length=1, max_length=160)
    include_directives: bool = False
    user_id: str | None = None


def order(principal: Principal, parts: Parts, wanted: ClearRequest) -> Job:
    """Order a clear. From this moment nothing of the scope is read or written. An open job of the scope is returned.

    Raises:
        NotFound: there is no such scope, or it is another's.
        NotAllowed: the role may not do this.
    """
    decision = agents.keeper(principal)
    user_id = _owner(principal, parts, wanted)
    entry = guard.entry(principal, "clear", wanted.scope, target_id=wanted.id, decision=decision)
    job = jobs.new(
        CLEAR,
        requested_by=_label(principal),
        scope=wanted.scope,
        scope_id=wanted.id,
        user_id=user_id,
        options={"include_directives": wanted.include_directives},
        phase="memories",
    )
    return _begin(parts, job, entry)


def retire(principal: Principal, parts: Parts, agent_id: str) -> Job:
    """Take an agent out, end its keys, and order that everything of it goes: another of its name begins clean.

    Raises:
        NotAllowed: the role may not do this.
        NotFound: there is no such agent, or it is another's.
    """
    decision = agents.keeper(principal)
    owner = agents.get(principal, parts, agent_id).owner_user_id
    entry = guard.entry(principal, "remove_agent", "agent", target_id=agent_id, decision=decision)
    job = jobs.new(
        RETIRE, requested_by=_label(principal), scope="agent", scope_id=agent_id, user_id=owner, phase="memories"
    )

    def take_out(tx: Transaction) -> None:
        agent_rows.remove_agent(tx, agent_id)
        agent_rows.shut_out(tx, agent_id)
        keys.revoke_for(tx, agent_id=agent_id)

    return _begin(parts, job, entry, take_out)


def run(parts: Parts, job_id: str, *, keep_going: Callable[[], bool] = lambda: True) -> bool:
    """Carry a job out, or on, batch by batch. Returns whether it is done; a stop leaves it for the next start."""
    with parts.ledger.read() as tx:
        job = jobs.job(tx, job_id)
    if job is None or job.status not in jobs.OPEN:
        return True
    fence = fence_of(job)
    with parts.ledger.write() as tx:
        jobs.change(tx, job_id, status=jobs.RUNNING)
    for step in (_memories, _drafts, _sessions):
        while step(parts, job, fence):
            if not keep_going():
                return False
    parts.feed.feed()
    if not _finish(parts, job, fence):
        return run(parts, job_id, keep_going=keep_going)  # it was widened meanwhile
    return True


def fence_of(job: Job) -> Fence:
    """What a clear job closes."""
    directives = bool(job.options.get("include_directives"))
    return Fence(job.scope or "", job.scope_id or "", job.user_id, directives, job.id)


def _owner(principal: Principal, parts: Parts, wanted: ClearRequest) -> str | None:
    """Whose scope it is, if the principal may clear it."""
    match wanted.scope:
        case "user":
            return guard.identify(parts.ledger, principal, user_id=wanted.id).user_id
        case "agent":
            return agents.get(principal, parts, wanted.id).owner_user_id
        case "workspace":
            return workspaces.kept(principal, parts, wanted.id).owner_user_id
        case "session":
            return _session_owner(principal, parts, wanted)


def _session_owner(principal: Principal, parts: Parts, wanted: ClearRequest) -> str:
    context = guard.identify(parts.ledger, principal, user_id=wanted.user_id)
    with parts.ledger.read() as tx:
        found = sessions.sessions_named(tx, wanted.id, at=now_ms())
    theirs = [one.user_id for one in found if context.user_id in (None, one.user_id)]
    if not theirs:
        raise NotFound(f"There is no session {wanted.id!r}.", field="id")
    if len(theirs) > 1:
        raise Invalid("Several users have a session of this id.", field="user_id", advice="Name the user.")
    return theirs[0]


def _begin(parts: Parts, job: Job, entry: AuditEntry, also: Callable[[Transaction], None] = lambda _tx: None) -> Job:
    fence = fence_of(job)
    with parts.importer.lock, parts.ledger.write() as tx:
        same = [one for one in jobs.open_jobs(tx, KINDS) if (one.scope, one.scope_id) == (job.scope, job.scope_id)]
        open_job = next((one for one in same if one.user_id == job.user_id and one.kind == job.kind), None)
        if open_job is not None and not _takes_more(job, open_job):
            return open_job
        if open_job is not None:
            job = replace(open_job, options=job.options)
            clearing.widen(tx, job, fence_of(job))
        else:
            clearing.begin(tx, job, fence)
        also(tx)
        audit.write(tx, entry)
        parts.importer.closed = fences.active(tx)
    parts.on_forgotten(None)
    parts.wake()
    parts.wake_jobs()
    with parts.ledger.read() as tx:
        return jobs.job(tx, job.id) or job


def _takes_more(wanted: Job, open_job: Job) -> bool:
    return bool(wanted.options.get("include_directives")) and not open_job.options.get("include_directives")


def _memories(parts: Parts, job: Job, fence: Fence) -> bool:
    """Clear a batch of memories. Returns whether there may be more.

    A file that cannot be taken away stays, as one that is the person's does: it is not recalled, and is listed as a
    problem. One that was saved at this very moment is taken in the next batch.
    """
    with parts.importer.lock:
        with parts.ledger.write() as tx:
            registry.begin_clearing(tx, fence.start, fence.kept)  # what was taken in anew since the last batch
            rows = registry.clearing(tx, fence.start, BATCH)
        if not rows:
            return False
        taken, left = _sorted_out(parts, rows)
        outcomes = parts.writes.write_all([_order(job, row) for row in taken]) if taken else []
        failed = [(row, one.error) for row, one in zip(taken, outcomes, strict=True) if one.error is not None]
        left += [row for row, error in failed if _stays(parts, row, error)]
        done = len(taken) - len(failed) + len(left)
        if not done:
            raise failed[0][1]
        with parts.ledger.write() as tx:
            clearing.forget_rows(tx, left, job.id)
            now = jobs.job(tx, job.id) or job
            jobs.change(tx, job.id, done=now.done + done)
        for row in left:
            parts.importer.seen.pop(row.path, None)
    return True


def _sorted_out(parts: Parts, rows: Sequence[NoteRow]) -> tuple[list[NoteRow], list[NoteRow]]:
    """Memories whose file goes too, and those whose file is the person's, broken, or gone: it stays as it is.

    A file that was saved since is taken in first: git then has what the person wrote last.
    """
    taken: list[NoteRow] = []
    left: list[NoteRow] = []
    for row in rows:
        seen = None if row.read_only else _observed(parts, row)
        if seen is None or seen.read is None or seen.parsed is None or seen.parsed.readiness != "ready":
            left.append(row)
        else:
            taken.append(row if seen.read.etag == row.etag else _as_saved(parts, row))
    return taken, left


def _observed(parts: Parts, row: NoteRow) -> Observation | None:
    try:
        return parts.importer.observe(row.path)
    except GatewayError as error:  # nothing else must wait for one file
        _LOG.warning("a file stays", path=row.path, reason=error.detail)
        return None


def _stays(parts: Parts, row: NoteRow, error: GatewayError) -> bool:
    """Whether the file is gone already, or cannot be taken away; not where somebody just saved it."""
    if isinstance(error, ChangedElsewhere):
        return parts.files.stat(row.path) is None
    _LOG.warning("a file stays", path=row.path, reason=error.detail)
    return True


def _as_saved(parts: Parts, row: NoteRow) -> NoteRow:
    with _opened(parts):
        parts.importer.import_paths([row.path], settled=True)
    with parts.ledger.read() as tx:
        fresh = registry.note(tx, row.note_id)
    return fresh if fresh is not None and fresh.path == row.path else row


@contextmanager
def _opened(parts: Parts) -> Generator[None]:
    closed, parts.importer.closed = parts.importer.closed, fences.Fences()
    try:
        yield
    finally:
        parts.importer.closed = closed


def _order(job: Job, row: NoteRow) -> Order:
    entry = AuditEntry(
        action="delete",
        target_type="memory",
        target_id=None,
        namespace=None,
        decision="allow",
        reason=f"clear {job.id}",
        request_id=None,
        key_id=None,
        actor_user_id=job.user_id,
        actor_agent_id=None,
    )
    return Order("delete", row.note_id, row.path, row.etag, None, GATEWAY, entry, False, job_id=job.id)


def _drafts(parts: Parts, job: Job, fence: Fence) -> bool:
    del job, fence
    return forgetting.finish(parts) > 0


def _sessions(parts: Parts, job: Job, fence: Fence) -> bool:
    del job
    with parts.ledger.write() as tx:
        return clearing.clear_sessions(tx, fence, BATCH) > 0


def _finish(parts: Parts, job: Job, fence: Fence) -> bool:
    """Open the scope again. Returns False where more was ordered meanwhile."""
    with parts.importer.lock, parts.ledger.write() as tx:
        if (now := jobs.job(tx, job.id)) is not None and now.options != job.options:
            return False
        if job.kind == RETIRE:
            clearing.retire(tx, fence, job.id)
        else:
            clearing.finish(tx, fence)
        jobs.finish(tx, job.id)
        parts.importer.closed = fences.active(tx)
    if job.kind == CLEAR and fence.scope == "user":
        fixed_notes.provision(parts, fence.scope_id)  # a user begins with these forms
    parts.wake()
    return True


def _label(principal: Principal) -> str:
    return f"user:{principal.user_id}" if principal.user_id is not None else "admin"

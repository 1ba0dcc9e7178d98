"""Purging: what was forgotten also leaves git's history, old versions of the index and free pages of the ledger.

Explicit, for administrators only, and a job: `DELETE` says where copies remain, this is the way on (design section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pydantic import Field

from gateway import log
from gateway.access import guard
from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.errors import CannotPurge, GatewayError, GitTrouble, NotFound
from gateway.importer import problems_note
from gateway.importer.parts import Parts
from gateway.importer.plan import claim_of_text
from gateway.ledger import audit, erasure, jobs, journal, meta
from gateway.ledger.erasure import REDACTED
from gateway.ledger.jobs import Job
from gateway.ledger.journal import Version
from gateway.notes.text import etag_of
from gateway.services import forgetting, rebuild
from gateway.services.requests import RequestBody
from gateway.vault.branches import Branches
from gateway.vault.rewrite import Rewriting, Rewritten

KIND = "purge"
_LOG = log.get("purging")


class PurgeRequest(RequestBody):
    """The body of `POST /v1/purge`.

    Attributes:
        memory_ids: what is purged; without it, everything that was forgotten and not purged yet.
        despite_remote: replace the history of remotes as well, where they have it.
    """

    memory_ids: tuple[str, ...] | None = Field(None, max_length=10_000)
    despite_remote: bool = False


@dataclass(frozen=True, slots=True)
class _Traces:
    """What git has of forgotten memories: their blobs, the commits that name them, and the names."""

    blobs: frozenset[str]
    commits: frozenset[str]
    names: frozenset[str]
    drafts: frozenset[str]


def order(principal: Principal, parts: Parts, wanted: PurgeRequest) -> Job:
    """Order a purge.

    Raises:
        NotAllowed: only administrators purge.
        NotFound: one of the memories was not forgotten.
        CannotPurge: the history may not be rewritten as things are.
    """
    decision = guard.operate(parts.ledger, principal)
    ids = _ids(parts, wanted.memory_ids)
    everything = wanted.memory_ids is None
    if ids or everything:
        traces = _traces(parts, ids, everything=everything)
        Rewriting(parts.history).check(despite_remote=wanted.despite_remote, commits=traces.commits)
    options = {"memory_ids": ids, "everything": everything, "despite_remote": wanted.despite_remote}
    job = jobs.new(KIND, requested_by="admin", options=options, phase="history")
    with parts.ledger.write() as tx:
        same = next((one for one in jobs.open_jobs(tx, [KIND]) if one.options == options), None)
        if same is not None:
            return same
        jobs.add(tx, job)
        audit.write(tx, guard.entry(principal, "purge", "gateway", target_id=job.id, decision=decision))
    parts.wake_jobs()
    return job


def run(parts: Parts, job_id: str, *, keep_going: Callable[[], bool] = lambda: True) -> bool:
    """Carry a purge out, or on: each phase may be begun anew after a crash. Returns whether it is over.

    Raises:
        GatewayError: what keeps it from going on; it is tried again.
    """
    with parts.ledger.read() as tx:
        job = jobs.job(tx, job_id)
    if job is None or job.status not in jobs.OPEN or not keep_going():
        return job is None or job.status not in jobs.OPEN
    ids: list[str] = list(job.options.get("memory_ids", []))
    with parts.ledger.write() as tx:
        jobs.change(tx, job_id, status=jobs.RUNNING, total=len(ids))
    if job.phase == "history":
        try:
            _history(parts, job, ids)
        except (CannotPurge, GitTrouble) as error:  # nothing was changed
            with parts.ledger.write() as tx:
                jobs.finish(tx, job_id, error=f"{error.detail} {error.advice or ''}".strip())
            return True
    _copies(parts, job_id)
    with parts.ledger.write() as tx:
        jobs.change(tx, job_id, done=len(ids), error=None)
        jobs.finish(tx, job_id)
    return True


def _copies(parts: Parts, job_id: str) -> None:
    """What git, index and ledger still keep of the past goes as well."""
    with parts.ledger.read() as tx:
        job = jobs.job(tx, job_id)
    blobs: list[str] | None = job.options.get("blobs") if job is not None else None
    if blobs is None:
        return  # there was nothing to purge
    rewriting = Rewriting(parts.history)
    rewriting.forget_old()
    left = rewriting.still_there(blobs)
    if left:
        raise GitTrouble(f"Git still has {len(left)} of the texts.", advice="Is another process using the repository?")
    rebuild.rebuild(LOCAL_OPERATOR, parts)
    parts.ledger.compact()


def _ids(parts: Parts, asked: Collection[str] | None) -> list[str]:
    with parts.ledger.read() as tx:
        if asked is None:
            return [one.note_id for one in erasure.unpurged(tx)]
        unknown = [one for one in asked if erasure.erasure(tx, one) is None]
    if unknown:
        raise NotFound(f"No memory {unknown[0]!r} was forgotten.", field="memory_ids", advice="Forget it first.")
    return list(dict.fromkeys(asked))


def _history(parts: Parts, job: Job, ids: list[str]) -> None:
    """Rewrite the history, if it has anything of them.

    The new commits stand by first, then remotes take them, then the ledger knows their ids, then the branches move, and
    only then the ledger forgets what the texts were called: after a crash anywhere it is simply done again.
    """
    forgetting.finish(parts)
    problems_note.update(parts.importer)
    parts.writes.settle_spares(wait_ms=0)
    parts.committer.flush(everything=True)
    rewriting = Rewriting(parts.history)
    with parts.sync.waiting, parts.importer.lock, parts.committer.paused():
        traces = _traces(parts, ids, everything=bool(job.options.get("everything")))
        if not ids and not traces.blobs and not traces.commits:
            return
        rewriting.check(despite_remote=bool(job.options.get("despite_remote")), commits=traces.commits)
        branches = Branches(parts.history)
        tips = branches.tips()
        gone = [f"review/{one}" for one in traces.drafts if one in tips]
        for one in traces.drafts & set(tips):
            branches.drop(one)
        unsaid = dict.fromkeys(sorted(traces.names, key=len, reverse=True), REDACTED)
        done = rewriting.without(traces.blobs, unsaid)
        _replace_remotes(rewriting, done, traces, gone)
        with parts.ledger.write() as tx:
            erasure.follow_commits(tx, done.commits)
            for key in (meta.REVIEW_HEAD, meta.REMOTE_HEAD):
                if (moved := done.commits.get(meta.get(tx, key) or "")) is not None:
                    meta.put(tx, key, moved)
        rewriting.move(done)
        with parts.ledger.write() as tx:
            erasure.purged(tx, ids, traces.drafts)
            jobs.change(tx, job.id, phase="copies", options=job.options | {"blobs": sorted(traces.blobs)})


def _replace_remotes(rewriting: Rewriting, done: Rewritten, traces: _Traces, gone: list[str]) -> None:
    """Replace what remotes have; where one refuses, nothing was rewritten here either."""
    try:
        for remote in rewriting.remotes_with(traces.commits):
            rewriting.replace_at(remote, done, gone)
    except GatewayError:
        rewriting.take_back(done)
        raise


def _traces(parts: Parts, ids: Collection[str], *, everything: bool) -> _Traces:
    """All that git has of these memories, in any branch: under every name they or their drafts ever had."""
    rewriting = Rewriting(parts.history)
    with parts.ledger.read() as tx:
        drafts = {one for note_id in ids for one in erasure.review_ids(tx, note_id)}
        drafts |= set(erasure.all_drafts(tx)) if everything else set()
        known = {one: journal.history(tx, one) for one in (*ids, *drafts)}
    names = {path for versions in known.values() for one in versions for path in (one.path, one.old_path) if path}
    names |= {path for note_id in ids for path in _logged(parts, note_id, known[note_id])}
    etags = {one.etag for versions in known.values() for one in versions if one.etag}
    commits = {one.sha for versions in known.values() for one in versions if one.sha}
    blobs: set[str] = set()
    for path, blob in rewriting.blobs_at({*names, problems_note.PATH}):
        data = rewriting.blob(blob)
        if path == problems_note.PATH:
            ours = any(name.encode("utf-8", "surrogateescape") in data for name in names)
        else:
            claim = claim_of_text(data)
            ours = claim in known or etag_of(data) in etags or (claim is None and not _anothers(parts, path, known))
        if ours:
            blobs.add(blob)
    return _Traces(frozenset(blobs), frozenset(commits), frozenset(names), frozenset(drafts))


def _logged(parts: Parts, note_id: str, versions: list[Version]) -> list[str]:
    newest = next((one.path for one in versions if one.path), None)
    return [one.path for one in parts.history.log_of_memory(note_id, newest)] if newest is not None else []


def _anothers(parts: Parts, path: str, known: Collection[str]) -> bool:
    """Whether another memory ever stood at a path."""
    with parts.ledger.read() as tx:
        return bool(journal.notes_at(tx, path) - set(known))

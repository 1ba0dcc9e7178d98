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
from gateway.importer.apply import PERSON
from gateway.importer.parts import Parts
from gateway.importer.plan import claim_of_text
from gateway.importer.resident import is_blank
from gateway.importer.rows import HELD
from gateway.ledger import audit, erasure, jobs, journal, meta, registry
from gateway.ledger.erasure import REDACTED
from gateway.ledger.jobs import Job
from gateway.ledger.journal import Version
from gateway.notes.text import etag_of
from gateway.services import forgetting, rebuild
from gateway.services.requests import RequestBody
from gateway.vault.branches import Branches
from gateway.vault.rewrite import Names, Placed, Rewriting, Rewritten

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
    """What git has of forgotten memories: their texts at their paths, and the drafts about them."""

    placed: frozenset[Placed]
    drafts: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the ledger knows of what is to be purged.

    Attributes:
        ids: memories that are gone; all that claims their id is theirs.
        drafts: forgotten drafts.
        etags: of their texts, and of the forgotten ones of memories whose place somebody wrote anew.
        kept: etags of what was written there since.
        names: every path that they or their drafts ever had.
        namespaces: where they stood.
        commits: the commits that brought their texts.
        until: the last version that is forgotten, of memories that live again.
    """

    ids: frozenset[str]
    drafts: frozenset[str]
    etags: frozenset[str]
    kept: frozenset[str]
    names: frozenset[str]
    namespaces: frozenset[str]
    commits: frozenset[str]
    until: dict[str, int]


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
        known = _known(parts, ids, everything=everything)
        Rewriting(parts.history).check(despite_remote=wanted.despite_remote, commits=known.commits)
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
    rewriting.forget_old(blobs)
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
    known = _known(parts, ids, everything=bool(job.options.get("everything")), logged=True)
    with parts.sync.waiting, parts.importer.lock, parts.committer.paused():
        traces = _traces(parts, rewriting, known)
        if not ids and not traces.placed:
            return
        rewriting.check(despite_remote=bool(job.options.get("despite_remote")), commits=known.commits)
        branches = Branches(parts.history)
        tips = branches.tips()
        gone = [f"review/{one}" for one in traces.drafts if one in tips]
        for one in traces.drafts & set(tips):
            branches.drop(one)
        done = rewriting.without(traces.placed, _unsaid(parts, known))
        _replace_remotes(rewriting, done, known, gone)
        with parts.ledger.write() as tx:
            erasure.follow_commits(tx, done.commits)
            for key in (meta.REVIEW_HEAD, meta.REMOTE_HEAD):
                if (moved := done.commits.get(meta.get(tx, key) or "")) is not None:
                    meta.put(tx, key, moved)
        rewriting.move(done)
        with parts.ledger.write() as tx:
            erasure.purged(tx, ids, traces.drafts, until=known.until)
            blobs = sorted({one.blob for one in traces.placed})
            jobs.change(tx, job.id, phase="copies", options=job.options | {"blobs": blobs})


def _replace_remotes(rewriting: Rewriting, done: Rewritten, traces: _Known, gone: list[str]) -> None:
    """Replace what remotes have; where one refuses, nothing was rewritten here either."""
    try:
        for remote in rewriting.remotes_with(traces.commits):
            rewriting.replace_at(remote, done, gone)
    except GatewayError:
        rewriting.take_back(done)
        raise


def _known(parts: Parts, ids: Collection[str], *, everything: bool, logged: bool = False) -> _Known:
    """What the ledger knows, and with `logged` what git calls them from before there was a ledger. Takes no lock."""
    with parts.ledger.read() as tx:
        drafts = {one for note_id in ids for one in erasure.review_ids(tx, note_id)}
        drafts |= set(erasure.all_drafts(tx)) if everything else set()
        versions = {one: journal.history(tx, one) for one in (*ids, *drafts)}
        living = {one for one, row in registry.notes_by_id(tx, list(ids)).items() if row.status != HELD}
        namespaces = {found.namespace for one in ids if (found := erasure.erasure(tx, one)) is not None}
    until = {one: _last_deleted(versions[one]) for one in living}
    theirs = [one for found in versions.values() for one in found if one.seq <= until.get(one.note_id, one.seq)]
    names = {path for one in theirs for path in (one.path, one.old_path) if path}
    if logged:
        for note_id in set(ids) - living:
            names |= set(_logged(parts, note_id, versions[note_id]))
    return _Known(
        ids=frozenset(ids) - living,
        drafts=frozenset(drafts),
        etags=frozenset(one.etag for one in theirs if one.etag),
        kept=frozenset(
            one.etag for one in living for one in versions[one] if one.etag and one.seq > until[one.note_id]
        ),
        names=frozenset(names),
        namespaces=frozenset(namespaces),
        commits=frozenset(one.sha for one in theirs if one.sha),
        until=until,
    )


def _traces(parts: Parts, rewriting: Rewriting, known: _Known) -> _Traces:
    """All that git has of them, in any branch. What somebody says there today stays, and so does a blank form."""
    placed = [one for one in rewriting.placed() if one.path in known.names or _may_be_theirs(parts, known, one.path)]
    texts = Names(known.names, REDACTED)
    by_blob: dict[str, list[Placed]] = {}
    for one in placed:
        by_blob.setdefault(one.blob, []).append(one)
    standing = _standing(parts, {one.path for one in placed})
    found: set[Placed] = set()
    for blob, data in rewriting.blobs(by_blob):
        for one in by_blob[blob]:
            if one.path == problems_note.PATH:
                ours = texts.within(data)
            else:
                ours = one not in standing and _is_theirs(parts, known, one.path, data)
            if ours:
                found.add(one)
    return _Traces(frozenset(found), known.drafts)


def _may_be_theirs(parts: Parts, known: _Known, path: str) -> bool:
    """Whether a text at a path that the ledger never knew may claim one of the memories."""
    if path == problems_note.PATH:
        return True
    place = parts.importer.places.place_of(path) if known.ids and path.endswith(".md") else None
    return place is not None and str(place.namespace) in known.namespaces


def _is_theirs(parts: Parts, known: _Known, path: str, data: bytes) -> bool:
    etag = etag_of(data)
    place = parts.importer.places.place_of(path)
    if place is not None and is_blank(place, etag):
        return False
    claim = claim_of_text(data)
    if claim is not None:
        return (
            claim in known.ids or claim in known.drafts or (claim in known.until and etag in known.etags - known.kept)
        )
    if path not in known.names or etag in known.kept:
        return False
    return etag in known.etags or not _anothers(parts, path, known)


def _standing(parts: Parts, paths: Collection[str]) -> set[Placed]:
    """What living memories say now, at their paths."""
    with parts.ledger.read() as tx:
        rows = registry.notes_by_path(tx, list(paths))
    living = [path for path, row in rows.items() if row.status != HELD]
    return {Placed(path, blob) for path, blob in parts.history.committed(living).items()}


def _unsaid(parts: Parts, known: _Known) -> Names:
    """What commit messages no longer say: their paths, except where another memory stands or stood."""
    with parts.ledger.read() as tx:
        rows = registry.notes_by_path(tx, list(known.names))
    taken = {path for path, row in rows.items() if row.status != HELD}
    return Names(known.names - taken, REDACTED)


def _last_deleted(versions: list[Version]) -> int:
    return max((one.seq for one in versions if one.op == "delete"), default=0)


def _logged(parts: Parts, note_id: str, versions: list[Version]) -> list[str]:
    """Its names in git from before the ledger knew it; what the gateway itself began has none."""
    first = versions[-1] if versions else None
    newest = next((one.path for one in versions if one.path), None)
    if first is None or newest is None or first.actor != PERSON:
        return []
    return [one.path for one in parts.history.log_of_memory(note_id, newest)]


def _anothers(parts: Parts, path: str, known: _Known) -> bool:
    """Whether another memory ever stood at a path."""
    with parts.ledger.read() as tx:
        return bool(journal.notes_at(tx, path) - known.ids - known.drafts)

"""Brings accepted versions into git, in batches, with the right author; a person's edits after a quiet period."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from gateway import log
from gateway.clock import now_ms
from gateway.config import Settings
from gateway.errors import GitTrouble
from gateway.ledger import Ledger, journal, reviews
from gateway.ledger.journal import Version
from gateway.ledger.reviews import Review
from gateway.vault.history import Change, Commit, History

_LOG = log.get("git")
_RECENT_COMMITS = 1_000
_VERBS = {"write": "Write", "move": "Move", "delete": "Delete"}


class Committer:
    """One at a time; what cannot be committed now waits in the ledger, and nothing is lost by waiting."""

    def __init__(self, ledger: Ledger, history: History, settings: Settings) -> None:
        self._ledger = ledger
        self._history = history
        self._settings = settings
        self._lock = threading.Lock()
        self.trouble: str | None = None

    def recover(self) -> int:
        """After a crash between commit and mark: mark what git already has. Returns how many."""
        with self._ledger.read() as tx:
            waiting = journal.pending_versions(tx, 100_000, at=None)
        if not waiting:
            return 0
        known = self._history.keys_since(_RECENT_COMMITS)
        done = [(version, known[version.key]) for version in waiting if version.key in known]
        if done:
            with self._ledger.write() as tx:
                journal.mark_committed(tx, [(version.key, sha) for version, sha in done])
            touched = {version.path for version, _ in done} | {one.old_path for one, _ in done if one.old_path}
            self._history.resync_index(touched)
        return len(done)

    def flush(self, *, everything: bool = False) -> int:
        """Commit what is due, or everything. Returns how many versions git has now that it had not before."""
        total = 0
        with self._lock:  # two at once would commit the same versions twice
            self._history.tidy_index()
            while batch := self._due(everything=everything):
                try:
                    self._commit(batch)
                except GitTrouble as error:
                    if self.trouble != error.detail:
                        _LOG.warning("commits wait", reason=error.detail)
                    self.trouble = error.detail
                    return total
                self.trouble = None
                total += len(batch)
        return total

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let nothing be committed for a while."""
        with self._lock:
            yield

    def _due(self, *, everything: bool) -> list[Version]:
        limit = self._settings.git.batch_notes
        with self._ledger.read() as tx:
            due = journal.pending_versions(tx, limit, at=None if everything else now_ms())
            return journal.with_predecessors(tx, due)

    def _commit(self, batch: Sequence[Version]) -> None:
        with self._ledger.read() as tx:
            bodies = journal.bodies(tx, {version.etag for version in batch if version.etag})
        done, left = self._already_there(batch, bodies)
        commits: list[Commit] = []
        groups = _groups([version for version in left if version.etag is None or version.etag in bodies])
        drafts = self._drafts(left)
        for group in groups:
            changes = tuple(change for version in group for change in _changes(version, bodies))
            first = group[0]
            commits.append(
                Commit(first.author_name, first.author_email, group[-1].at, _message(group, drafts), changes)
            )
        for group, sha in zip(groups, self._history.commit(commits), strict=True):
            done += [(version.key, sha) for version in group]
        lost = [version for version in left if version.etag is not None and version.etag not in bodies]
        done += [(version.key, None) for version in lost]
        with self._ledger.write() as tx:
            journal.mark_committed(tx, done)

    def _drafts(self, versions: Sequence[Version]) -> dict[str, Review]:
        with self._ledger.read() as tx:
            return reviews.by_id(tx, {version.review_id for version in versions if version.review_id})

    def _already_there(
        self, batch: Sequence[Version], bodies: dict[str, bytes]
    ) -> tuple[list[tuple[str, str | None]], list[Version]]:
        """A checkout or pull brings files that git has already: only the last version of a path can be that."""
        last = {version.path: version for version in batch}
        at_head = self._history.committed(last)
        head = self._history.head()
        done: list[tuple[str, str | None]] = []
        left: list[Version] = []
        for version in batch:
            body = bodies.get(version.etag) if version.etag else None
            only = last[version.path] is version and sum(one.path == version.path for one in batch) == 1
            same = body is not None and only and at_head.get(version.path) == self._history.blob_id(body)
            gone = version.op == "delete" and only and version.path not in at_head
            if (same and version.op == "write") or gone:
                done.append((version.key, head))
            else:
                left.append(version)
        return done, left


def review_trailers(draft: Review) -> list[str]:
    """The trailers of a commit that comes of a draft: which, whose, on what evidence, accepted by whom."""
    lines = [f"Review-Id: {draft.id}", f"Proposed-By: {draft.proposed_by}"]
    lines += [f"Evidence: {one}" for one in draft.evidence]
    return [*lines, f"Accepted-By: {draft.decided_by}"] if draft.status == reviews.ACCEPTED else lines


def _groups(versions: Sequence[Version]) -> list[list[Version]]:
    """Neighbours by one author share a commit, as long as no path would be written twice in it; drafts stand apart."""
    groups: list[list[Version]] = []
    paths: set[str] = set()
    for version in versions:
        touched = {version.path, *([version.old_path] if version.old_path else [])}
        last = groups[-1][-1] if groups else None
        together = last is not None and _company(last) == _company(version)
        if not together or paths & touched:
            groups.append([])
            paths = set()
        groups[-1].append(version)
        paths |= touched
    return groups


def _company(version: Version) -> tuple[str, str, bool]:
    return version.author_name, version.author_email, version.note_id == version.review_id


def _changes(version: Version, bodies: dict[str, bytes]) -> list[Change]:
    if version.op == "delete" or version.etag is None:
        return [Change(version.path, None)]
    changes = [Change(version.path, bodies[version.etag])]
    if version.op == "move" and version.old_path and version.old_path != version.path:
        changes.insert(0, Change(version.old_path, None))
    return changes


def _message(group: Sequence[Version], drafts: Mapping[str, Review]) -> str:
    """A subject without note text, and trailers by which the ledger recognises its versions."""
    first = group[0]
    if len(group) == 1:
        subject = f"{_VERBS[first.op]} {first.path}" if len(first.path) <= 60 else f"{_VERBS[first.op]} {first.note_id}"
    else:
        verbs = {version.op for version in group}
        subject = f"{_VERBS[first.op] if len(verbs) == 1 else 'Change'} {len(group)} memories"
    lines = [subject, "", f"Actor: {first.actor}"]
    for version in group:
        draft = drafts.get(version.review_id or "")
        if version.note_id != version.review_id:
            lines += [f"Memory-Id: {version.note_id}", f"Memory-Version: {version.version}"]
        lines.append(f"Memory-Key: {version.key}")
        lines += review_trailers(draft) if draft is not None else []
    return "\n".join(line.replace("\n", " ") if line else line for line in lines) + "\n"

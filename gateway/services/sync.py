"""Sync with the git remote: fetch, merge with what people do meanwhile, import, decide what was merged, push."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import GitTrouble, RemoteRewritten
from gateway.importer.apply import PERSON
from gateway.importer.parts import Parts
from gateway.ledger import audit, meta, problems, reviews
from gateway.ledger.journal import Actor
from gateway.ledger.problems import ProblemRow
from gateway.skills.review_branches import ReviewBranches
from gateway.vault.branches import Branches
from gateway.vault.checkout import Checkout, FileChange, changes_between
from gateway.vault.remote import Remote, copy_label

_TRIES = 5
_WHERE = "git: remote"
REWRITTEN = "remote-rewritten"


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """What a sync did.

    Attributes:
        remote: its name; None where none is configured: then only local branches were looked at.
        head: the commit at which the vault stands now.
        merged: whether commits of the remote were brought in.
        pushed: whether something was pushed.
        decided: drafts that were decided by a merge or a deleted branch.
        conflicts: conflict copies that were laid beside notes, to be merged by a person.
    """

    remote: str | None
    head: str | None
    merged: bool
    pushed: bool
    decided: int
    conflicts: list[str]


def sync(principal: Principal, parts: Parts, branches: ReviewBranches, *, accept_rewrite: bool = False) -> SyncRecord:
    """Sync now, with everything that waits for git.

    Args:
        accept_rewrite: the remote's history was rewritten, and that is right.

    Raises:
        NotAllowed: the principal is no administrator.
        RemoteRewritten: the remote's history was rewritten; nothing was merged.
        GitTrouble: what is in the way, and what to do.
    """
    decision = guard.operate(parts.ledger, principal)
    with parts.ledger.write() as tx:
        audit.write(tx, guard.entry(principal, "sync", "gateway", decision=decision))
    parts.importer.scan(settled=True)
    parts.committer.flush(everything=True)
    return run(parts, branches, accept_rewrite=accept_rewrite)


def run(parts: Parts, branches: ReviewBranches, *, accept_rewrite: bool = False) -> SyncRecord:
    """One round; one at a time. What went wrong is also remembered for health.

    Raises:
        RemoteRewritten, GitTrouble: as for `sync`.
    """
    with parts.sync.waiting:
        try:
            done = _run(parts, branches, accept_rewrite)
        except GitTrouble as error:
            parts.sync.error, parts.sync.advice = error.detail, error.advice
            raise
        parts.sync.at, parts.sync.error, parts.sync.advice = time.time(), None, None
        return done


def _run(parts: Parts, branches: ReviewBranches, accept_rewrite: bool) -> SyncRecord:
    parts.committer.flush()
    decided = branches.look()
    settings = parts.settings.git
    if settings.remote is None:
        return SyncRecord(None, parts.history.head(), False, False, decided, [])
    remote = Remote(parts.history, settings.remote, settings.remote_branch, settings.sync_timeout_seconds)
    branch = remote.check()
    outcome = _converge(parts, remote, branch, accept_rewrite)
    _follow_review_branches(parts, remote)
    decided += branches.look()
    parts.committer.flush()
    if (
        settings.push and _to_push(parts, remote, parts.history.head())[0]
    ):  # what was decided, and the branches of new drafts
        outcome = outcome.then(_converge(parts, remote, branch, accept_rewrite))
    return SyncRecord(
        settings.remote, parts.history.head(), outcome.merged, outcome.pushed, decided, list(outcome.conflicts)
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    merged: bool = False
    pushed: bool = False
    conflicts: tuple[str, ...] = ()

    def then(self, later: _Outcome) -> _Outcome:
        return _Outcome(self.merged or later.merged, self.pushed or later.pushed, (*self.conflicts, *later.conflicts))


def _converge(parts: Parts, remote: Remote, branch: str, accept_rewrite: bool) -> _Outcome:
    """Fetch, merge and push until both sides are the same; whoever pushes in between is merged first.

    The joined commit is pushed before its files are brought into the vault: the less time between fetch and push, the
    less a busy remote can keep it from ever getting a push through. Where it ends in between, the next sync finds a
    remote that is ahead. What cannot be pushed is brought in all the same.

    Raises:
        RemoteRewritten, GitTrouble: as for `sync`.
    """
    done = _Outcome()
    for _ in range(_TRIES):
        remote.fetch()
        theirs = remote.head()
        _check_rewritten(parts, remote, theirs, accept_rewrite)
        joined = _join(parts, remote, theirs)
        try:
            pushed = _push(parts, remote, joined.commit) if parts.settings.git.push else False
        except GitTrouble:
            _bring(parts, remote, branch, joined)
            raise
        brought = _bring(parts, remote, branch, joined)
        if brought is None:
            continue  # the vault moved meanwhile
        _remember(parts, remote.head())
        done = done.then(_Outcome(brought[0], bool(pushed), tuple(brought[1])))
        if pushed is not None:
            return done
    raise GitTrouble("The remote or the vault moves all the time.", advice="The sync is tried again by itself.")


def _check_rewritten(parts: Parts, remote: Remote, theirs: str | None, accepted: bool) -> None:
    """A force-push or a vanished branch upstream is never followed blindly."""
    with parts.ledger.read() as tx:
        last = meta.get(tx, meta.REMOTE_HEAD)
    rewritten = last is not None and (theirs is None or not remote.is_ancestor(last, theirs))
    if not rewritten or accepted:
        _say(parts, None)
        return
    branches = Branches(parts.history)
    sides = (("upstream", last), ("vault", parts.history.head()))
    kept = [branches.rescue(name, commit) for name, commit in sides if commit]
    what = "is gone" if theirs is None else "was rewritten (force-pushed)"
    error = RemoteRewritten(
        f"The branch `{remote.branch}` of `{remote.name}` {what}; nothing was merged or pushed.",
        advice=f"Both sides are kept as {', '.join(kept)}. If the new history is right, run "
        "`memory-gateway sync --accept-rewrite`: both histories are then merged.",
        rescue=kept,
    )
    _say(parts, error)
    raise error


def _say(parts: Parts, error: GitTrouble | None) -> None:
    rows = (
        [ProblemRow(_WHERE, REWRITTEN, error.detail, error.advice or "", None, None, None, now_ms())] if error else []
    )
    with parts.ledger.write() as tx:
        problems.replace_problems(tx, {_WHERE}, rows)


@dataclass(frozen=True, slots=True)
class _Joined:
    """The commit at which both sides meet, made but not yet in the vault; `theirs` is None where it brings nothing."""

    ours: str | None
    theirs: str | None
    commit: str | None
    changes: tuple[FileChange, ...] = ()
    copies: tuple[str, ...] = ()


def _join(parts: Parts, remote: Remote, theirs: str | None) -> _Joined:
    """Find or make the commit that holds both sides, and make sure that the vault can take its files.

    Raises:
        GitTrouble: git cannot merge them, or the remote holds what no vault may.
    """
    ours = parts.history.head()
    if theirs is None or (ours is not None and remote.is_ancestor(theirs, ours)):
        return _Joined(ours, None, ours)
    parts.importer.check_present()
    copies: tuple[str, ...] = ()
    new = theirs
    if ours is not None and not remote.is_ancestor(ours, theirs):
        made = remote.merge(ours, theirs, unrelated=True)
        new, copies = made.commit, made.copies
    return _Joined(ours, theirs, new, tuple(changes_between(parts.history.runner, ours, new)), copies)


def _bring(parts: Parts, remote: Remote, branch: str, joined: _Joined) -> tuple[bool, list[str]] | None:
    """Bring the remote's commits in. None where the vault's branch moved meanwhile; then it is tried anew."""
    ours, new = joined.ours, joined.commit
    if joined.theirs is None or new is None:
        return False, []
    with parts.importer.lock:
        if parts.history.head() != ours:
            return None
        parts.importer.check_present()
        brought = Checkout(parts.files.root, parts.files.staging, parts.history.runner).bring(
            joined.changes, copy_label(joined.theirs)
        )
        try:
            remote.advance(branch, ours, new)
        except GitTrouble:
            return None
        changed = [*brought.written, *brought.removed]
        staged = parts.history.staged(ours, changed) if ours else set[str]()
        parts.history.resync_index([path for path in changed if path not in staged])
        authors = remote.authors(ours, new)
        parts.importer.import_merged(_by_author(parts, [*brought.written, *brought.copies], authors), brought.removed)
    parts.wake()
    return True, [*joined.copies, *brought.copies]


def _by_author(parts: Parts, paths: list[str], authors: Mapping[str, tuple[str, str]]) -> list[tuple[list[str], Actor]]:
    person = parts.importer.person()
    groups: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        groups.setdefault(authors.get(path, (person.name, person.email)), []).append(path)
    return [(found, Actor(PERSON, name, email, PERSON)) for (name, email), found in groups.items()]


def _remember(parts: Parts, theirs: str | None) -> None:
    with parts.ledger.write() as tx:
        if theirs is None:
            meta.remove(tx, meta.REMOTE_HEAD)
        else:
            meta.put(tx, meta.REMOTE_HEAD, theirs)


def _follow_review_branches(parts: Parts, remote: Remote) -> None:
    """A branch that people pushed to is followed; one that they deleted on the remote is deleted here too."""
    branches = Branches(parts.history)
    local, there = branches.tips(), remote.review_tips()
    with parts.ledger.read() as tx:
        open_ones = reviews.pending(tx, with_branch=True)
    for review in open_ones:
        mine, theirs = local.get(review.id), there.get(review.id)
        if mine is None:
            continue
        if theirs is None and review.pushed_sha is not None:
            branches.remove(review.id, mine)
        elif theirs is not None and theirs != mine and remote.is_ancestor(mine, theirs):
            branches.follow(review.id, mine, theirs)


def _to_push(parts: Parts, remote: Remote, head: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The refs that the remote does not have yet, "" for one to be deleted; and those of them that replace others."""
    refs: dict[str, str] = {}
    replaced: dict[str, str] = {}
    if head is not None and head != remote.head():
        refs[remote.branch] = head
    there, tips = remote.review_tips(), Branches(parts.history).tips()
    with parts.ledger.read() as tx:
        open_ones = reviews.pending(tx, with_branch=True)
        done = [one for one in reviews.pushed(tx) if one.status != reviews.PENDING]
    for review in open_ones:
        mine, on_remote = tips.get(review.id), there.get(review.id)
        if mine is None or mine == on_remote:
            continue
        if on_remote is not None and remote.is_ancestor(mine, on_remote):
            continue
        if on_remote is None and review.pushed_sha == mine:
            continue  # deleted there: that is a decision
        refs[f"review/{review.id}"] = mine
        if on_remote is not None and on_remote == review.pushed_sha:
            replaced[f"review/{review.id}"] = on_remote
    return refs | {f"review/{one.id}": "" for one in done if one.id in there}, replaced


def _push(parts: Parts, remote: Remote, head: str | None) -> bool | None:
    """Push what is new. True where something was pushed, False where nothing was to be; None: the remote moved."""
    refs, replaced = _to_push(parts, remote, head)
    if refs and not remote.push(refs, replaced=replaced):
        return None
    if remote.branch in refs:
        _remember(parts, refs[remote.branch])
    _pushed(parts, remote, refs)
    return bool(refs)


def _pushed(parts: Parts, remote: Remote, refs: Mapping[str, str]) -> None:
    """Remember which branches the remote has: one that it had and has no more was deleted there."""
    there = remote.review_tips() | {name.removeprefix("review/"): sha for name, sha in refs.items()}
    with parts.ledger.write() as tx:
        known = [*reviews.pending(tx, with_branch=True), *reviews.pushed(tx)]
        for review in {one.id: one for one in known}.values():
            sha = there.get(review.id) or None
            if review.status == reviews.PENDING and sha is None:
                sha = review.pushed_sha
            if review.pushed_sha != sha:
                reviews.save(tx, replace(review, pushed_sha=sha))

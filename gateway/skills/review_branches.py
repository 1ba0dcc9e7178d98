"""Review in git: each draft is a branch that makes the change itself. Merging it accepts, deleting it rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway import log
from gateway.clock import now_ms
from gateway.errors import DraftStale, GatewayError, GitTrouble
from gateway.importer.apply import Circumstances
from gateway.importer.commits import review_trailers
from gateway.importer.parts import Parts
from gateway.importer.plan import Action, Put
from gateway.ledger import Transaction, meta, problems, reviews
from gateway.ledger.problems import ProblemRow
from gateway.ledger.reviews import Review
from gateway.notes.drafts import Decision
from gateway.notes.text import etag_of
from gateway.skills.deciding import Step
from gateway.skills.import_from_obsidian import DecidedDraft, author_of, decide, read_in, refresh, steps_of
from gateway.skills.review_queue import decider_in_vault
from gateway.vault.branches import Branches
from gateway.vault.history import Change, Commit

_LOG = log.get("reviews")
GONE_IN_MASSES = "branches-gone"
_WHERE = "git: review branches"


@dataclass(slots=True)
class ReviewBranches:
    """Keeps branches and drafts in step. `look` is cheap while nothing in git changed."""

    parts: Parts
    _seen: tuple[str | None, tuple[tuple[str, str], ...]] | None = None

    def look(self) -> int:
        """Carry out what was decided in git, and give each open draft its branch. Returns how many were decided."""
        branches = Branches(self.parts.history)
        decided = 0
        with self.parts.ledger.read() as tx:
            waiting = {one.id: one for one in reviews.pending(tx, with_branch=True)}
            last = meta.get(tx, meta.REVIEW_HEAD)
        if self.parts.settings.review.mode != "branch" and not waiting and self._seen is not None:
            return 0
        head, tips = self.parts.history.head(), branches.tips()
        now = (head, tuple(sorted(tips.items())))
        if now != self._seen:
            decided = self._decide(branches, waiting, tips, last)
            if head is not None and head != last:
                with self.parts.ledger.write() as tx:
                    meta.put(tx, meta.REVIEW_HEAD, head)
            self._seen = now
        self._make_missing(branches)
        self._remove_decided(branches, tips)
        return decided

    def _decide(self, branches: Branches, waiting: dict[str, Review], tips: dict[str, str], last: str | None) -> int:
        accepted = {one.review_id for one in branches.named_since(last)} & set(waiting)
        merged = branches.merged()
        accepted |= {
            one.id
            for one in waiting.values()
            if one.id in merged and one.branch_sha and branches.contains(one.branch_sha)
        }
        gone = {one.id for one in waiting.values() if one.id not in tips and one.id not in accepted}
        gone = self._within_bounds(gone, len(waiting))
        if accepted or gone:
            self.parts.importer.scan(settled=True)  # the memories that a merge brought come first
        done = sum(self._carry_out(waiting[one], "accept") for one in sorted(accepted))
        return done + sum(self._carry_out(waiting[one], "reject") for one in sorted(gone))

    def _within_bounds(self, gone: set[str], total: int) -> set[str]:
        """Many branches that vanish at once are rather a new clone than a decision: they are made again."""
        settings = self.parts.settings.policy
        stormy = len(gone) > settings.deletion_guard_notes and len(gone) > settings.deletion_guard_share * total
        rows: list[ProblemRow] = []
        if stormy:
            message = f"{len(gone)} review branches are gone at once; none of them counts as rejected."
            advice = "They were made again. Reject drafts in the queue or on the review page."
            rows.append(ProblemRow(_WHERE, GONE_IN_MASSES, message, advice, None, None, None, now_ms()))
            with self.parts.ledger.write() as tx:
                for one in reviews.by_id(tx, gone).values():
                    reviews.save(tx, replace(one, branch_sha=None, branch_etag=None))
        if stormy or self._seen is None:
            with self.parts.ledger.write() as tx:
                problems.replace_problems(tx, {_WHERE}, rows)
        return set() if stormy else gone

    def _carry_out(self, review: Review, decision: Decision) -> int:
        words = "merged in git" if decision == "accept" else "its branch was deleted"
        decider = decider_in_vault(self.parts, "git", words)
        wanted = DecidedDraft(review.id, decision, merged=decision == "accept")
        try:
            with self.parts.importer.lock:
                decide(self.parts, wanted, decider)
        except GatewayError as error:
            _LOG.warning("a decision in git could not be carried out", review=review.id, reason=error.detail)
            row = ProblemRow(
                review.path, error.code, error.detail, error.advice or "", error.line, None, None, now_ms()
            )
            with self.parts.ledger.write() as tx:
                problems.replace_problems(tx, {review.path}, [row])
            return 0
        return 1

    def _make_missing(self, branches: Branches) -> None:
        """Branches of new drafts, and of those whose text changed since."""
        if self.parts.settings.review.mode != "branch":
            return
        with self.parts.ledger.read() as tx:
            wanted = [one for one in reviews.pending(tx) if one.branch_etag is None]
        for review in wanted:
            try:
                with self.parts.importer.lock:
                    self._make(branches, review)
            except DraftStale:
                continue  # it was brought up to date, and is seen again in a moment
            except GatewayError as error:
                _LOG.warning("a draft has no branch yet", review=review.id, reason=error.detail)

    def _make(self, branches: Branches, review: Review) -> None:
        parts = self.parts
        read = parts.files.read(review.path)
        if read is None or read.etag != review.etag:
            return  # the importer sees the change first
        draft = read_in(parts, review, read.data)
        try:
            steps, memory_id, _ = steps_of(parts, review, draft)
        except DraftStale:
            refresh(parts, review, read, draft)
            raise
        if not steps:
            return
        author = author_of(review.proposed_by)
        subject = f"Propose: {review.proposal} {steps[0].path}"
        trailers = [f"Memory-Id: {memory_id}", *review_trailers(review)]
        message = "\n".join([subject.replace("\n", " "), "", *trailers]) + "\n"
        commit = Commit(author.name, author.email, now_ms(), message, _changes(steps))
        sha = branches.make(review.id, commit, replaces=review.branch_sha)
        with parts.ledger.write() as tx:
            reviews.save(tx, replace(review, branch_sha=sha, branch_etag=etag_of(steps[0].data)))

    def _remove_decided(self, branches: Branches, tips: dict[str, str]) -> None:
        """A draft that was decided in another way needs no branch any more."""
        with self.parts.ledger.read() as tx:
            known = reviews.by_id(tx, tips)
        for review in known.values():
            if review.status == reviews.PENDING or review.branch_sha is None:
                continue
            try:
                branches.remove(review.id, review.branch_sha)
            except GitTrouble as error:
                _LOG.warning("a branch could not be removed", review=review.id, reason=error.detail)
                continue
            with self.parts.ledger.write() as tx:
                reviews.save(tx, replace(review, branch_sha=None))


def attribute(
    parts: Parts, tx: Transaction, actions: Sequence[Action], by: Circumstances
) -> list[tuple[list[Action], Circumstances]]:
    """Notes that a merged review branch brings were written by whoever proposed them, and accepted by a person."""
    puts = {action.note_id: action for action in actions if isinstance(action, Put)}
    drafts = reviews.reserved(tx, puts)
    if not drafts:
        return [(list(actions), by)]
    groups: list[tuple[list[Action], Circumstances]] = []
    rest: list[Action] = []
    for action in actions:
        draft = drafts.get(action.note_id) if isinstance(action, Put) else None
        if draft is None or not isinstance(action, Put) or not _is_of(parts, action, draft):
            rest.append(action)
            continue
        circumstances = replace(
            by,
            actor=author_of(draft.proposed_by),
            commit_after=by.at,
            keep_for_git=True,
            may_return=True,
            entry=decider_in_vault(parts, "git", "merged in git").entry,
            review_id=draft.id,
        )
        groups.append(([action], circumstances))
    return [(rest, by), *groups] if rest else groups


def _is_of(parts: Parts, action: Put, draft: Review) -> bool:
    """A new note with the reserved id, the changed text as it is on the branch, or as people changed it there."""
    read = action.seen.read
    assert read is not None
    if action.kind == "new" or read.etag == draft.branch_etag:
        return True
    if draft.branch_sha is None or not Branches(parts.history).contains(draft.branch_sha):
        return False
    return parts.history.committed([action.seen.path]).get(action.seen.path) == parts.history.blob_id(read.data)


def _changes(steps: Sequence[Step]) -> tuple[Change, ...]:
    changes: list[Change] = []
    for step in steps:
        if step.source is not None:
            changes.append(Change(step.source, None))
        changes.append(Change(step.path, step.data))
    return tuple(changes)

"""Carrying out a decision about a draft: one plan, written down first, each step of it safe to repeat.

The order is: plan into the ledger, draft out of the queue, memory to its place, draft to `Accepted` or `Rejected`, one
transaction that says so. A crash anywhere is made good at the next start; nothing is ever half decided.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway import log
from gateway.clock import now, now_ms
from gateway.errors import AlreadyExists, ChangedElsewhere, GatewayError
from gateway.importer.drafts import DraftFiles
from gateway.importer.parts import Parts
from gateway.importer.write import Order
from gateway.ledger import Transaction, audit, journal, reviews, sessions, tombstones
from gateway.ledger.audit import AuditEntry
from gateway.ledger.journal import Actor, Intent
from gateway.ledger.reviews import Review
from gateway.notes.drafts import ACCEPTED, REJECTED, Decision, decided_draft, folder_of_draft, wikilink
from gateway.notes.template import time_text
from gateway.notes.text import etag_of
from gateway.skills.export_to_obsidian import proposal_key

_LOG = log.get("reviews")


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decided, and how: `via` is `vault`, `api`, `command` or `git`. `label` is what the draft says, a user id."""

    label: str
    actor: Actor
    via: str
    entry: AuditEntry
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a memory note. A `move` names where the note stands as `source`."""

    op: str
    note_id: str
    path: str
    base_etag: str | None
    data: bytes
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a decision does.

    Attributes:
        memory_id: what an accepted draft becomes or changes; an existing one where the same text is there already.
        draft_path, draft: the draft as it was read when it was decided.
        steps: what happens to memories, in order; none for a rejection, or where git has made the change already.
        content: hash of the text that was decided about.
    """

    review_id: str
    decision: Decision
    memory_id: str | None
    draft_path: str
    draft: bytes
    final_path: str
    final: bytes
    steps: tuple[Step, ...]
    content: str
    decider: Decider
    author: Actor

    def as_json(self, taken: Intent | None) -> dict[str, Any]:
        """The form in which the ledger keeps it."""
        plain = asdict(self)
        plain["draft"], plain["final"] = _text(self.draft), _text(self.final)
        plain["steps"] = [asdict(step) | {"data": _text(step.data)} for step in self.steps]
        return plain | {"taken": taken.id if taken else None}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Plan:
        """The plan that `as_json` wrote."""
        given: dict[str, Any] = {name: value for name, value in plain.items() if name != "taken"}
        decider: dict[str, Any] = dict(given["decider"])
        decider["actor"], decider["entry"] = Actor(**decider["actor"]), AuditEntry(**decider["entry"])
        steps = tuple(_step(step) for step in given["steps"])
        made: dict[str, Any] = {
            "draft": _bytes(given["draft"]),
            "final": _bytes(given["final"]),
            "steps": steps,
            "decider": Decider(**decider),
            "author": Actor(**given["author"]),
        }
        return cls(**(given | made))


def _step(plain: dict[str, Any]) -> Step:
    given: dict[str, Any] = {**plain, "data": _bytes(plain["data"])}
    return Step(**given)


def final_of(
    review: Review, data: bytes, decision: Decision, decider: Decider, memory_path: str | None
) -> tuple[str, bytes]:
    """Where a decided draft goes, and its bytes there.

    Args:
        memory_path: where the memory stands that it became.

    Raises:
        CannotPatch: its properties cannot be changed in place.
    """
    folder = ACCEPTED if decision == "accept" else REJECTED
    name = review.path.rpartition("/")[2]
    path = review.path if folder_of_draft(review.path) == folder else f"{folder}/{name}"
    link = wikilink(memory_path) if memory_path else None
    at = time_text(now())
    final = decided_draft(data, decision, by=decider.label, at=at, accepted_as=link, reason=decider.reason)
    return path, final


def carry_out(parts: Parts, review: Review, plan: Plan) -> Review:
    """Do what a plan says. Call it with the importer's lock held.

    Raises:
        ChangedElsewhere: the draft was edited since it was read, or the target changed; nothing was done.
        AlreadyExists: the place of the memory is taken; nothing was done.
    """
    files = DraftFiles(parts.importer)
    taken = _taking(files, plan)
    with parts.ledger.write() as tx:
        reviews.begin_decision(tx, review.id, plan.as_json(taken))
        journal.begin(tx, [taken])
    try:
        files.carry_out(taken)
    except GatewayError:
        _give_up(parts, review.id)
        raise
    try:
        _memories(parts, plan)
    except GatewayError:
        _put_back(parts, files, plan, taken.id)
        raise
    return _finish(parts, files, review, plan, taken.id)


def _taking(files: DraftFiles, plan: Plan) -> Intent:
    """The draft leaves its place if it still is as it was read; one that a person moved already changes where it is."""
    stays = plan.draft_path == plan.final_path
    return files.intent(plan.review_id, plan.draft_path, etag_of(plan.draft), plan.final if stays else None)


def recover(parts: Parts) -> int:
    """Finish or take back what a crash left half-way. Returns how many decisions there were."""
    with parts.importer.lock, parts.ledger.read() as tx:
        begun = reviews.open_decisions(tx)
        known = {review_id: reviews.review(tx, review_id) for review_id in begun}
    for review_id, plain in begun.items():
        review = known[review_id]
        with parts.importer.lock:
            if review is None:
                _give_up(parts, review_id)
                continue
            try:
                _recover_one(parts, review, Plan.from_json(plain), plain.get("taken"))
            except (GatewayError, OSError) as error:
                _LOG.warning("an interrupted decision waits", review=review_id, reason=str(error)[:200])
    return len(begun)


def _recover_one(parts: Parts, review: Review, plan: Plan, taken: str | None) -> None:
    files = DraftFiles(parts.importer)
    standing = files.read(plan.draft_path)
    if standing is not None and standing.etag == etag_of(plan.draft):
        intent = _taking(files, plan)
        with parts.ledger.write() as tx:
            journal.begin(tx, [intent])
        files.carry_out(intent)
        with parts.ledger.write() as tx:
            journal.settle(tx, [intent.id])
    try:
        _memories(parts, plan)
    except (ChangedElsewhere, AlreadyExists) as error:
        _LOG.warning("an interrupted decision was taken back", review=review.id, reason=error.detail)
        _put_back(parts, files, plan, taken)
        return
    _finish(parts, files, review, plan, taken)
    _LOG.info("an interrupted decision was finished", review=review.id)


def _memories(parts: Parts, plan: Plan) -> None:
    """Write the memories of a plan; a step that was done before a crash is not done again."""
    for step in plan.steps:
        with parts.ledger.read() as tx:
            newest = next(iter(journal.history(tx, step.note_id)), None)
            same = journal.version_with_etag(tx, step.note_id, etag_of(step.data))
        done = newest if step.op == "move" else same
        if done is not None and done.review_id == plan.review_id:
            continue
        order = Order(
            op=step.op,
            note_id=step.note_id,
            path=step.path,
            base_etag=step.base_etag,
            data=step.data,
            actor=plan.author,
            entry=replace(plan.decider.entry, target_id=step.note_id),
            may_return=True,
            moved_from=step.source,
            review_id=plan.review_id,
        )
        parts.writes.write(order)


def _finish(parts: Parts, files: DraftFiles, review: Review, plan: Plan, taken: str | None) -> Review:
    final_path = files.create(review.id, plan.final_path, plan.final)
    accepted = plan.decision == "accept"
    decided = replace(
        review,
        status=reviews.ACCEPTED if accepted else reviews.REJECTED,
        memory_id=plan.memory_id or review.memory_id,
        path=final_path,
        etag=etag_of(plan.final),
        written_etag=etag_of(plan.final),
        decided_by=plan.decider.label,
        decided_via=plan.decider.via,
        decision_reason=plan.decider.reason,
        updated_at=now_ms(),
        decided_at=now_ms(),
    )
    with parts.ledger.write() as tx:
        reviews.save(tx, decided)
        if accepted:
            _accepted(tx, decided, plan)
        else:
            _rejected(tx, decided, plan)
        action = "accept_review" if accepted else "reject_review"
        audit.write(tx, replace(plan.decider.entry, action=action, target_type="review", target_id=review.id))
        files.record(tx, review.id, final_path, plan.final, actor=plan.decider.actor, old_path=plan.draft_path)
        if final_path != plan.draft_path:
            files.forget(tx, plan.draft_path)
        files.know(tx, final_path)
        reviews.end_decision(tx, review.id)
        if taken is not None:
            journal.settle(tx, [taken])
    parts.wake()
    return decided


def _accepted(tx: Transaction, review: Review, plan: Plan) -> None:
    edges = [(review.memory_id, review.id, "accepted")]
    edges += [(review.memory_id, one, "evidence") for one in review.evidence]
    edges += [(review.memory_id, step.note_id, "merged") for step in plan.steps if step.op == "move"]
    reviews.add_edges(tx, [edge for edge in edges if edge[0] != edge[1]])
    if review.candidate_id is not None:
        sessions.promote(tx, review.candidate_id, review.memory_id)


def _rejected(tx: Transaction, review: Review, plan: Plan) -> None:
    """The same proposal does not come back, and its author counts for a little less (`reviews.trust`)."""
    for content in {review.content_hash, plan.content}:
        base = review.base.get(review.target_id or "", "")
        key = proposal_key(review.proposal, review.target_id, content, base)
        tombstones.bury_proposal(tx, review.namespace, key)
    if review.candidate_id is not None:
        sessions.reject(tx, review.candidate_id)


def _put_back(parts: Parts, files: DraftFiles, plan: Plan, taken: str | None) -> None:
    """Nothing came of it: the draft stands in the queue again as it was."""
    standing = files.read(plan.draft_path)
    if standing is not None and standing.data == plan.final:
        back = files.intent(plan.review_id, plan.draft_path, standing.etag, plan.draft)
        with parts.ledger.write() as tx:
            journal.begin(tx, [back])
        files.carry_out(back)
        path = plan.draft_path
    else:
        path = files.create(plan.review_id, plan.draft_path, plan.draft)
    with parts.ledger.write() as tx:
        files.know(tx, path)
        reviews.end_decision(tx, plan.review_id)
        if taken is not None:
            journal.drop(tx, [taken])
    if taken is not None:
        parts.files.drop_spare(taken)


def _give_up(parts: Parts, review_id: str) -> None:
    with parts.ledger.write() as tx:
        reviews.end_decision(tx, review_id)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)

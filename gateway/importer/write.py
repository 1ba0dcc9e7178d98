"""The gateway's own writes: intent, file, one ledger transaction. kill -9 at any instruction loses and doubles nothing.

The order is the design's (section 3): what is on disk is imported first, then the intent is written down, then the file
is exchanged, then the ledger says so. Git and index follow by themselves.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gateway import log
from gateway.clock import now_ms
from gateway.errors import AlreadyExists, ChangedElsewhere, GatewayError, Tombstoned, Unavailable
from gateway.importer.apply import Circumstances
from gateway.importer.importer import Importer
from gateway.importer.plan import Observation, claim_of
from gateway.importer.rows import HELD
from gateway.ledger import Transaction, erasure, fences, idempotency, journal, reviews, tombstones
from gateway.ledger.audit import AuditEntry
from gateway.ledger.fences import Fences
from gateway.ledger.idempotency import Claim
from gateway.ledger.journal import Actor, Intent
from gateway.ledger.registry import NoteRow
from gateway.notes.note import parse
from gateway.notes.text import content_hash, etag_of
from gateway.vault.files import FileRead

_LOG = log.get("writes")
SPARE_MS = 10_000
# No file has this key, so the next look at the path reads it.
UNKNOWN_STAT = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Order:
    """One write to carry out.

    Attributes:
        op: `create`, `update`, `move` or `delete`.
        base_etag: hash of the bytes the caller saw; None for `create`.
        data: the bytes to stand in the file, for a `move` those that stand there; None for `delete`.
        entry: whom the audit names, and why it was allowed.
        claim: the idempotency key, if the request has one.
        answer: makes the answer to keep for that key, from the row as it is afterwards.
        may_return: a user's explicit write, which lifts tombstones.
        moved_from: where the note of a `move` stands now.
        review_id: the accepted draft that this write carries out.
        job_id: the clear job that a `delete` is part of.
        alone: a `delete` of this memory only, not of its text: others of its namespace may say the same.
        drafts: open drafts that quote what a `delete` forgets, and go with it.
        edges: lineage that comes with the change: (child, parent, relation).
        weighing: only how much the memory weighs changes; it counts as old as before.
    """

    op: str
    note_id: str
    path: str
    base_etag: str | None
    data: bytes | None
    actor: Actor
    entry: AuditEntry
    may_return: bool
    claim: Claim | None = None
    answer: Callable[[NoteRow], tuple[int, dict[str, Any]]] | None = None
    moved_from: str | None = None
    review_id: str | None = None
    job_id: str | None = None
    alone: bool = False
    drafts: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    weighing: bool = False

    def intent(self, intent_id: str) -> Intent:
        """The journal's form of the order."""
        new = None if self.data is None else etag_of(self.data)
        request: dict[str, Any] = {"entry": asdict(self.entry), "may_return": self.may_return}
        request["review_id"] = self.review_id
        if self.op == "delete":
            request |= {"job_id": self.job_id, "alone": self.alone, "drafts": list(self.drafts)}
        if self.moved_from is not None:
            request["from"] = self.moved_from
        if self.edges:
            request["edges"] = [list(edge) for edge in self.edges]
        if self.weighing:
            request["weighing"] = True
        return Intent(intent_id, self.op, self.note_id, self.path, self.base_etag, new, self.data, self.actor, request)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one order: the row as it is now (for a delete: as it was), or the error."""

    row: NoteRow | None
    error: GatewayError | None = None

    def unwrap(self) -> NoteRow:
        """The row.

        Raises:
            GatewayError: the order failed.
        """
        if self.error is not None:
            raise self.error
        assert self.row is not None
        return self.row


class WriteRoad:
    """Carries out orders. Several at once share their transactions; each can fail alone."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._files = importer.files
        self._ledger = importer.ledger

    def write(self, order: Order) -> NoteRow:
        """Carry out one order.

        Raises:
            ChangedElsewhere: the file has other bytes than the caller saw.
            AlreadyExists: the name of a new note is taken.
            Tombstoned: the text was forgotten and may not come back by this way.
            BadPath, TooLarge: the path or the size is unacceptable.
        """
        return self.write_all([order])[0].unwrap()

    def write_all(self, orders: Sequence[Order]) -> list[Outcome]:
        """Carry out orders for different notes, in order. Returns one outcome each.

        Raises:
            Unavailable: the vault is gone or has lost all its files; nothing is written into such a folder.
        """
        with self._importer.lock:
            self._importer.check_present()
            outcomes: dict[int, Outcome] = {}
            intents: dict[int, Intent] = {}
            with self._ledger.write() as tx:
                closed, buried = fences.active(tx), tombstones.any_buried(tx)
                for number, order in enumerate(orders):
                    try:
                        intents[number] = self._begin(tx, order, closed, any_buried=buried)
                    except GatewayError as error:
                        outcomes[number] = Outcome(None, error)
                journal.begin(tx, list(intents.values()))
            placed = self._place_all(intents, outcomes)
            self._settle_all(orders, intents, placed, outcomes)
        return [outcomes[number] for number in range(len(orders))]

    def _begin(self, tx: Transaction, order: Order, closed: Fences, *, any_buried: bool) -> Intent:
        place_ = self._importer.places.place_of(order.path)
        if place_ is not None and order.op != "delete" and closed.covers(str(place_.namespace)):
            raise fences.being_cleared(str(place_.namespace))
        if any_buried and place_ is not None and order.data is not None and not order.may_return:
            self._check_forgotten(tx, order.data, str(place_.namespace))
        intent = order.intent(f"int_{uuid.uuid4().hex}")
        if order.claim is not None:
            idempotency.reserve(tx, order.claim, intent.id)
        return intent

    def _check_forgotten(self, tx: Transaction, data: bytes, namespace: str) -> None:
        """Before a file is touched: what was forgotten is not written again by this way.

        Raises:
            Tombstoned: the text, or the id that it claims, was forgotten.
        """
        parsed = parse(data, max_bytes=self._files.max_bytes)
        claim = claim_of(Observation("", None, parsed))
        if tombstones.buried(tx, namespace, content_hash=content_hash(parsed.body), memory_id=claim):
            raise _tombstoned()

    def _place_all(self, intents: dict[int, Intent], outcomes: dict[int, Outcome]) -> dict[int, Observation]:
        placed: dict[int, Observation] = {}
        failed: list[Intent] = []
        for number, intent in intents.items():
            try:
                place(self._importer, intent)
                placed[number] = as_written(self._importer, intent)
            except GatewayError as error:
                outcomes[number] = Outcome(None, error)
                failed.append(intent)
            except OSError as error:
                reason = error.strerror or "unknown reason"
                outcomes[number] = Outcome(
                    None, Unavailable(f"The vault cannot be written: {reason}.", file=intent.path)
                )
                failed.append(intent)
        if failed:
            self._abandon(failed)
        return placed

    def _settle_all(
        self,
        orders: Sequence[Order],
        intents: dict[int, Intent],
        placed: dict[int, Observation],
        outcomes: dict[int, Outcome],
    ) -> None:
        groups: dict[tuple[Actor, bool, AuditEntry, str | None, bool], list[int]] = {}
        for number in placed:
            order = orders[number]
            alike = (order.actor, order.may_return, order.entry, order.review_id, order.weighing)
            groups.setdefault(alike, []).append(number)
        for numbers in groups.values():
            group = [(intents[number], placed[number]) for number in numbers]
            rows = settle(self._importer, group, {intents[number].id: orders[number] for number in numbers})
            for number in numbers:
                row = rows.get(intents[number].id)
                refused = row is None or (row.status == HELD and orders[number].op != "delete")
                outcomes[number] = Outcome(None, _not_accepted(orders[number])) if refused else Outcome(row)

    def _abandon(self, failed: Sequence[Intent]) -> None:
        with self._ledger.write() as tx:
            for intent in failed:
                idempotency.abandon(tx, intent.id)
            journal.drop(tx, [intent.id for intent in failed])
        for intent in failed:
            if intent.op != "delete":
                self._files.drop_spare(intent.id)

    def settle_spares(self, *, wait_ms: int = SPARE_MS) -> int:
        """Look again at what was swapped out ten seconds ago; a save that went into it is given back."""
        given_back = 0
        with self._ledger.read() as tx:
            waiting = journal.applied_before(tx, now_ms() - wait_ms)
        for intent in waiting:
            with self._importer.lock:
                try:
                    given_back += self._settle_spare(intent)
                except (GatewayError, OSError) as error:  # the others must not wait for this one
                    _LOG.warning("a replaced note is looked at later", path=intent.path, reason=str(error)[:200])
        return given_back

    def _settle_spare(self, intent: Intent) -> int:
        spare = self._files.spare(intent.id)
        late = spare is not None and intent.base_etag is not None and etag_of(spare) != intent.base_etag
        if late and spare is not None:
            self._give_back(intent, spare)
        self._files.drop_spare(intent.id)
        with self._ledger.write() as tx:
            journal.drop(tx, [intent.id])
        return int(late)

    def _give_back(self, intent: Intent, late: bytes) -> None:
        """An editor still wrote into the old file: over our text that save is the later one, else it goes beside."""
        with self._ledger.read() as tx:
            if journal.version_with_etag(tx, intent.note_id, etag_of(late)) is not None:
                return  # the same text was taken in another way
        current = self._files.read(intent.path)
        if current is not None and current.etag == intent.new_etag:
            undo = f"int_{uuid.uuid4().hex}"
            self._files.replace(intent.path, current.etag, late, undo)
            self._files.drop_spare(undo)
        else:
            self._files.give_back(intent.id, intent.path)
        self._importer.import_paths([intent.path], settled=True)


def as_written(importer: Importer, intent: Intent) -> Observation:
    """What an intent did to its path, though a person may have saved again since: their save is imported after it."""
    place_ = importer.places.place_of(intent.path)
    if intent.body is None:
        importer.look_again(intent.path)
        return Observation(intent.path, None, None, place_)
    try:
        seen = importer.observe(intent.path)
        if seen.read is not None and seen.read.etag == intent.new_etag:
            return seen
    except GatewayError:
        pass  # what stands there now is the next import's to judge
    importer.look_again(intent.path)
    read = FileRead(intent.path, intent.body, etag_of(intent.body), UNKNOWN_STAT)
    parsed = parse(intent.body, max_bytes=importer.files.max_bytes)
    return Observation(intent.path, read, parsed, place_, importer.places.conflict_copy(intent.path))


def place(importer: Importer, intent: Intent) -> None:
    """Do to the file what the intent says.

    Raises:
        AlreadyExists, ChangedElsewhere, BadPath, TooLarge: nothing was done.
    """
    match intent.op:
        case "create":
            assert intent.body is not None
            importer.files.create(intent.path, intent.body, intent.id)
        case "update":
            assert intent.body is not None and intent.base_etag is not None
            importer.files.replace(intent.path, intent.base_etag, intent.body, intent.id)
        case "move":
            assert intent.base_etag is not None
            importer.files.move(moved_from(intent), intent.path, intent.base_etag)
        case _:
            assert intent.base_etag is not None
            importer.files.remove(intent.path, intent.base_etag, intent.id)


def moved_from(intent: Intent) -> str:
    """Where the note of a `move` comes from."""
    return str((intent.request or {})["from"])


def settle(
    importer: Importer, group: Sequence[tuple[Intent, Observation]], orders: dict[str, Order] | None = None
) -> dict[str, NoteRow]:
    """Record what was placed, and settle the intents, in one transaction. All of a group share actor and rights.

    Returns:
        The rows of accepted intents by intent id; for a delete, the row as it was.
    """
    first = group[0][0]
    request = first.request or {}
    entry = AuditEntry(**request["entry"]) if request.get("entry") else None
    at = now_ms()
    by = Circumstances(
        first.actor,
        at,
        at,
        may_return=bool(request.get("may_return")),
        entry=entry,
        review_id=request.get("review_id"),
        weighing=bool(request.get("weighing")),
    )
    rows: dict[str, NoteRow] = {}

    def finish(tx: Transaction, before: dict[str, NoteRow], after: dict[str, NoteRow]) -> None:
        for intent, _ in group:
            row = (before if intent.op == "delete" else after).get(intent.path)
            if intent.op == "delete" and row is not None:
                for path in _erase(tx, row, _said(importer, intent), intent.request or {}):
                    importer.seen.pop(path, None)
            if row is not None:
                rows[intent.id] = row
                reviews.add_edges(tx, _edges(intent))
            _answer(tx, intent, row, (orders or {}).get(intent.id))
        journal.settle(tx, [intent.id for intent, _ in group])

    deletions = {intent.path for intent, _ in group if intent.op == "delete"}
    left = [moved_from(intent) for intent, _ in group if intent.op == "move"]
    gone = [Observation(path, None, None, importer.places.place_of(path)) for path in left]
    importer.record([*(seen for _, seen in group), *gone], by, deletions, finish)
    return rows


def _erase(tx: Transaction, row: NoteRow, text: str, request: dict[str, Any]) -> list[str]:
    if (job_id := request.get("job_id")) is None:
        alone, drafts = bool(request.get("alone")), request.get("drafts", ())
        return erasure.erase(tx, row, text, alone=alone, drafts=drafts)
    erasure.clear(tx, row, text, job_id)
    return []


def _edges(intent: Intent) -> list[tuple[str, str, str]]:
    given: list[list[str]] = (intent.request or {}).get("edges", [])
    return [(child, parent, relation) for child, parent, relation in given]


def _answer(tx: Transaction, intent: Intent, row: NoteRow | None, order: Order | None) -> None:
    if row is None:
        idempotency.abandon(tx, intent.id)
        return
    if order is not None and order.answer is not None:
        status, body = order.answer(row)
    else:  # after a crash: the request itself is gone, its outcome is not
        status, body = (200 if intent.op != "create" else 201), minimal_answer(intent.op, row)
    idempotency.answer(tx, intent.id, status, body)


def minimal_answer(op: str, row: NoteRow) -> dict[str, Any]:
    """What every answer to a write says."""
    if op == "delete":
        return {"deleted": True, "id": row.note_id}
    return {"id": row.note_id, "namespace": row.namespace, "version": row.version, "etag": row.etag}


def _said(importer: Importer, intent: Intent) -> str:
    """What a deleted note said: its bytes stay beside the vault for a moment."""
    spare = importer.files.spare(intent.id)
    return parse(spare, max_bytes=importer.files.max_bytes).body if spare is not None else ""


def _not_accepted(order: Order) -> GatewayError:
    if order.op == "delete":
        return ChangedElsewhere("The note was gone already.", file=order.path)
    if order.op == "create":
        return _tombstoned()
    return AlreadyExists("The note was not accepted; see the problems of the vault.", file=order.path)


def _tombstoned() -> Tombstoned:
    return Tombstoned(
        "This text was forgotten on request and may not come back by this way.",
        advice="A user can write it again explicitly (source `manual`, without an agent).",
    )

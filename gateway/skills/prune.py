"""prune: archives memories that are expired, wrong, repeated or worn out: kept, never recalled, restorable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from gateway.clock import now_ms
from gateway.errors import ChangedElsewhere
from gateway.importer.parts import Parts
from gateway.importer.write import Order
from gateway.ledger import Transaction, feedback, registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.feedback import hides
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import archive_path
from gateway.notes.temporal import judge
from gateway.skills.contract import Skill
from gateway.skills.ranking import validity_of


@dataclass(frozen=True, slots=True)
class ToPrune:
    """Memories to archive as they were seen, by id and etag.

    Attributes:
        edges: the lineage that comes with the archiving of each, by its id: (child, parent, relation).
    """

    etags: dict[str, str]
    edges: dict[str, tuple[tuple[str, str, str], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, str, str], ...]]
    )


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was archived; what changed meanwhile was left alone."""

    archived_ids: list[str]
    left_ids: list[str]


@dataclass(frozen=True, slots=True)
class Worth:
    """From where on a memory is archived: below an importance, or a confidence."""

    least_importance: float
    least_confidence: float


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a memory is no longer worth recalling, by its kind and in words.

    A duplicate is one that was called so, and nothing else: whether another memory says the same is not known here.
    """

    kind: Literal["expired", "incorrect", "unsure", "faded", "duplicate"]
    words: str

    @property
    def hides(self) -> bool:
        """Whether it is not recalled any more, wherever it stands."""
        return self.kind in ("expired", "incorrect")


def reason_to_archive(row: NoteRow, judgements: Sequence[str], *, left: float, worth: Worth, at: int) -> Reason | None:
    """Why a memory is no longer worth recalling; None where it is.

    Args:
        judgements: what was said of its text, oldest first.
        left: its importance after fading.
        at: the time in ms.
    """
    if row.expires_at is not None and row.expires_at <= at:
        return Reason("expired", "It has expired.")
    if hides(judgements):
        return Reason("incorrect", "It was judged incorrect.")
    if row.confidence < worth.least_confidence:
        return Reason("unsure", f"Its confidence is {row.confidence:.2f}.")
    if left < worth.least_importance:
        return Reason("faded", f"Nobody asked for it for long: {left:.2f} of its importance is left.")
    telling = [one for one in judgements if one in ("duplicate", "useful")]
    if telling and telling[-1] == "duplicate":
        return Reason("duplicate", "It was judged a duplicate.")
    return None


def holds(row: NoteRow, judgements: Sequence[str], at: int) -> bool:
    """Whether a memory says what is so at a time (ms): neither expired, nor judged incorrect, nor of another time.

    What happened stays true; a plan is one until its time is over; a time that is not sure is taken as it is written.
    """
    if hides(judgements) or (row.expires_at is not None and row.expires_at <= at):
        return False
    validity = validity_of(row)
    if validity.kind == "recurring":
        return validity.valid_from is None or validity.valid_from <= at
    verdict = judge(validity, at)
    return verdict.recalled and verdict.weight == 1.0


def standing_text(tx: Transaction, namespace: str, content_hash: str) -> NoteRow | None:
    """The active memory of a namespace that says exactly a text, if it holds now."""
    rows = [row for row in registry.others_saying(tx, namespace, content_hash) if row.status == "active"]
    said = feedback.of_texts(tx, [(row.note_id, row.content_hash) for row in rows])
    return next((row for row in rows if holds(row, said.get(row.note_id, ()), now_ms())), None)


def prune(parts: Parts, wanted: ToPrune, actor: Actor, entry: AuditEntry) -> Pruned:
    """Move memories to the archive. Call it with the importer's lock held.

    Raises:
        Unavailable: the vault is not there.
    """
    with parts.ledger.read() as tx:
        rows = registry.notes_by_id(tx, list(wanted.etags))
    orders = [
        archiving(parts, row, actor, entry, edges=wanted.edges.get(note_id, ()))
        for note_id, row in rows.items()
        if row.etag == wanted.etags[note_id] and row.status == "active" and not row.read_only
    ]
    orders = [order for order in orders if order is not None]
    outcomes = parts.writes.write_all(orders) if orders else []
    done = [order.note_id for order, one in zip(orders, outcomes, strict=True) if one.error is None]
    return Pruned(done, [note_id for note_id in wanted.etags if note_id not in done])


def archiving(
    parts: Parts, row: NoteRow, actor: Actor, entry: AuditEntry, *, edges: tuple[tuple[str, str, str], ...] = ()
) -> Order | None:
    """The order that archives a memory; None where its file is not the one that is known."""
    read = parts.files.read(row.path)
    if read is None or read.etag != row.etag:
        return None
    named = replace(entry, target_id=row.note_id, namespace=row.namespace)
    return Order(
        op="move",
        note_id=row.note_id,
        path=_free(parts, archive_path(row.path)),
        base_etag=row.etag,
        data=read.data,
        actor=actor,
        entry=named,
        may_return=False,
        moved_from=row.path,
        edges=edges,
    )


def _free(parts: Parts, path: str) -> str:
    stem = path.removesuffix(".md")
    names = (path, *(f"{stem} {number}.md" for number in range(2, 100)))
    for name in names:
        if parts.files.stat(name) is None:
            return name
    raise ChangedElsewhere("There is no free name in the archive.", file=path)


SKILL = Skill(
    name="prune",
    does="Archives memories that are expired, wrong, repeated or worn out; archived ones can be restored.",
    takes=ToPrune,
    gives=Pruned,
    when="during consolidation",
    writes_long_term=True,
)

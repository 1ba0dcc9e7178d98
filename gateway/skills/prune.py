"""prune: archives memories that are expired, wrong, repeated or worn out: kept, never recalled, restorable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.errors import ChangedElsewhere
from gateway.importer.parts import Parts
from gateway.importer.write import Order
from gateway.ledger import registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.feedback import hides
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import archive_path
from gateway.skills.contract import Skill


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


def reason_to_archive(row: NoteRow, judgements: Sequence[str], *, left: float, worth: Worth, at: int) -> str | None:
    """Why a memory is no longer worth recalling; None where it is.

    Args:
        judgements: what was said of its text, oldest first.
        left: its importance after fading.
        at: the time in ms.
    """
    if row.expires_at is not None and row.expires_at <= at:
        return "It has expired."
    if hides(judgements):
        return "It was judged incorrect."
    telling = [one for one in judgements if one in ("duplicate", "useful")]
    if telling and telling[-1] == "duplicate":
        return "It was judged a duplicate."
    if row.confidence < worth.least_confidence:
        return f"Its confidence is {row.confidence:.2f}."
    if left < worth.least_importance:
        return f"Nobody asked for it for long: {left:.2f} of its importance is left."
    return None


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

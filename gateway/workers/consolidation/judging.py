"""Which memories are about to leave, which of them stand for what is said now, and whether another one says the same.

What is about to leave takes nothing in: neither a memory that says the same nor a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.clock import now_ms
from gateway.ledger import Transaction, consolidating, feedback, journal, registry, reviews, usage
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.skills.nearness import neighbours
from gateway.skills.prune import Reason, Worth, holds, reason_to_archive
from gateway.skills.scoring import faded
from gateway.workers.consolidation.work import Pass, is_agents_own, is_on

_ENDING = ("archive", "conflict", "update")  # drafts after which their target no longer says what it says


@dataclass(frozen=True, slots=True)
class Worn:
    """What is left of a memory's importance, and why it is no longer worth recalling; None where it is."""

    left: float
    reason: Reason | None


def weigh(run: Pass, tx: Transaction, rows: Sequence[NoteRow]) -> dict[str, Worn]:
    """What has become of memories, by id."""
    ids = [row.note_id for row in rows]
    judged = feedback.of_texts(tx, [(row.note_id, row.content_hash) for row in rows])
    used, said, changed = usage.of(tx, ids), consolidating.last_said(tx, ids), journal.latest_times(tx, ids)
    worth = Worth(run.settings.archive_importance, run.settings.archive_confidence)
    found: dict[str, Worn] = {}
    for row in rows:
        use, judgements = used.get(row.note_id), judged.get(row.note_id, [])
        happened = (changed.get(row.note_id, 0), said.get(row.note_id, 0), use.last_hit_at if use else 0)
        since = max(row.updated_at, *happened)
        left = faded(
            row.importance,
            idle_ms=now_ms() - since,
            half_life_days=run.settings.half_life_days,
            judgements=judgements,
        )
        found[row.note_id] = Worn(left, reason_to_archive(row, judgements, left=left, worth=worth, at=now_ms()))
    return found


def remaining(run: Pass, user_id: str, rows: Sequence[NoteRow]) -> dict[str, bool]:
    """Those of several memories that are not about to leave, by id, and whether they may take others in.

    A person's that has only lost its worth does not: it is proposed for the archive, and there until they say so.
    """
    with run.parts.ledger.read() as tx:
        pruning = is_on(tx, user_id, "prune")
        worn = {note_id: one.reason for note_id, one in weigh(run, tx, rows).items()}
        own = {row.note_id for row in rows if is_agents_own(tx, row)}
    found: dict[str, bool] = {}
    for row in rows:
        reason = worn[row.note_id]
        if reason is None or (not pruning and not reason.hides):
            found[row.note_id] = True
        elif reason.kind == "duplicate":
            if twin(run, row) is None:
                found[row.note_id] = True
        elif not reason.hides and row.note_id not in own:
            found[row.note_id] = False
    return found


def speaking(run: Pass, tx: Transaction, rows: Sequence[NoteRow]) -> list[NoteRow]:
    """Those of several memories that say what is so now, and that a conversation may add to.

    One that has faded is among them: what is said again has not faded.
    """
    worn, at = weigh(run, tx, rows), now_ms()
    found: list[NoteRow] = []
    for row in rows:
        reason = worn[row.note_id].reason
        leaves = reason is not None and (reason.hides or (reason.kind == "unsure" and is_agents_own(tx, row)))
        if row.status == "active" and not leaves and holds(row, (), at):
            found.append(row)
    return found


def twin(run: Pass, row: NoteRow) -> NoteRow | None:
    """Another active memory of the namespace that says the same, and that nothing is about to take away."""
    text = run.text_of(row)
    if text is None:
        return None
    around = near(run, row, text)
    with run.parts.ledger.read() as tx:
        safe = lasting(run, tx, [other for other, _ in around])
    own_name = parse_namespace(row.namespace).user_id or ""
    same = (other for other, said in around if run.compared(text, said, own_name).verdict == "same")
    return next((other for other in same if other.note_id in safe), None)


def lasting(run: Pass, tx: Transaction, rows: Sequence[NoteRow]) -> set[str]:
    """The ids of those memories that stay, whatever becomes of the drafts that wait."""
    worn = weigh(run, tx, rows)
    return {row.note_id for row in rows if row.status == "active" and worn[row.note_id].reason is None} - {
        row.note_id
        for row in rows
        if (draft := reviews.open_for(tx, f"memory:{row.note_id}")) is not None and draft.proposal in _ENDING
    }


def near(run: Pass, mine: NoteRow, text: str) -> list[tuple[NoteRow, str]]:
    """A memory's active neighbours of the same namespace, visibility and time, with their texts."""
    vector = run.vectors.of(run.parts.feed, [text]).get(text)
    ids = neighbours(run.parts.feed.index, text, mine.namespace, vector, run.settings.neighbours)
    with run.parts.ledger.read() as tx:
        rows = registry.notes_by_id(tx, [one for one in ids if one != mine.note_id])
    read = [(row, run.text_of(row)) for row in rows.values() if row.status == "active" and _fits(mine, row)]
    return [(row, said) for row, said in read if said is not None]


def _fits(one: NoteRow, other: NoteRow) -> bool:
    names = ("namespace", "visibility", "expires_at", "valid_from", "valid_until", "temporal_kind")
    return all(getattr(one, name) == getattr(other, name) for name in names)

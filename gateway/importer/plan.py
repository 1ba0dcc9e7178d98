"""Compares what is on disk with what is known, and says what to do. Pure: reads nothing, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.errors import Invalid
from gateway.importer.places import Place
from gateway.importer.rows import HELD
from gateway.ledger.registry import FileRow, NoteRow
from gateway.notes.note import NoteProblem, ParsedNote, parse
from gateway.notes.paths import check_id
from gateway.notes.text import derived_memory_id, is_memory_id, new_memory_id
from gateway.vault.files import FileRead


@dataclass(frozen=True, slots=True)
class Observation:
    """What was found at one path.

    Attributes:
        read: None where there is no file.
        again: judge it anew though its bytes are the same, since something else changed.
    """

    path: str
    read: FileRead | None
    parsed: ParsedNote | None = None
    place: Place | None = None
    conflict_copy: str | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger says about the paths observed and about the notes they may be."""

    files: Mapping[str, FileRow]
    notes: Mapping[str, NoteRow]
    at_path: Mapping[str, NoteRow]
    by_etag: Mapping[str, Sequence[NoteRow]]
    by_inode: Mapping[int, NoteRow]


@dataclass(frozen=True, slots=True)
class Put:
    """A memory whose text, place or both are new. `previous` is its row before; a move has another path there."""

    kind: Literal["new", "edited", "moved"]
    note_id: str
    seen: Observation
    previous: NoteRow | None
    problems: tuple[NoteProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """A file that is no memory as it is; `previous` is the memory it was."""

    seen: Observation
    problems: tuple[NoteProblem, ...]
    previous: NoteRow | None


@dataclass(frozen=True, slots=True)
class Touch:
    """The same bytes under another stat key, or a file that came back."""

    seen: Observation
    note_id: str | None


@dataclass(frozen=True, slots=True)
class Vanish:
    """A known file that is not there. Whether it counts as deleted is decided when the plan is applied."""

    path: str
    known: FileRow
    note: NoteRow | None


@dataclass(frozen=True, slots=True)
class Drop:
    """A note whose file was overwritten by another note that moved there."""

    note: NoteRow


Action = Put | Hold | Touch | Vanish | Drop


@dataclass(slots=True)
class _Batch:
    known: Known
    gone: Callable[[str], bool]
    claims: Mapping[str, str | None]
    taken: dict[str, str] = field(default_factory=lambda: {})

    def vacated(self, row: NoteRow) -> bool:
        """Whether the file of a note has left its place: it is gone, or another note stands there now."""
        there = self.claims.get(row.path)
        return self.gone(row.path) or (there is not None and there != row.note_id and there in self.known.notes)


def plan(observations: Sequence[Observation], known: Known, *, gone: Callable[[str], bool]) -> list[Action]:
    """Decide what each observation means.

    Args:
        gone: tells whether a path has no file right now; asked only where a note may have moved.

    Returns:
        The actions, deletions last, so that a note that moved is recognised before its old path is judged.
    """
    batch = _Batch(known, gone, {seen.path: claim_of(seen) for seen in observations if seen.read is not None})
    actions: list[Action] = []
    vanished: list[Vanish] = []
    # Of two notes with one id that are new together, the plainer name has it.
    for seen in sorted(observations, key=lambda one: (len(one.path), one.path)):
        action = _decide(seen, batch)
        if isinstance(action, Vanish):
            vanished.append(action)
        elif action is not None:
            actions.append(action)
    moved = {action.previous.path for action in actions if isinstance(action, Put) and action.previous is not None}
    ousted = [
        Drop(row)
        for action in actions
        if isinstance(action, Put)
        and (row := known.at_path.get(action.seen.path)) is not None
        and row.note_id not in batch.taken
    ]
    return [*actions, *ousted, *(action for action in vanished if action.path not in moved)]


def claim_of(seen: Observation) -> str | None:
    """The id a note carries in its properties; asked several times a note, so it looks at nothing else."""
    claimed = seen.parsed.properties.get("id") if seen.parsed is not None else None
    if isinstance(claimed, bool) or not isinstance(claimed, str | int | float):
        return None
    try:
        return check_id(str(claimed).strip(), "id")
    except Invalid:
        return None


def claim_of_text(data: bytes) -> str | None:
    """The id that the bytes of a note carry."""
    return claim_of(Observation("", None, parse(data)))


def _decide(seen: Observation, batch: _Batch) -> Action | None:
    file = batch.known.files.get(seen.path)
    note = batch.known.at_path.get(seen.path)
    if seen.read is None:
        return Vanish(seen.path, file, note) if file is not None else None
    if file is not None and not seen.again and _unchanged(seen, seen.read, file, note):
        same_stat = file.stat_key == seen.read.stat_key and file.missing_since is None
        return None if same_stat else Touch(seen, note.note_id if note else None)
    return _judge(seen, note, batch)


def _unchanged(seen: Observation, read: FileRead, file: FileRow, note: NoteRow | None) -> bool:
    if file.etag != read.etag or (note is not None and note.etag != file.etag):
        return False
    settled = note is not None or file.note_id is None
    return settled and not _moved_in(seen, note) and not _to_be_held(seen, note)


def _judge(seen: Observation, note: NoteRow | None, batch: _Batch) -> Action | None:
    if seen.place is None or seen.parsed is None:
        return None
    if seen.conflict_copy is not None:
        return Hold(seen, (_sync_conflict(seen.conflict_copy),), note)
    if seen.parsed.readiness != "ready":
        return Hold(seen, seen.parsed.problems, note)
    return _identify(seen, note, batch)


def _identify(seen: Observation, note: NoteRow | None, batch: _Batch) -> Action:
    assert seen.parsed is not None
    assert seen.read is not None
    claimed = batch.claims[seen.path]
    other = batch.known.notes.get(claimed) if claimed is not None and note is not None else None
    if other is not None and note is not None and other.note_id != note.note_id and batch.vacated(other):
        return _move(seen, other, batch)
    if note is not None:
        problems = seen.parsed.problems
        if claimed is not None and claimed != note.note_id and is_memory_id(claimed):
            problems = (*problems, _changed_id(note.note_id))
        batch.taken[note.note_id] = seen.path
        return Put("edited", note.note_id, seen, note, problems)
    if claimed is not None:
        return _claim(seen, claimed, batch)
    for row in (*batch.known.by_etag.get(seen.read.etag, ()), *_same_inode(seen, batch)):
        if row.note_id not in batch.taken and batch.vacated(row):
            return _move(seen, row, batch)
    return _new(seen, derived_memory_id(seen.path), batch)


def _claim(seen: Observation, claimed: str, batch: _Batch) -> Action:
    """A note with an id of its own: it moved, it is new to us, or it is a copy."""
    assert seen.parsed is not None
    row = batch.known.notes.get(claimed)
    if claimed in batch.taken:
        return Hold(seen, (_duplicate(claimed, batch.taken[claimed]),), None)
    if row is None:
        return _new(seen, claimed, batch)
    if batch.vacated(row):
        return _move(seen, row, batch)
    return Hold(seen, (_duplicate(claimed, row.path),), None)


def _move(seen: Observation, row: NoteRow, batch: _Batch) -> Put:
    assert seen.parsed is not None
    batch.taken[row.note_id] = seen.path
    return Put("moved", row.note_id, seen, row, seen.parsed.problems)


def _new(seen: Observation, note_id: str, batch: _Batch) -> Put:
    assert seen.parsed is not None
    if note_id in batch.taken or note_id in batch.known.notes:
        note_id = new_memory_id()
    batch.taken[note_id] = seen.path
    return Put("new", note_id, seen, None, seen.parsed.problems)


def _same_inode(seen: Observation, batch: _Batch) -> Sequence[NoteRow]:
    """A note that was moved and edited. Disks give the inode of a deleted file to the next one: the name must agree."""
    row = batch.known.by_inode.get(seen.read.stat_key[2]) if seen.read else None
    same = row is not None and row.path.rpartition("/")[2] == seen.path.rpartition("/")[2]
    return (row,) if row is not None and same else ()


def _moved_in(seen: Observation, note: NoteRow | None) -> bool:
    """Whether settings or folders changed what this unchanged file means."""
    if seen.place is None:
        return note is not None
    return note is not None and note.status != HELD and note.namespace != str(seen.place.namespace)


def _to_be_held(seen: Observation, note: NoteRow | None) -> bool:
    """Whether an unchanged memory may no longer be one, since other settings or rules hold it back."""
    return note is not None and note.status != HELD and seen.parsed is not None and seen.parsed.readiness == "held"


def _sync_conflict(original: str) -> NoteProblem:
    message = f"A sync tool kept two versions of `{original}`; this is the other one."
    return NoteProblem("sync-conflict", message, None, "Merge what you need into the original, then delete this file.")


def _duplicate(note_id: str, path: str) -> NoteProblem:
    message = f"The note carries the id `{note_id}` of `{path}`."
    return NoteProblem("duplicate-id", message, None, "Remove the `id` property here, or delete the copy.", "id")


def _changed_id(note_id: str) -> NoteProblem:
    message = f"The `id` was changed by hand; the memory is still `{note_id}`."
    return NoteProblem("foreign-claim", message, None, f"Set `id: {note_id}` again, or remove the property.", "id")

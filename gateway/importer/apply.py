"""Carries out a plan in one ledger transaction: rows, files, versions for git, problems, audit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from gateway.errors import AlreadyExists
from gateway.importer import resident
from gateway.importer.places import Place
from gateway.importer.plan import Action, Drop, Hold, Observation, Put, Touch, Vanish, claim_of
from gateway.importer.rows import held_row, needs_indexing, note_row
from gateway.ledger import (
    Transaction,
    audit,
    dirty,
    events,
    identities,
    journal,
    origins,
    problems,
    registry,
    tombstones,
)
from gateway.ledger.audit import AuditEntry
from gateway.ledger.events import Event
from gateway.ledger.journal import Actor, Version
from gateway.ledger.problems import ProblemRow
from gateway.ledger.registry import FileRow, NoteRow
from gateway.notes.fields import read_fields
from gateway.notes.note import NoteProblem, ParsedNote
from gateway.notes.text import derived_memory_id
from gateway.vault.scan import StatKey

PERSON = "person"
FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Who made the changes of a plan, and when.

    Attributes:
        at: ms since 1970 UTC.
        commit_after: when git may have them, in ms.
        keep_for_git: whether the gateway commits them at all.
        may_return: whether a forgotten text may come back by this write (a user's explicit write; design section 8).
        entry: whom the audit names.
        review_id: the accepted draft that the change comes from.
        weighing: only how much memories weigh changes: they stay as old as they were.
    """

    actor: Actor
    at: int
    commit_after: int
    keep_for_git: bool = True
    may_return: bool = False
    entry: AuditEntry | None = None
    review_id: str | None = None
    weighing: bool = False


@dataclass(slots=True)
class Applied:
    """What came of a plan."""

    put: list[NoteRow] = field(default_factory=lambda: [])
    held: list[str] = field(default_factory=lambda: [])
    deleted: list[NoteRow] = field(default_factory=lambda: [])
    moved: bool = False
    problems_changed: bool = False
    seen: dict[str, StatKey | None] = field(default_factory=lambda: {})

    def add(self, other: Applied) -> None:
        """What came of another plan in the same transaction."""
        self.put += other.put
        self.held += other.held
        self.deleted += other.deleted
        self.moved |= other.moved
        self.problems_changed |= other.problems_changed
        self.seen |= other.seen


@dataclass(slots=True)
class _Work:
    tx: Transaction
    by: Circumstances
    any_tombstone: bool
    earlier_versions: dict[str, int]
    owners: set[str] = field(default_factory=set[str])
    done: Applied = field(default_factory=Applied)
    rows: dict[str, NoteRow] = field(default_factory=lambda: {})
    files: list[FileRow] = field(default_factory=lambda: [])
    versions: list[tuple[Version, bytes | None]] = field(default_factory=lambda: [])
    problems: list[ProblemRow] = field(default_factory=lambda: [])
    audit: list[AuditEntry] = field(default_factory=lambda: [])
    events: list[Event] = field(default_factory=lambda: [])
    judged: list[str] = field(default_factory=lambda: [])
    dropped_files: list[str] = field(default_factory=lambda: [])


def apply(tx: Transaction, actions: Sequence[Action], by: Circumstances) -> Applied:
    """Carry out the actions. A `Vanish` in the list is a proven deletion; unproven ones are left out by the caller."""
    new = [action.note_id for action in actions if isinstance(action, Put) and action.previous is None]
    work = _Work(tx, by, tombstones.any_buried(tx), journal.latest_version_numbers(tx, new))
    for action in actions:
        match action:
            case Put():
                _put(work, action)
            case Hold():
                _hold(work, action)
            case Touch():
                _touch(work, action)
            case Vanish():
                _delete(work, action)
            case Drop():
                _forget_row(work, action.note)
    _store(work)
    return work.done


def _store(work: _Work) -> None:
    # The notes come before the files that point at them; a moved note's old file goes first.
    registry.drop_files(work.tx, work.dropped_files)
    _free_paths(work)
    registry.save_notes(work.tx, list(work.rows.values()))
    registry.save_files(work.tx, work.files)
    journal.record_versions(work.tx, _without_retaken_paths(work))
    work.done.problems_changed = problems.replace_problems(work.tx, work.judged, work.problems)
    audit.write(work.tx, *work.audit)
    events.write(work.tx, *work.events)
    work.done.put = list(work.rows.values())


def _without_retaken_paths(work: _Work) -> list[tuple[Version, bytes | None]]:
    """Where notes swapped names, the old name of one is the new name of another: git must not remove it."""
    taken = {row.path for row in work.rows.values()}
    return [
        (replace(version, old_path=None) if version.old_path in taken else version, body)
        for version, body in work.versions
    ]


def _free_paths(work: _Work) -> None:
    """Two notes that swap their names would meet in the unique path; park the old rows first."""
    moving = {row.path: row.note_id for row in work.rows.values()}
    holders = registry.notes_by_path(work.tx, list(moving))
    parked = [row for path, row in holders.items() if row.note_id != moving[path]]
    if parked:
        registry.park(work.tx, [row.note_id for row in parked])


def _put(work: _Work, action: Put) -> None:
    seen, previous = action.seen, action.previous
    assert seen.read is not None and seen.parsed is not None and seen.place is not None
    trouble = _unknown_owner(work, seen.place)
    row, field_problems = note_row(
        action.note_id,
        seen.place,
        seen.parsed,
        etag=seen.read.etag,
        version=_next_version(work, action),
        file_time=seen.read.stat_key[0] // 1_000_000,
        previous=previous,
        changed_at=previous.updated_at if previous and work.by.weighing else work.by.at,
    )
    trouble = trouble or _forgotten(work, row, own_id=claim_of(seen) == row.note_id)
    if trouble is not None:
        known = previous if previous and previous.path == seen.path else None
        if known is not None and trouble.kind == FORGOTTEN:
            # Even what its row says of it would say what was forgotten; the file stays.
            registry.drop_notes(work.tx, [known.note_id])
            known = None
        _hold(work, Hold(seen, (trouble,), known))
        return
    if resident.is_blank(seen.place, row.etag):
        row = replace(row, status=registry.BLANK)
    row = needs_indexing(previous, row)
    work.rows[row.note_id] = row
    work.files.append(_file_row(seen, row.note_id))
    _declare_origins(work, row, previous, seen.parsed)
    malformed = resident.take_in(work.tx, row, previous, seen.place, seen.parsed)
    _judge(work, seen, (*action.problems, *field_problems, *malformed))
    if previous is not None and previous.path != row.path:
        work.dropped_files.append(previous.path)
        work.judged.append(previous.path)
        work.done.seen[previous.path] = None
        work.done.moved = True
    if previous is None or previous.etag != row.etag or previous.path != row.path:
        op = "move" if previous is not None and previous.path != row.path else "write"
        _version(work, row, op, previous.path if op == "move" and previous else None, seen.read.data)
        dirty.mark(work.tx, dirty.NOTE, row.note_id, row.namespace)
        _audit(work, {"new": "create", "edited": "update", "moved": "move"}[action.kind], row)


def _declare_origins(work: _Work, row: NoteRow, previous: NoteRow | None, parsed: ParsedNote) -> None:
    """What the note itself names as its origin becomes lineage; nearly all notes name nothing."""
    if previous is not None and previous.etag == row.etag:
        return
    fields, _ = read_fields(parsed)
    named = {origins.SUPERSEDES: fields.supersedes, origins.DERIVED_FROM: fields.derived_from}
    if previous is not None or any(named.values()):
        origins.declare(work.tx, row.note_id, named, known=previous is not None)


def _hold(work: _Work, action: Hold) -> None:
    seen, previous = action.seen, action.previous
    if seen.read is not None:
        work.files.append(_file_row(seen, previous.note_id if previous else None))
    _judge(work, seen, action.problems)
    work.done.held.append(seen.path)
    if previous is not None:
        etag = seen.read.etag if seen.read else previous.etag
        if etag != previous.etag or previous.status != "held":
            work.rows[previous.note_id] = held_row(previous, etag, work.by.at)


def _touch(work: _Work, action: Touch) -> None:
    work.files.append(_file_row(action.seen, action.note_id))


def _delete(work: _Work, action: Vanish) -> None:
    work.dropped_files.append(action.path)
    work.judged.append(action.path)
    work.done.seen[action.path] = None
    if action.note is None:
        return
    _forget_row(work, action.note)
    _version(work, action.note, "delete", None, None)


def _forget_row(work: _Work, note: NoteRow) -> None:
    registry.drop_notes(work.tx, [note.note_id])
    work.done.deleted.append(note)
    _audit(work, "delete", note)


def _file_row(seen: Observation, note_id: str | None) -> FileRow:
    assert seen.read is not None
    return FileRow(seen.path, note_id, seen.read.etag, *seen.read.stat_key)


def _judge(work: _Work, seen: Observation, found: Sequence[NoteProblem]) -> None:
    work.judged.append(seen.path)
    if seen.read is not None:
        work.done.seen[seen.path] = seen.read.stat_key
    namespace = str(seen.place.namespace) if seen.place else None
    work.problems.extend(problem_row(seen.path, namespace, problem, work.by.at) for problem in found)


def problem_row(path: str, namespace: str | None, problem: NoteProblem, at: int) -> ProblemRow:
    """A problem of a note as the ledger keeps it."""
    return ProblemRow(path, problem.kind, problem.message, problem.advice, problem.line, problem.field, namespace, at)


def _next_version(work: _Work, action: Put) -> int:
    if action.previous is not None:
        same = action.seen.read is not None and action.seen.read.etag == action.previous.etag
        return action.previous.version if same and action.kind != "moved" else action.previous.version + 1
    assert action.seen.parsed is not None
    claimed = action.seen.parsed.properties.get("version")
    hint = claimed if isinstance(claimed, int) and not isinstance(claimed, bool) and 0 < claimed < 2**31 else 1
    return max(work.earlier_versions.get(action.note_id, 0) + 1, hint)


def _version(work: _Work, row: NoteRow, op: str, old_path: str | None, body: bytes | None) -> None:
    kept = work.by.keep_for_git and not row.read_only
    version = Version(
        key=uuid.uuid4().hex,
        note_id=row.note_id,
        version=row.version if op != "delete" else row.version + 1,
        op=op,
        path=row.path,
        old_path=old_path,
        etag=None if op == "delete" else row.etag,
        author_name=work.by.actor.name,
        author_email=work.by.actor.email,
        actor=work.by.actor.label,
        at=work.by.at,
        not_before=work.by.commit_after,
        state="pending" if kept else "skipped",
        review_id=work.by.review_id,
    )
    work.versions.append((version, body if kept else None))
    if work.by.actor.kind == PERSON and version.version > 1:
        journal.postpone_person(work.tx, row.note_id, work.by.commit_after)


def _forgotten(work: _Work, row: NoteRow, *, own_id: bool) -> NoteProblem | None:
    """Whether a tombstone keeps this text from being recalled; an explicit write by a user lifts it.

    Args:
        own_id: the note carries its id; one that only its path gave it says nothing of where the text comes from.
    """
    if not work.any_tombstone:
        return None
    if work.by.may_return:
        released = tombstones.release(
            work.tx, row.namespace, content_hash=row.content_hash, memory_id=row.note_id, by=work.by.actor.label
        )
        if released:
            _audit(work, "release_tombstone", row)
        return None
    known_as = row.note_id if own_id else None
    if not tombstones.buried(work.tx, row.namespace, content_hash=row.content_hash, memory_id=known_as):
        return None
    return NoteProblem(
        FORGOTTEN,
        "This text was forgotten on request; the file was left alone and is not recalled.",
        None,
        "Delete the file; or have it back: `memory-gateway forget --undo FILE`, or POST /v1/problems/restore.",
    )


def _unknown_owner(work: _Work, place: Place) -> NoteProblem | None:
    """A person's folder is enough to be a user: the vault alone must bring everything back."""
    user_id = place.namespace.user_id
    if user_id is None or user_id in work.owners:
        return None
    if identities.user(work.tx, user_id) is not None:
        work.owners.add(user_id)
        return None
    try:
        identities.add_user(work.tx, user_id, user_id, {})
    except AlreadyExists:
        taken = identities.user_taking_id(work.tx, user_id)
        message = f"The folder `{user_id}` differs only in case from the user `{taken}`."
        return NoteProblem("name-twin", message, None, f"Move the note to the folder of `{taken}`.")
    return None


def _audit(work: _Work, action: str, row: NoteRow) -> None:
    work.events.append(
        Event(events.MEMORY, action, row.note_id, row.namespace, row.visibility, data={"version": row.version})
    )
    who = work.by.entry
    going_back = who is not None and who.action == "revert" and action == "update"
    work.audit.append(
        AuditEntry(
            action="revert" if going_back else action,
            target_type="memory",
            target_id=row.note_id,
            namespace=row.namespace,
            decision="allow",
            reason=who.reason if who else "found in the vault",
            request_id=who.request_id if who else None,
            key_id=who.key_id if who else None,
            actor_user_id=who.actor_user_id if who else None,
            actor_agent_id=who.actor_agent_id if who else None,
        )
    )


def known_for(
    tx: Transaction,
    observations: Sequence[Observation],
    missing: Collection[str],
    claims: Callable[[Observation], str | None],
) -> tuple[dict[str, FileRow], dict[str, NoteRow], dict[str, NoteRow], dict[str, list[NoteRow]], dict[int, NoteRow]]:
    """Look up what the ledger knows of these paths, ids, hashes and of files that are missing right now."""
    paths = [seen.path for seen in observations]
    files = registry.files_by_path(tx, paths)
    at_path = registry.notes_by_path(tx, paths)
    # A note without an id gets one from its path; a note that moved away from there may still have it.
    ids = [claims(seen) or derived_memory_id(seen.path) for seen in observations if seen.read is not None]
    notes = registry.notes_by_id(tx, ids)
    unknown = [seen.read.etag for seen in observations if seen.read is not None and seen.path not in at_path]
    by_etag: dict[str, list[NoteRow]] = {}
    for row in registry.notes_by_etag(tx, unknown):
        by_etag.setdefault(row.etag, []).append(row)
    gone_files = registry.files_by_path(tx, missing)
    gone_notes = registry.notes_by_path(tx, missing)
    by_inode = {file.ino: gone_notes[path] for path, file in gone_files.items() if path in gone_notes}
    return files, notes, at_path, by_etag, by_inode

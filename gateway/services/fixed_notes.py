"""A user's fixed notes (agent files, structured memories): made from templates, read, and changed as a whole.

They are the user's own: what an agent wants to change in them becomes a draft that a person decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now
from gateway.errors import AlreadyExists, BadNote, NotFound
from gateway.importer.drafts import GATEWAY
from gateway.importer.parts import Parts
from gateway.importer.resident import TEMPLATES, template_of
from gateway.importer.rows import HELD
from gateway.importer.write import Order
from gateway.ledger import problems, registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import Namespace, note_path
from gateway.notes.text import derived_memory_id
from gateway.services import policy, versions
from gateway.services.authors import actor_of
from gateway.services.proposing import Origin, propose_change
from gateway.services.records import InReview
from gateway.services.requests import Precondition
from gateway.services.secrets import check_note
from gateway.skills.proposals import finished
from gateway.vault.files import FileRead

AGENTS_PROPOSE = "These notes are the user's own; an agent can only propose a change."
_MADE = AuditEntry("create", "memory", None, None, "allow", "every user has this note")


@dataclass(frozen=True, slots=True)
class FixedNote:
    """One fixed note as it is now, and why the principal may see or change it."""

    row: NoteRow
    read: FileRead
    decision: Decision


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose fixed notes a request is about."""

    context: Context
    user_id: str


def whose(principal: Principal, parts: Parts, user_id: str | None) -> Whose:
    """The key's user; for an administrator the one that is named, by default the vault's owner.

    Raises:
        NotFound: there is no such user, or it is another.
    """
    context = guard.identify(parts.ledger, principal, user_id=user_id)
    return Whose(context, context.user_id or parts.settings.vault.owner)


def provision(parts: Parts, user_id: str) -> None:
    """Make the fixed notes that a user does not have yet. What is there is never touched.

    Raises:
        Unavailable: the vault is not there.
    """
    orders: list[Order] = []
    for room in TEMPLATES:
        path = path_of(parts, user_id, room)
        if parts.files.stat(path) is None:
            note_id, data = derived_memory_id(path), template_of(room)
            orders.append(Order("create", note_id, path, None, data, GATEWAY, _MADE, may_return=True))
    if not orders:
        return
    outcomes = parts.writes.write_all(orders)
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    if any(isinstance(error, AlreadyExists) for error in failed):  # somebody was faster: theirs is taken in
        parts.importer.import_paths([order.path for order in orders], settled=True)
    for error in failed:
        if not isinstance(error, AlreadyExists):
            raise error


def path_of(parts: Parts, user_id: str, room: str) -> str:
    """Where a fixed note stands."""
    return note_path(Namespace("user", user_id, room), "", owner=parts.settings.vault.owner)


def look(parts: Parts, who: Whose, room: str, *, writing: bool = False) -> FixedNote:
    """A fixed note as it is in the vault now; one that is missing is made. For a change, hold the importer's lock.

    Raises:
        NotAllowed: readers change nothing.
        NotFound: the user is another.
    """
    decision = _allowed(parts, who, room, writing=writing)
    path = path_of(parts, who.user_id, room)
    read = parts.files.read(path)
    if read is None:
        provision(parts, who.user_id)
        read = parts.files.read(path)
    row = _row(parts, path)
    if read is None or row is None or row.etag != read.etag:
        parts.importer.import_paths([path], settled=True)
        read, row = parts.files.read(path), _row(parts, path)
    if read is None or row is None:
        raise mend_first(parts, path)
    return FixedNote(row, read, decision)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A change of a fixed note: the version it is based on, and the new bytes from the present ones."""

    room: str
    precondition: Precondition
    compose: Callable[[FixedNote], bytes]
    action: str = "update"


def rewrite(parts: Parts, who: Whose, wanted: Rewriting) -> NoteRow | InReview:
    """Change a fixed note, or propose the change where an agent asks or every write is reviewed.

    Raises:
        ChangedElsewhere: the precondition does not hold; carries the current etag and a diff.
        BadNote: the note has a problem that a person must mend first.
        SecretFound: the new text holds a secret.
    """
    with parts.importer.lock:
        note = look(parts, who, wanted.room, writing=True)
        row, read = note.row, note.read
        wanted.precondition.check(row, lambda seen: versions.explain_difference(parts, row, read.data, seen))
        if row.status == HELD:
            raise mend_first(parts, row.path)
        done = change(parts, who, note, wanted.compose(note), action=wanted.action)
    parts.wake()
    return done


def change(parts: Parts, who: Whose, note: FixedNote, data: bytes, *, action: str) -> NoteRow | InReview:
    """Write the bytes of a fixed note, or propose them. Call it with the importer's lock held.

    Raises:
        ChangedElsewhere: the file changed this very moment.
        SecretFound: the new text holds a secret.
        Tombstoned: a person rejected the same proposal before.
    """
    row, context = note.row, who.context
    if data == note.read.data:
        return row
    data = finished(note.read.data, data, {}, row, now())
    check_note(parts, data)
    named = {"target_id": row.note_id, "namespace": row.namespace}
    entry = guard.entry(context.principal, action, "memory", decision=note.decision, **named)
    why = AGENTS_PROPOSE if context.agent_id is not None else None
    if why is None and parts.settings.review.users == "strict":
        why = policy.EVERY_WRITE
    if why is not None:
        return propose_change(parts, row, note.read.data, data, Origin(context, entry, why))
    return parts.writes.write(Order("update", row.note_id, row.path, row.etag, data, actor_of(context), entry, True))


def seen(parts: Parts, who: Whose, note: FixedNote) -> None:
    """Put a reading into the audit."""
    named = {"target_id": note.row.note_id, "namespace": note.row.namespace}
    parts.reads.add(guard.entry(who.context.principal, "read", "memory", decision=note.decision, **named))


def _allowed(parts: Parts, who: Whose, room: str, *, writing: bool) -> Decision:
    principal = who.context.principal
    # An agent may propose a change of what it may read; whether it becomes one, a person decides.
    proposing = principal.agent_id is not None and principal.role != "reader"
    namespace = Namespace("user", who.user_id, room)
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, namespace)
    missing = guard.no_user(who.user_id)
    action = "write" if writing and not proposing else "read"
    return guard.check(parts.ledger, principal, action, resource, missing)


def _row(parts: Parts, path: str) -> NoteRow | None:
    with parts.ledger.read() as tx:
        return registry.notes_by_path(tx, [path]).get(path)


def mend_first(parts: Parts, path: str) -> BadNote | NotFound:
    """Why a note cannot be used as it is, in the words of its problem."""
    with parts.ledger.read() as tx:
        first = next((row for row in problems.listed(tx) if row.path == path), None)
    if first is None:
        return NotFound("The note is not there right now.", file=path, advice="Try again in a moment.")
    return BadNote(
        f"The note has a problem that a person must mend first. {first.message}",
        file=path,
        line=first.line,
        advice=first.advice,
    )

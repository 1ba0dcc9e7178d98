"""The archive: what was put away is kept, and a person can have it back."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import AlreadyExists, Conflict, NotAllowed
from gateway.importer.parts import Parts
from gateway.importer.write import Order
from gateway.notes.namespace import restored_path
from gateway.services import memories, versions
from gateway.services.authors import actor_of
from gateway.services.records import Written


def restore(principal: Principal, parts: Parts, note_id: str) -> Written:
    """Move an archived memory back to where it stood, byte for byte. It counts as a person's from then on.

    Raises:
        NotAllowed: agents and readers restore nothing.
        NotFound: there is no such memory, or none for this principal.
        Conflict: it is not in the archive.
        AlreadyExists: another note stands at its place.
    """
    context = guard.identify(parts.ledger, principal)
    with parts.importer.lock:
        row, decision = memories.current(principal, parts, note_id)
        if context.agent_id is not None:
            raise NotAllowed("Only a person restores what was archived.", advice="Use a user's key.")
        path, read = restored_path(row.path), parts.files.read(row.path)
        if path is None or read is None:
            raise Conflict("The memory is not in the archive.", file=row.path, advice="There is nothing to restore.")
        if parts.files.stat(path) is not None:
            raise AlreadyExists("Another note stands where it stood.", file=path, advice="Rename that one, then retry.")
        named = {"target_id": row.note_id, "namespace": row.namespace}
        entry = guard.entry(principal, "restore", "memory", decision=decision, **named)
        actor = actor_of(context)
        order = Order("move", row.note_id, path, row.etag, read.data, actor, entry, False, moved_from=row.path)
        restored = parts.writes.write(order)
    parts.wake()
    return versions.written(parts, restored)

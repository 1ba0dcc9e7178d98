"""Composes the bytes of a note that goes back to what it said once. Pure."""

from __future__ import annotations

from datetime import datetime

from gateway.ledger.registry import NoteRow
from gateway.notes.fields import VISIBILITY_WIDTH
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import parse
from gateway.notes.patch import DELETE, Change, set_properties
from gateway.skills.proposals import finished

_IDENTITY = ("id", "version", "created", "updated")


def reverted_note(present: bytes, old: bytes, row: NoteRow, at: datetime) -> bytes:
    """The bytes of a note that says again what it said once; the present bytes where it says that already.

    Text and properties come back; the memory's identity stays the present one, and nothing becomes wider visible than
    the note's folder is.

    Raises:
        CannotPatch, BadNote: the old text cannot stand as a memory.
    """
    now, then = parse(present).properties, parse(old).properties
    kept: dict[str, Change] = {name: now.get(name, DELETE) for name in _IDENTITY}
    folder = parse_namespace(row.namespace).default_visibility
    claimed = then.get("visibility")
    if isinstance(claimed, str) and VISIBILITY_WIDTH.get(claimed, 0) > VISIBILITY_WIDTH[folder]:
        kept["visibility"] = now.get("visibility", DELETE)
    return finished(present, set_properties(old, kept), {}, row, at)

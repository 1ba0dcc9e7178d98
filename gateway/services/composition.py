"""Composes the bytes of notes from requests. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from gateway.errors import Invalid
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import PropertyValue, parse
from gateway.notes.patch import DELETE, Change, replace_body
from gateway.notes.template import time_text
from gateway.notes.temporal import PROPERTIES, written_out
from gateway.services.requests import MemoryPatch
from gateway.skills.proposals import check_visibility, finished

_PROPERTY_OF = {"memory_type": "type", "expires_at": "expires"}
_NO_PROPERTY = frozenset({"content", "version", "user_id", "agent_id", "workspace_id"})


def changed_note(data: bytes, patch: MemoryPatch, row: NoteRow, at: datetime) -> bytes:
    """The bytes of a note after a patch; the same bytes where the patch changes nothing.

    `updated` and `version` are kept only where the note carries them already: a person's note gets no key unasked.

    Raises:
        CannotPatch, BadNote: the note cannot be changed in place.
        Invalid: a wider visibility than the note's folder has.
    """
    given = patch.model_fields_set
    note = parse(data)
    result = data
    if "content" in given:
        if patch.content is None:
            raise Invalid("`content` cannot be taken away.", field="content", advice="Delete the memory instead.")
        if patch.content.strip("\r\n") != note.body.strip("\r\n"):
            result = replace_body(result, patch.content)
    changes = _changes(patch, row, at)
    unchanged = {name for name, value in changes.items() if _is(note.properties.get(name), value)}
    changes = {name: value for name, value in changes.items() if name not in unchanged}
    return finished(data, result, changes, row, at)


def _changes(patch: MemoryPatch, row: NoteRow, at: datetime) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for name in patch.model_fields_set - _NO_PROPERTY:
        value = getattr(patch, name)
        key = _PROPERTY_OF.get(name, name)
        if name == "visibility" and value is not None:
            check_visibility(str(value), parse_namespace(row.namespace))
        if value is None or value == ():
            changes[key] = DELETE
        elif isinstance(value, datetime):
            changes[key] = time_text(value)
        elif isinstance(value, tuple):
            changes[key] = [str(item) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            changes[key] = value
    temporal = {name: value for name in PROPERTIES if (value := changes.get(name)) is not None and value is not DELETE}
    if temporal:
        changes |= written_out(cast("dict[str, PropertyValue]", temporal), written=at)
    return dict(sorted(changes.items()))


def _is(present: PropertyValue, wanted: Change) -> bool:
    if wanted is DELETE:
        return present is None
    return type(present) is type(wanted) and present == wanted

"""Composes the bytes of notes from requests. Pure."""

from __future__ import annotations

import difflib
from datetime import datetime

from gateway.errors import BadNote, Invalid
from gateway.ledger.registry import NoteRow
from gateway.notes.fields import VISIBILITY_WIDTH
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import PropertyValue, parse
from gateway.notes.patch import DELETE, Change, replace_body, set_properties
from gateway.notes.template import time_text
from gateway.services.requests import MemoryPatch

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
    changes = _changes(patch, row)
    unchanged = {name for name, value in changes.items() if _is(note.properties.get(name), value)}
    changes = {name: value for name, value in changes.items() if name not in unchanged}
    if not changes and result == data:
        return data
    if "updated" in note.properties:
        changes["updated"] = time_text(at)
    if "version" in note.properties:
        changes["version"] = row.version + 1
    result = set_properties(result, changes) if changes else result
    if parse(result).readiness != "ready":
        raise BadNote("The note would not be readable after this change.", field="content")
    return result


def difference(old: bytes, new: bytes, *, old_name: str, new_name: str) -> str:
    """A unified diff of two versions of a note."""
    lines = [data.decode("utf-8", "replace").splitlines(keepends=True) for data in (old, new)]
    text = "".join(
        line if line.endswith("\n") else line + "\n"
        for line in difflib.unified_diff(lines[0], lines[1], fromfile=old_name, tofile=new_name)
    )
    return text


def _changes(patch: MemoryPatch, row: NoteRow) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for name in patch.model_fields_set - _NO_PROPERTY:
        value = getattr(patch, name)
        key = _PROPERTY_OF.get(name, name)
        if name == "visibility" and value is not None:
            _check_visibility(value, row)
        if value is None or value == ():
            changes[key] = DELETE
        elif isinstance(value, datetime):
            changes[key] = time_text(value)
        elif isinstance(value, tuple):
            changes[key] = [str(item) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            changes[key] = value
    return dict(sorted(changes.items()))


def _check_visibility(wanted: str, row: NoteRow) -> None:
    folder = parse_namespace(row.namespace).default_visibility
    if VISIBILITY_WIDTH[wanted] > VISIBILITY_WIDTH[folder]:
        raise Invalid(
            f"A note in {row.namespace} is `{folder}` and cannot be made `{wanted}` where it is.",
            field="visibility",
            advice="Write it anew with the wider visibility, then delete this one.",
        )


def _is(present: PropertyValue, wanted: Change) -> bool:
    if wanted is DELETE:
        return present is None
    return type(present) is type(wanted) and present == wanted

"""What a proposal makes of the vault once it is accepted: the bytes of the new or changed note. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.errors import BadNote, Invalid
from gateway.ledger.registry import NoteRow
from gateway.notes.fields import VISIBILITY_WIDTH
from gateway.notes.namespace import Namespace
from gateway.notes.note import ParsedNote, PropertyValue, parse
from gateway.notes.patch import DELETE, Change, replace_body, set_properties
from gateway.notes.properties import same
from gateway.notes.template import render_memory, time_text

# Kept by the gateway, never proposed; `confidence` of a draft is that of the memory.
_KEPT = frozenset({"id", "created", "updated", "version", "status"})
_IN_ROW = {"type": "memory_type", "summary": "summary", "tags": "tags", "importance": "importance"}
_ALSO_IN_ROW = {"confidence": "confidence", "visibility": "visibility", "source": "source"}


@dataclass(frozen=True, slots=True)
class Difference:
    """What two versions of one note differ in: the text, and the properties that were set or taken away."""

    text: str
    properties: dict[str, PropertyValue]
    removes: tuple[str, ...]


def new_note(
    memory_id: str, namespace: Namespace, text: str, properties: Mapping[str, PropertyValue], *, at: datetime
) -> bytes:
    """The bytes of a new memory note.

    Raises:
        BadNote: the text would not read back as it was given.
        Invalid: a wider visibility than the namespace has.
    """
    moment = time_text(at)
    visibility = properties.get("visibility") or namespace.default_visibility
    check_visibility(str(visibility), namespace)
    fixed: dict[str, PropertyValue] = {
        "id": memory_id,
        "visibility": visibility,
        "status": "active",
        "created": moment,
        "updated": moment,
        "version": 1,
    }
    return render_memory({**properties, **fixed}, text)


def changed_note(
    data: bytes,
    row: NoteRow,
    *,
    text: str | None,
    properties: Mapping[str, PropertyValue],
    removes: Collection[str] = (),
    at: datetime,
) -> bytes:
    """The bytes of a note after a change; the same bytes where it changes nothing.

    `updated` and `version` are kept only where the note carries them already: a person's note gets no key unasked.

    Args:
        text: the new text; None, or the same text, leaves it.
        properties: as the note is to have them; one that says what the note says without it is not added.

    Raises:
        CannotPatch, BadNote: the note cannot be changed in place.
    """
    note = parse(data)
    result = data
    if text is not None and text.strip("\r\n") != note.body.strip("\r\n"):
        result = replace_body(result, text)
    changes: dict[str, Change] = {
        name: value for name, value in properties.items() if name not in _KEPT and not _says(note, row, name, value)
    }
    changes |= {name: DELETE for name in removes if name in note.properties and name not in _KEPT}
    return finished(data, result, changes, row, at)


def finished(data: bytes, result: bytes, changes: Mapping[str, Change], row: NoteRow, at: datetime) -> bytes:
    """Apply property changes to a note whose text may have been replaced, and prove that it can still be read.

    Raises:
        CannotPatch, BadNote: the note cannot be changed in place.
    """
    if not changes and result == data:
        return data
    present = parse(data).properties
    wanted = dict(sorted(changes.items()))
    if "updated" in present:
        wanted["updated"] = time_text(at)
    if "version" in present:
        wanted["version"] = row.version + 1
    result = set_properties(result, wanted) if wanted else result
    if parse(result).readiness != "ready":
        raise BadNote("The note would not be readable after this change.", field="content")
    return result


def between(old: bytes, new: bytes) -> Difference:
    """What has to be proposed for `old` to become `new`."""
    before, after = parse(old), parse(new)
    changed = {
        name: value
        for name, value in after.properties.items()
        if name not in _KEPT and not (name in before.properties and same(before.properties[name], value))
    }
    emptied = [name for name, value in changed.items() if value in (None, "", [])]
    for name in emptied:  # a draft leaves empty properties out: to empty one is to take it away
        del changed[name]
    gone = tuple(
        name for name in before.properties if name not in _KEPT and (name not in after.properties or name in emptied)
    )
    return Difference(after.body.strip("\r\n"), changed, gone)


def check_visibility(wanted: str, namespace: Namespace) -> None:
    """A note may be narrower than its folder, never wider.

    Raises:
        Invalid: it would be wider, or is no visibility.
    """
    folder = namespace.default_visibility
    if wanted not in VISIBILITY_WIDTH or VISIBILITY_WIDTH[wanted] > VISIBILITY_WIDTH[folder]:
        raise Invalid(
            f"A note in {namespace} is `{folder}` and cannot be made `{wanted}` where it is.",
            field="visibility",
            advice="Write it anew with the wider visibility, then delete this one.",
        )


def _says(note: ParsedNote, row: NoteRow, name: str, value: PropertyValue) -> bool:
    """Whether a note has a property in effect already, though it may not spell it out."""
    if name in note.properties:
        return same(note.properties[name], value)
    column = (_IN_ROW | _ALSO_IN_ROW).get(name)
    return column is not None and same(getattr(row, column), value)

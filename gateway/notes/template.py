"""Writes a new memory note: properties in a fixed order, then the text. Never used on a note that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from typing import Final

from gateway.errors import BadNote
from gateway.notes.fields import MemoryFields
from gateway.notes.frontmatter import FENCE
from gateway.notes.note import parse
from gateway.notes.properties import PropertyValue, same
from gateway.notes.quoting import property_lines

PROPERTY_ORDER: Final = (
    "id",
    "type",
    "summary",
    "tags",
    "importance",
    "confidence",
    "visibility",
    "status",
    "source",
    "source_ref",
    "created",
    "updated",
    "expires",
    "version",
    "valid_from",
    "valid_until",
    "precision",
    "timezone",
    "temporal_kind",
    "temporal_confidence",
    "supersedes",
    "derived_from",
)


def render_memory(properties: Mapping[str, PropertyValue], body: str) -> bytes:
    """Return a new note in UTF-8 with LF line ends; the text ends with one.

    Properties without a value (None, "", []) are left out; others than those of a memory follow in the given order.

    Raises:
        BadNote: the note would not read back as the same values and text.
    """
    ordered = _ordered(properties)
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    text = text if text.endswith("\n") or not text else text + "\n"
    lines = "".join(property_lines(key, value) for key, value in ordered.items())
    block = f"{FENCE}\n{lines}{FENCE}\n" if ordered else ""
    try:
        data = (block + text).encode("utf-8")
    except UnicodeEncodeError:
        raise BadNote("The note holds half a character (a lone surrogate).") from None
    note = parse(data)
    if note.readiness != "ready" or note.body != text or not same(dict(note.properties), ordered):
        why = note.problems[0].message if note.problems else ""
        raise BadNote(f"The note would not read back as it was given. {why}".rstrip())
    return data


def properties_of(fields: MemoryFields) -> dict[str, PropertyValue]:
    """Return checked fields as properties in the fixed order; those without a value are left out."""
    given = {item.name: _value(getattr(fields, item.name)) for item in dataclass_fields(fields)}
    return _ordered(given)


def time_text(moment: datetime) -> str:
    """Write a moment as a note carries it: UTC, to the second, `2026-11-30T10:00:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _ordered(properties: Mapping[str, PropertyValue]) -> dict[str, PropertyValue]:
    keys = [key for key in PROPERTY_ORDER if key in properties]
    keys += [key for key in properties if key not in PROPERTY_ORDER]
    return {key: properties[key] for key in keys if properties[key] not in (None, "", [])}


def _value(value: object) -> PropertyValue:
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, tuple):
        return [str(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value if isinstance(value, str | int | float) else None

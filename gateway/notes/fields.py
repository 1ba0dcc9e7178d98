"""The properties that make a note a memory, checked and typed. A malformed one falls to its default, and is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from gateway.notes.links import body_tags
from gateway.notes.note import NoteProblem, ParsedNote, PropertyValue

DEFAULT_IMPORTANCE: Final = 0.5
DEFAULT_CONFIDENCE: Final = 1.0
DEFAULT_STATUS: Final = "active"
VISIBILITIES: Final = ("private", "agent-only", "workspace-shared", "global")
# How far a memory is seen, from narrow to wide. A note may narrow what its folder says, never widen it.
VISIBILITY_WIDTH: Final = {"agent-only": 0, "private": 1, "workspace-shared": 2, "global": 3}
STATUSES: Final = ("active", "needs_review", "superseded", "deprecated", "archived", "rejected")
TEXT_FIELDS: Final = (
    "type",
    "summary",
    "source",
    "source_ref",
    "valid_from",
    "valid_until",
    "precision",
    "timezone",
    "temporal_kind",
    "temporal_confidence",
)

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_ID = re.compile(r"[\w.@-]{1,64}")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """What a note claims about itself. Times are aware; importance and confidence lie between 0 and 1.

    `id`, `status`, `visibility` and `version` are hints: identity and ownership come from the path and the ledger.
    None means that the note does not say. Temporal properties stay text, as typed.
    """

    id: str | None = None
    type: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    confidence: float = DEFAULT_CONFIDENCE
    visibility: str | None = None
    status: str = DEFAULT_STATUS
    source: str | None = None
    source_ref: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    expires: datetime | None = None
    version: int | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    precision: str | None = None
    timezone: str | None = None
    temporal_kind: str | None = None
    temporal_confidence: str | None = None
    supersedes: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()


def read_fields(note: ParsedNote) -> tuple[MemoryFields, tuple[NoteProblem, ...]]:
    """Check the memory properties of a note and merge the tags of properties and body.

    A malformed value is a problem of kind `bad-property` with the line of its key; the note is still a memory.
    """
    reader = _Reader(note)
    fields = MemoryFields(
        id=reader.take("id", _id, None, "letters, digits and . _ - @, at most 64"),
        tags=_merged([*reader.tags(), *body_tags(note.body)]),
        importance=reader.take("importance", _share, DEFAULT_IMPORTANCE, "a number from 0 to 1"),
        confidence=reader.take("confidence", _share, DEFAULT_CONFIDENCE, "a number from 0 to 1"),
        visibility=reader.take("visibility", _one_of(VISIBILITIES), None, ", ".join(VISIBILITIES)),
        status=reader.take("status", _one_of(STATUSES), DEFAULT_STATUS, ", ".join(STATUSES)),
        created=reader.take("created", parse_time, None, _TIME_ADVICE),
        updated=reader.take("updated", parse_time, None, _TIME_ADVICE),
        expires=reader.take("expires", parse_time, None, _TIME_ADVICE),
        version=reader.take("version", _version, None, "a whole number from 1"),
        supersedes=reader.take("supersedes", _texts, (), "a list of ids or links"),
        derived_from=reader.take("derived_from", _texts, (), "a list of ids or links"),
        **{name: reader.take(name, _text, None, "one line of text") for name in TEXT_FIELDS},
    )
    return fields, tuple(reader.problems)


def parse_time(value: PropertyValue) -> datetime:
    """Read an ISO 8601 date or date-time as a moment in UTC; one without a zone is taken as UTC.

    Raises:
        ValueError: it is neither, or no such day exists.
    """
    if not isinstance(value, str) or not _TIME.fullmatch(value.strip()):
        raise ValueError("not a date")
    moment = datetime.fromisoformat(value.strip())
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("out of range") from None


def tags_of(value: PropertyValue) -> tuple[str, ...]:
    """Read tags as people write them: a list, `a, b` or `a b`, with or without #.

    Raises:
        ValueError: an entry is neither text nor a number.
    """
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    texts = [_text(item) or "" for item in items]
    return _merged([tag.lstrip("#").strip("/") for text in texts for tag in re.split(r"[,\s]+", text)])


_TIME_ADVICE = "a date (2026-11-30) or a date and time (2026-11-30T10:00:00Z)"


class _Reader:
    """Takes one property after the other and collects what is wrong."""

    def __init__(self, note: ParsedNote) -> None:
        self._note = note
        self.problems: list[NoteProblem] = []

    def take(self, name: str, read: Callable[[PropertyValue], _T], default: _T, expected: str) -> _T:
        value = self._note.properties.get(name)
        if value is None or value in ("", []):
            return default
        try:
            return read(value)
        except ValueError:
            self._report(name, expected)
            return default

    def tags(self) -> tuple[str, ...]:
        return (*self.take("tags", tags_of, (), "a list of words"), *self.take("tag", tags_of, (), "a list of words"))

    def _report(self, name: str, expected: str) -> None:
        message = f"The property `{name}` is not usable as it is."
        line = self._note.key_lines.get(name)
        self.problems.append(NoteProblem("bad-property", message, line, f"Expected: {expected}.", name))


def _merged(tags: list[str]) -> tuple[str, ...]:
    """Drop repeats without regard to case, as Obsidian compares tags; the first spelling stays."""
    kept: dict[str, str] = {}
    for tag in tags:
        if tag:
            kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())


def _text(value: PropertyValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise ValueError("not text")


def _texts(value: PropertyValue) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(text for text in map(_text, items) if text)


def _id(value: PropertyValue) -> str:
    text = _text(value)
    if isinstance(value, bool) or not _ID.fullmatch(text):
        raise ValueError("not an id")
    return text


def _share(value: PropertyValue) -> float:
    if isinstance(value, bool):
        raise ValueError("not a number")
    number = float(_text(value))
    if not 0 <= number <= 1:
        raise ValueError("out of range")
    return number


def _version(value: PropertyValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("not a version")
    return value


def _one_of(words: tuple[str, ...]) -> Callable[[PropertyValue], str]:
    def read(value: PropertyValue) -> str:
        text = _text(value).casefold()
        if text not in words:
            raise ValueError("not a known word")
        return text

    return read

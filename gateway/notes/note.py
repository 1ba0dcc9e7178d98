"""Reads the bytes of one note into properties, text and problems. Never raises on what a person's file may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal, TypeAlias

from gateway.errors import BadNote
from gateway.notes.frontmatter import Split, read_block, split
from gateway.notes.properties import Properties, PropertyValue

__all__ = [
    "MAX_NOTE_BYTES",
    "NoteProblem",
    "ParsedNote",
    "PropertyValue",
    "Readiness",
    "locate_key_line",
    "parse",
    "summary_of",
    "title_of",
]

Readiness: TypeAlias = Literal["ready", "held", "empty"]

MAX_NOTE_BYTES = 2 * 1024 * 1024
MAX_SUMMARY_CHARS = 200

_OURS, _MIDDLE, _THEIRS = (re.compile(f"^{sign}", re.MULTILINE) for sign in ("<<<<<<< ", "=======\r?$", ">>>>>>> "))
_HEADING = re.compile(r"^ {0,3}#[ \t]+(.+?)[ \t]*#*[ \t]*\r?$")
_CODE_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_KEY_LINE = re.compile(r"[ \t]*[^\s:#-][^:\n]*:(?:\s|$)")
# Overrides and isolates of the writing direction, signs without width, and the invisible "tag" letters, except in the
# flags of countries' parts, which are black-flag emoji followed by tag letters.
_INVISIBLE = re.compile(
    "[\u202a-\u202e\u2066-\u2069\u200b\u2060-\u2064\ufeff]"
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]"
)
_LISTED_LINK = re.compile(r"^[ \t]*-[ \t]+\[\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NoteProblem:
    """Something in a person's file that they should know about; a value, not an error.

    Attributes:
        kind: stable name: `not-utf8`, `too-large`, `empty`, `conflict-markers`, `broken-properties`, `duplicate-key`
            (these hold a note back), `unfinished-properties`, `second-properties-block`, `bidi-characters`,
            `nul-byte`, `hash-tags`, `unquoted-wikilink`, `bad-property`; importers add `sync-conflict`,
            `duplicate-id` and `foreign-claim`.
        line: 1-based line in the file, if one is to blame.
        advice: what the person can do.
        field: the property concerned.
    """

    kind: str
    message: str
    line: int | None = None
    advice: str = ""
    field: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """What a note says.

    Attributes:
        properties: typed as Obsidian shows them, in file order; empty for a held note.
        body: the text below the properties, untouched.
        text: the whole file, decoded, byte order mark included; empty if it is not UTF-8 or too large.
        body_start_line: 1-based line of the file on which the body begins.
        readiness: `held` notes are neither indexed as memories nor ever written to; `empty` ones hold nothing yet.
        key_lines: the 1-based line of each property.
    """

    properties: Mapping[str, PropertyValue]
    body: str
    text: str
    body_start_line: int
    readiness: Readiness
    problems: tuple[NoteProblem, ...] = ()
    key_lines: Mapping[str, int] = field(default_factory=dict[str, int])


def parse(data: bytes, *, max_bytes: int = MAX_NOTE_BYTES) -> ParsedNote:
    """Read a note. A note that cannot be trusted comes back as `held`, with the reason, and is never an exception."""
    if len(data) > max_bytes:
        return _held(_too_large(len(data), max_bytes))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _held(_not_utf8(data, error))
    if not text.strip("\ufeff \t\r\n"):
        problem = NoteProblem("empty", "The note is empty.", None, "Write something, or delete the note.")
        return ParsedNote({}, text, text, 1, "empty", (problem,))
    conflict = _conflict(text)
    if conflict is not None:
        return _held(conflict, text)
    parts = split(text)
    try:
        properties = read_block(parts)
    except BadNote as error:
        return _held(_broken(error), text)
    return _ready(text, parts, properties)


def title_of(note: ParsedNote, path: str) -> str:
    """Return the first heading of level one outside code, else the file's name without its ending."""
    fence = ""
    for line in note.body.split("\n"):
        mark = _CODE_FENCE.match(line)
        if fence:
            fence = "" if mark and mark.group(1).startswith(fence) else fence
        elif mark:
            fence = mark.group(1)
        elif heading := _HEADING.match(line):
            return heading.group(1)
    return PurePosixPath(path).stem


def summary_of(note: ParsedNote) -> str:
    """Return the `summary` property, else the first line of running text, at most 200 characters."""
    given = note.properties.get("summary")
    if isinstance(given, str) and given.strip():
        return given.strip()
    lines = (line.strip() for line in note.body.split("\n"))
    first = next((line for line in lines if line and not line.startswith(("#", "---", "```", "~~~", "%%"))), "")
    return first if len(first) <= MAX_SUMMARY_CHARS else first[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"


def locate_key_line(text: str, key: str) -> int | None:
    """Return the 1-based line of a top-level property in a note's text; None if it has none or is broken."""
    parts = split(text)
    try:
        return _key_lines(parts, read_block(parts)).get(key)
    except BadNote:
        return None


def _ready(text: str, parts: Split, properties: Properties) -> ParsedNote:
    lines = _key_lines(parts, properties)
    problems = (
        *_unfinished(parts),
        *_entry_flags(parts, properties, lines),
        *_second_block(parts),
        *_character_flags(text, parts),
    )
    values = MappingProxyType(properties.values)
    return ParsedNote(values, parts.body, text, parts.body_start_line, "ready", problems, lines)


def _held(problem: NoteProblem, text: str = "") -> ParsedNote:
    return ParsedNote({}, split(text).body, text, split(text).body_start_line, "held", (problem,))


def _key_lines(parts: Split, properties: Properties) -> dict[str, int]:
    before = parts.opening.count("\n") + 1
    return {entry.key: before + parts.block.count("\n", 0, entry.key_start) for entry in properties.entries}


def _too_large(size: int, limit: int) -> NoteProblem:
    message = f"The note has {size:,} bytes; notes up to {limit:,} bytes are read."
    return NoteProblem("too-large", message, None, "Split it into several notes.")


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> NoteProblem:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return NoteProblem("not-utf8", "The note is saved as UTF-16.", 1, "Save it as UTF-8.")
    line = data.count(b"\n", 0, error.start) + 1
    return NoteProblem("not-utf8", "The note is not saved as UTF-8.", line, "Save it as UTF-8.")


def _conflict(text: str) -> NoteProblem | None:
    """Find an unmerged conflict of git: its three signs at line starts, in order; inside code blocks too."""
    ours = _OURS.search(text)
    middle = _MIDDLE.search(text, ours.end()) if ours else None
    if ours is None or middle is None or not _THEIRS.search(text, middle.end()):
        return None
    line = text.count("\n", 0, ours.start()) + 1
    advice = "Keep one of the two versions and delete the lines with <<<<<<<, ======= and >>>>>>>."
    return NoteProblem("conflict-markers", "The note holds an unmerged conflict.", line, advice)


def _broken(error: BadNote) -> NoteProblem:
    kind = str(error.facts.get("kind", "broken-properties"))
    advice = "Correct this line, or look at the properties in Obsidian's source mode."
    if kind == "duplicate-key":
        advice = "Keep one of the two lines."
    return NoteProblem(kind, error.detail, error.line, advice)


def _unfinished(parts: Split) -> tuple[NoteProblem, ...]:
    second = parts.body.partition("\n")[2].lstrip("\r\n")
    if not parts.unfinished or not _KEY_LINE.match(second):
        return ()
    message = "The note begins like properties, but no line that is exactly `---` ends them."
    return (NoteProblem("unfinished-properties", message, 1, "Add a line `---` after the last property."),)


def _entry_flags(parts: Split, properties: Properties, lines: Mapping[str, int]) -> list[NoteProblem]:
    problems: list[NoteProblem] = []
    for entry in properties.entries:
        raw = parts.block[entry.value_start : entry.value_end]
        after_key = parts.block[entry.key_end :].partition("\n")[0].lstrip(" \t:")
        line = lines[entry.key]
        if entry.value is None and entry.key in ("tags", "tag") and re.match(r"#[^\s#]", after_key):
            message = "YAML takes what follows # for a comment, so these tags do not count."
            problems.append(NoteProblem("hash-tags", message, line, "Write the tags without #.", entry.key))
        flow_link = entry.shape == "flow" and raw.startswith("[[")
        if flow_link or (entry.shape == "block-list" and _LISTED_LINK.search(raw)):
            message = "A link in the properties is a link only in quotes."
            problems.append(NoteProblem("unquoted-wikilink", message, line, 'Write "[[Note]]".', entry.key))
    return problems


def _second_block(parts: Split) -> tuple[NoteProblem, ...]:
    if not parts.has_block:
        return ()
    body = parts.body.lstrip("\r\n")
    second = split(body)
    try:
        entries = read_block(second).entries
    except BadNote:
        entries = ()
    if not entries:
        return ()
    line = parts.body_start_line + parts.body[: len(parts.body) - len(body)].count("\n")
    message = "A second properties block follows the first; only the first counts."
    return (NoteProblem("second-properties-block", message, line, "Merge the two blocks into the first."),)


def _character_flags(text: str, parts: Split) -> list[NoteProblem]:
    problems: list[NoteProblem] = []
    invisible = _INVISIBLE.search(text, len(parts.bom))
    if invisible:
        line = text.count("\n", 0, invisible.start()) + 1
        message = f"The note holds an invisible character (U+{ord(invisible.group()):04X})."
        problems.append(NoteProblem("bidi-characters", message, line, "Delete it if you did not put it there."))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        advice = "Delete it; it is left out when the note is searched."
        problems.append(NoteProblem("nul-byte", "The note holds a NUL character.", line, advice))
    return problems

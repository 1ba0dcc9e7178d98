"""Changes single properties, or the body, of a person's note and proves that every other byte stayed.

A properties block is never written anew: only the lines of the asked keys are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.errors import BadNote, CannotPatch
from gateway.notes.frontmatter import FENCE, Split, is_cr_only, line_end_of, read_block, split
from gateway.notes.note import parse
from gateway.notes.properties import Entry, Properties, PropertyValue, read_properties, same
from gateway.notes.quoting import inline, list_lines, property_lines


@dataclass(frozen=True, slots=True)
class Delete:
    """Asks for a property to be removed."""


DELETE: Final = Delete()
_ITEM = re.compile(r"[ \t]*-(?:[ \t]|\r?$)")
Change: TypeAlias = "PropertyValue | Delete"


def patch_properties(data: bytes, changes: Mapping[str, Change]) -> bytes:
    """Set or remove properties in place; every byte outside the lines of the asked keys stays.

    A key keeps its place, a comment after a one-line value stays, and new keys go to the end of the block. A value
    that is already as asked changes nothing.

    Raises:
        CannotPatch: the note has no block, is held, is JSON, or the result could not be proven, as when a removed
            line was all that kept a blank line or comment out of the block scalar above. Nothing was changed.
    """
    text, parts, properties = _open(data)
    if not parts.has_block:
        if all(isinstance(value, Delete) for value in changes.values()):
            return data
        raise CannotPatch("The note has no properties.", advice="Ask for a new block instead.")
    if not properties.patchable:
        raise CannotPatch("The properties are written as JSON or as one `{...}`.", advice="Save them in Obsidian once.")
    block = _patched_block(parts, properties, changes)
    wanted = _wanted(properties.values, changes)
    result = parts.bom + parts.opening + block + parts.closing + parts.body
    return data if result == text else _proven(result, wanted, parts.body)


def set_properties(data: bytes, changes: Mapping[str, Change]) -> bytes:
    """Like `patch_properties`, and for a note without a block put one at the very top, after a byte order mark.

    The new block holds exactly the asked keys and uses the line end of the file.

    Raises:
        CannotPatch: as `patch_properties`; also for a file with the line ends of old Macs.
    """
    text, parts, _ = _open(data)
    wanted = _wanted({}, changes)
    if parts.has_block or not wanted:
        return patch_properties(data, changes)
    eol = line_end_of(text)
    lines = "".join(property_lines(key, value, eol=eol) for key, value in wanted.items())
    result = parts.bom + FENCE + eol + lines + FENCE + eol + parts.body
    return _proven(result, wanted, parts.body)


def replace_body(data: bytes, body: str, *, exact: bool = False) -> bytes:
    """Replace the text below the properties; the bytes of the block and the byte order mark stay.

    The new text takes the line ends of the file, and ends with one where the old text did (or was empty), unless it is
    to stand there exactly as given.

    Raises:
        CannotPatch: the note is held, or the new text would be read as properties or as an unmerged conflict.
    """
    text, parts, properties = _open(data)
    eol = line_end_of(text)
    new_body = body.replace("\r\n", "\n").replace("\r", "\n")
    if new_body and not exact and not new_body.endswith("\n") and (parts.body.endswith("\n") or not parts.body):
        new_body += "\n"
    new_body = new_body.replace("\n", eol)
    head = parts.head
    if new_body and head.endswith(FENCE):
        head += eol
    return _proven(head + new_body, properties.values, new_body)


def _open(data: bytes) -> tuple[str, Split, Properties]:
    """Decode a note that may be written to, and find its parts."""
    note = parse(data)
    if note.readiness != "ready":
        why = note.problems[0].message if note.problems else "It is empty."
        raise CannotPatch(f"The note cannot be changed safely. {why}", line=_line_of_first(note.problems))
    text = data.decode("utf-8")
    parts = split(text)
    if parts.unfinished:
        raise CannotPatch("The note begins like a properties block that has no end.", line=1)
    if is_cr_only(text):
        raise CannotPatch("The note uses the line ends of old Macs, in which Obsidian sees no properties.")
    return text, parts, read_block(parts)


def _line_of_first(problems: tuple[object, ...]) -> int | None:
    line = getattr(problems[0], "line", None) if problems else None
    return line if isinstance(line, int) else None


def _wanted(values: Mapping[str, PropertyValue], changes: Mapping[str, Change]) -> dict[str, PropertyValue]:
    wanted = dict(values)
    for key, value in changes.items():
        if isinstance(value, Delete):
            wanted.pop(key, None)
        else:
            wanted[key] = value
    return wanted


def _patched_block(parts: Split, properties: Properties, changes: Mapping[str, Change]) -> str:
    block, eol = parts.block, line_end_of(parts.opening)
    indent = _indent_of(block, properties.entries)
    added = "".join(
        property_lines(key, value, indent=indent, eol=eol)
        for key, value in changes.items()
        if not isinstance(value, Delete) and key not in properties.values
    )
    patched = block + added
    for entry in reversed(properties.entries):
        if entry.key in changes:
            start, end = _lines_of(block, entry)
            patched = patched[:start] + _changed_entry(block, entry, changes[entry.key]) + patched[end:]
    return patched


def _changed_entry(block: str, entry: Entry, value: Change) -> str:
    start, end = _lines_of(block, entry)
    if isinstance(value, Delete):
        return ""
    if same(value, entry.value):
        return block[start:end]
    line = _key_line(block, entry)
    if entry.shape == "block-list" and isinstance(value, list) and isinstance(entry.value, list) and value:
        first = _line_end(block, entry.key_start)
        owned = _lines_per_item(block[first:end], len(entry.value))
        merged = _merged_list(entry, owned, value, line.eol) if owned else ""
        if _reads_as(merged, value):
            return block[start:first] + merged
    return _written(line, value, entry)


def _lines_per_item(lines: str, count: int) -> list[str]:
    """Cut a block list into its items, each with the comments above it; empty unless each item is one line."""
    owned = [""]
    for line in re.findall(r"[^\n]*\n", lines):
        owned[-1] += line
        if _ITEM.match(line):
            owned.append("")
        elif line.strip() and not line.lstrip().startswith("#"):
            return []
    return owned[:-1] if len(owned) == count + 1 and not owned[-1] else []


def _reads_as(lines: str, value: PropertyValue) -> bool:
    """Say whether list lines mean what they should; a quoted text over lines can look like items and comments."""
    try:
        return same(read_properties(f"list:\n{lines}").values.get("list"), value)
    except BadNote:
        return False


def _merged_list(entry: Entry, owned: list[str], value: list[PropertyValue], eol: str) -> str:
    """Keep the lines of the items that stay, with their quotes and comments, and write the new ones."""
    old = list(zip(entry.value if isinstance(entry.value, list) else [], owned, strict=True))
    merged = ""
    for item in value:
        at = next((number for number, (known, _) in enumerate(old) if same(known, item)), None)
        merged += list_lines([item], " " * (entry.list_column or 0), eol) if at is None else old.pop(at)[1]
    return merged


@dataclass(frozen=True, slots=True)
class _KeyLine:
    """The line of a key without its value: `head` up to the colon, `gap` before the value, `tail` after it."""

    head: str
    gap: str
    tail: str
    eol: str


def _key_line(block: str, entry: Entry) -> _KeyLine:
    start = block.rfind("\n", 0, entry.key_start) + 1
    end = _line_end(block, entry.key_start)
    eol = "\r\n" if block[start:end].endswith("\r\n") else "\n"
    colon = _colon_of(block, entry)
    gap = tail = ""
    if entry.value_start >= end:
        tail = block[colon + 1 : end].rstrip()
    elif entry.shape in ("scalar", "flow") and entry.value_end <= end - len(eol):
        gap, tail = block[colon + 1 : entry.value_start], block[entry.value_end : end - len(eol)]
    return _KeyLine(block[start : colon + 1], gap, tail, eol)


def _written(line: _KeyLine, value: PropertyValue, entry: Entry) -> str:
    """Put a value between what stands before it and after it on the line of its key."""
    if isinstance(value, list) and value and entry.shape != "flow":
        column = len(line.head) - len(line.head.lstrip()) + 2 if entry.list_column is None else entry.list_column
        comment = line.gap.rstrip() + line.tail if line.tail.strip() else ""
        return line.head + comment + line.eol + list_lines(value, " " * column, line.eol)
    written = inline(value)
    if not written:
        return (line.head + line.gap + line.tail).rstrip(" \t") + line.eol
    tail = line.tail if not line.tail or line.tail[0] in " \t" else f" {line.tail}"
    return line.head + (line.gap or " ") + written + tail + line.eol


def _indent_of(block: str, entries: tuple[Entry, ...]) -> str:
    if not entries:
        return ""
    at = entries[0].key_start
    return block[block.rfind("\n", 0, at) + 1 : at]


def _lines_of(block: str, entry: Entry) -> tuple[int, int]:
    """Return the offsets of the whole lines of a property, without blank lines and comments that follow it."""
    start = block.rfind("\n", 0, entry.key_start) + 1
    if block[start : entry.key_start].strip():
        raise CannotPatch(f"The property `{entry.key[:60]}` shares its line with something else.")
    last = max(entry.value_end, _colon_of(block, entry) + 1)
    return start, _line_end(block, last)


def _line_end(block: str, at: int) -> int:
    found = block.find("\n", at)
    return len(block) if found < 0 else found + 1


def _colon_of(block: str, entry: Entry) -> int:
    at = entry.key_end
    while block[at : at + 1] in (" ", "\t"):
        at += 1
    if block[at : at + 1] != ":":
        raise CannotPatch(f"The property `{entry.key[:60]}` is not written as `name: value`.")
    return at


def _proven(result: str, wanted: Mapping[str, PropertyValue], body: str) -> bytes:
    """Read the result back; hand it out only if it says exactly what was asked."""
    try:
        data = result.encode("utf-8")
        note = parse(data)
        parts = split(result)
        values = read_block(parts).values
    except (UnicodeEncodeError, BadNote) as error:
        raise CannotPatch("The change could not be written so that it reads back the same.") from error
    if note.readiness != "ready" or parts.unfinished or parts.body != body or not same(values, dict(wanted)):
        raise CannotPatch("The change could not be written so that it reads back the same.")
    return data

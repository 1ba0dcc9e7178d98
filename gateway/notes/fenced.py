"""Finds the `yaml` block under a heading of a note's text, and writes one there. Pure; knows no field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gateway.notes.properties import PropertyValue
from gateway.notes.quoting import inline

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*\r?\n?$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")
_YAML = frozenset({"yaml", "yml"})
_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the second level and the first `yaml` block below it.

    Attributes:
        line, block_line: number of lines of the text before the heading, and before what the block holds.
        after_heading: offset of the character after the heading's line.
        start, end: offsets of what the block holds.
        block: what stands between the fences; None where there is no block.
        trouble: why it cannot be read.
    """

    title: str
    line: int
    after_heading: int
    start: int = 0
    end: int = 0
    block_line: int = 0
    block: str | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class _Fenced:
    """A code block: offsets and line of what it holds; `closed`: its end is there."""

    word: str
    start: int
    end: int
    line: int
    closed: bool


def sections_of(body: str, titles: Sequence[str]) -> dict[str, Section]:
    """The sections of these titles, compared without regard to case. What stands in code blocks is no heading."""
    wanted = {title.casefold(): title for title in titles}
    found: dict[str, Section] = {}
    current: str | None = None
    for piece in _pieces(body):
        if isinstance(piece, _Fenced):
            section = found.get(current) if current is not None else None
            if section is not None and piece.word in _YAML and section.block is None and section.trouble is None:
                found[section.title] = _with(section, body, piece)
            continue
        title, level, at, end = piece
        if level > _LEVEL:
            continue
        current = wanted.get(title.casefold()) if level == _LEVEL else None
        if current is None:
            continue
        line = body.count("\n", 0, at)
        if current in found:
            found[current] = Section(current, line, end, trouble=f"The heading `{current}` is there twice.")
            current = None
        else:
            found[current] = Section(current, line, end)
    return found


def with_block(body: str, title: str, section: Section | None, lines: str, eol: str) -> str:
    """The text with other lines in the block of a heading; block and heading are added where they are missing."""
    if section is None:
        gap = "" if not body.strip() else eol if body.endswith("\n") else eol * 2
        return f"{body}{gap}{'#' * _LEVEL} {title}{eol}{eol}```yaml{eol}{lines}```{eol}"
    if section.block is None:
        at = section.after_heading
        before = body[:at] if body[:at].endswith("\n") else body[:at] + eol
        return f"{before}{eol}```yaml{eol}{lines}```{eol}{body[at:]}"
    return body[: section.start] + lines + body[section.end :]


def block_lines(value: object, eol: str) -> str:
    """A list of objects, or one object, as YAML; what has no value is left out."""
    if isinstance(value, list):
        items = [cast("Mapping[str, Any]", item) for item in cast("list[object]", value)]
        return "".join(_item(item, eol) for item in items) or f"[]{eol}"
    named = _named(cast("Mapping[str, Any]", value))
    return "".join(f"{key}: {_written(item)}{eol}" for key, item in named.items()) or f"{{}}{eol}"


def _item(item: Mapping[str, Any], eol: str) -> str:
    lines: list[str] = []
    for key, value in _named(item).items():
        start = "  " if lines else "- "
        objects = cast("list[PropertyValue]", value) if isinstance(value, list) else []
        if objects and isinstance(objects[0], dict):
            lines += [f"{start}{key}:", *(f"    - {_written(one)}" for one in objects)]
        else:
            lines.append(f"{start}{key}: {_written(cast('PropertyValue', value))}")
    return "".join(line + eol for line in lines)


def _written(value: PropertyValue) -> str:
    """One value on its line; lists and objects in brackets, without what is empty in them."""
    if isinstance(value, dict):
        return inline(_named(value), flow=True)
    if isinstance(value, list):
        items = cast("list[PropertyValue]", value)
        return inline([_named(one) if isinstance(one, dict) else one for one in items], flow=True)
    return inline(value)


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value; an object of which nothing is left has none."""
    found: dict[str, Any] = {}
    for key, value in item.items():
        kept: Any = _named(cast("Mapping[str, Any]", value)) if isinstance(value, dict) else value
        if kept is not None and kept not in ([], {}):
            found[key] = kept
    return found


def _with(section: Section, body: str, piece: _Fenced) -> Section:
    if not piece.closed:
        trouble = f"The block `{section.title}` has no end."
        return Section(section.title, piece.line - 1, section.after_heading, trouble=trouble)
    block = body[piece.start : piece.end]
    return Section(section.title, section.line, section.after_heading, piece.start, piece.end, piece.line, block)


def _pieces(body: str) -> Iterator[_Fenced | tuple[str, int, int, int]]:
    """Headings (title, level, offsets of begin and end) and code blocks, in order."""
    at = 0
    fence, word, start, first = "", "", 0, 0
    for number, line in enumerate(_lines(body)):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark.group(1).startswith(fence) and not line[mark.end(1) :].strip():
                yield _Fenced(word, start, at, first, closed=True)
                fence = ""
        elif mark:
            fence, word, start, first = mark.group(1), mark.group(2).casefold(), at + len(line), number + 1
        elif heading := _HEADING.match(line):
            yield heading.group(2), len(heading.group(1)), at, at + len(line)
        at += len(line)
    if fence:
        yield _Fenced(word, start, at, first, closed=False)


def _lines(body: str) -> list[str]:
    """Lines as editors count them."""
    return re.findall(r"[^\n]*\n|[^\n]+", body)

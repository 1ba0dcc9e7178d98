"""Reads a properties block within fixed bounds and types its values as Obsidian shows them.

It knows YAML and JSON, but not where in a note the block stands; lines count from the start of the block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast

import yaml

from gateway.errors import BadNote

PropertyValue: TypeAlias = "str | int | float | bool | list[PropertyValue] | dict[str, PropertyValue] | None"
Shape = Literal["scalar", "block-scalar", "flow", "block-list", "block-mapping", "json"]

MAX_BLOCK_BYTES = 64 * 1024
MAX_DEPTH = 12
MAX_NODES = 5_000
# Above this a JSON reader that uses doubles would change the digits.
_EXACT_INTEGER = 2**53 - 1

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,25})\.[0-9]{1,40}")
_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# libyaml ends lines here too; Obsidian and every editor do not.
_NOT_LINE_ENDS = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
# Without libyaml the slower reader serves; it refuses a tab before a comment, so such a note is held there.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Entry:
    """One top-level property and the characters of the block that it occupies.

    `start`/`end` of key and value are character offsets in the block; `list_column` is the column of the dashes of
    a block list.
    """

    key: str
    value: PropertyValue
    shape: Shape
    key_start: int
    key_end: int
    value_start: int
    value_end: int
    list_column: int | None = None


@dataclass(frozen=True, slots=True)
class Properties:
    """All entries of a block in file order; `patchable` is false for JSON and for one `{...}` over everything."""

    entries: tuple[Entry, ...]
    patchable: bool

    @property
    def values(self) -> dict[str, PropertyValue]:
        """The properties as a plain dictionary, in file order."""
        return {entry.key: entry.value for entry in self.entries}


def read_properties(block: str) -> Properties:
    """Read the text between the two fences.

    Refused, because Obsidian calls it invalid or because it could run away: more than 64 KiB, nesting deeper than
    12, more than 5,000 nodes, anchors and aliases, tags, a key twice at any level, several documents.

    Raises:
        BadNote: with `line` counted from 1 in the block and `facts["kind"]`, the kind of the problem.
    """
    if len(block) > MAX_BLOCK_BYTES or len(block.encode("utf-8", "surrogatepass")) > MAX_BLOCK_BYTES:
        raise _bad("The properties are larger than 64 KiB.", 1)
    if block.lstrip().startswith("{"):
        found = _read_json(block)
        if found is not None:
            return found
    return _EventReader(block).read()


def read_value(block: str) -> tuple[PropertyValue, dict[tuple[str | int, ...], int]]:
    """Read a whole block whose root may also be a list, and the 1-based line of each value by its path.

    The bounds are those of `read_properties`; an empty block is None.

    Raises:
        BadNote: with `line` counted from 1 in the block.
    """
    if len(block) > MAX_BLOCK_BYTES or len(block.encode("utf-8", "surrogatepass")) > MAX_BLOCK_BYTES:
        raise _bad("The properties are larger than 64 KiB.", 1)
    reader = _EventReader(block)
    return reader.read_any(), reader.lines


def type_plain(text: str) -> PropertyValue:
    """Give an unquoted value its type, as Obsidian does: checkbox, empty, number, else text.

    A number whose digits would not come back the same (`0123`, `1e3`, `1.10`, `1_000`) stays text as typed; so do
    dates, times and the words yes, no, on and off.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and text != "-0":
        number = int(text)
        return number if abs(number) <= _EXACT_INTEGER else text
    if _DECIMAL.fullmatch(text) and (not text.endswith("0") or text.endswith(".0")):
        value = float(text)
        return value if Decimal(repr(value)) == Decimal(text) else text
    return text


def same(one: PropertyValue, other: PropertyValue) -> bool:
    """Compare with types: 1, 1.0, True and "1" are four different values; the order of keys counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other


def _bad(detail: str, line: int | None, kind: str = "broken-properties") -> BadNote:
    return BadNote(detail, line=line, kind=kind)


class _EventReader:
    """Turns YAML events into entries and gives up at the first bound that is passed."""

    def __init__(self, block: str) -> None:
        self._block = block
        self._restore: dict[int, str] = {}
        self._events = self._parse(self._mask(block))
        self._nodes = 0
        self._content_end = 0
        self.lines: dict[tuple[str | int, ...], int] = {}

    def read(self) -> Properties:
        self._next()  # stream start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Properties((), patchable=True)
        root = self._next()
        if not isinstance(root, yaml.MappingStartEvent):
            raise _bad("The properties are not `name: value` lines.", self._line(root))
        self._check(root, depth=1)
        entries = tuple(self._entries())
        self._next()  # document end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _bad("The properties hold more than one YAML document.", self._line(after))
        return Properties(entries, patchable=not root.flow_style)

    def read_any(self) -> PropertyValue:
        self._next()  # stream start
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        value = self._located(self._next(), (), depth=1)
        self._next()  # document end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _bad("The properties hold more than one YAML document.", self._line(after))
        return value

    def _located(self, event: yaml.Event, path: tuple[str | int, ...], depth: int) -> PropertyValue:
        self.lines.setdefault(path, self._line(event))
        if isinstance(event, yaml.SequenceStartEvent):
            self._check(event, depth)
            items: list[PropertyValue] = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                items.append(self._located(item, (*path, len(items)), depth + 1))
            return items
        if isinstance(event, yaml.MappingStartEvent):
            self._check(event, depth)
            mapping: dict[str, PropertyValue] = {}
            seen: set[str] = set()
            while not isinstance(item := self._next(), yaml.MappingEndEvent):
                key = self._key(item, seen)
                self.lines[(*path, key)] = self._line(item)
                mapping[key] = self._located(self._next(), (*path, key), depth + 1)
            return mapping
        return self._value(event, depth)

    def _entries(self) -> Iterator[Entry]:
        seen: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, seen)
            key_end: int = event.end_mark.index
            value_event = self._next()
            value = self._value(value_event, depth=2)
            listed = isinstance(value_event, yaml.SequenceStartEvent) and not value_event.flow_style
            yield Entry(
                key,
                value,
                _shape_of(value_event),
                event.start_mark.index,
                key_end,
                value_event.start_mark.index,
                self._content_end,
                value_event.start_mark.column if listed else None,
            )

    def _value(self, event: yaml.Event, depth: int) -> PropertyValue:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            self._content_end = self._end_of_scalar(event)
            text = self._unmask(event.value)
            return text if event.style else type_plain(text)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[PropertyValue] = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            self._end_of(event, item)
            return items
        return self._mapping(event, depth)

    def _mapping(self, start: yaml.Event, depth: int) -> dict[str, PropertyValue]:
        mapping: dict[str, PropertyValue] = {}
        seen: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, seen)
            mapping[key] = self._value(self._next(), depth + 1)
        self._end_of(start, event)
        return mapping

    def _end_of_scalar(self, event: yaml.ScalarEvent) -> int:
        """Leave out the blank lines below a block scalar, unless its header keeps them (`|+`)."""
        start, end = event.start_mark.index, event.end_mark.index
        if event.style not in ("|", ">"):
            return end
        header = self._block[start:].partition("\n")[0].partition("#")[0]
        if "+" in header:
            return end - 1
        return max(len(self._block[:end].rstrip(" \t\r\n")), start + 1)

    def _end_of(self, start: yaml.Event, end: yaml.Event) -> None:
        # A block collection ends where the next token begins, past comments that are not its own.
        if cast("yaml.CollectionStartEvent", start).flow_style:
            self._content_end = end.end_mark.index

    def _key(self, event: yaml.Event, seen: set[str]) -> str:
        self._check(event, depth=1)
        if not isinstance(event, yaml.ScalarEvent):
            raise _bad("A property name is not text; a template placeholder needs quotes.", self._line(event))
        key = self._unmask(event.value)
        if key in seen:
            raise _bad(f"The property `{key[:60]}` is there twice.", self._line(event), "duplicate-key")
        seen.add(key)
        self._content_end = event.end_mark.index
        return key

    def _check(self, event: yaml.Event, depth: int) -> None:
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _bad("The properties use a YAML anchor or alias (& or *).", self._line(event))
        if getattr(event, "tag", None) is not None:
            raise _bad("The properties use a YAML tag (!).", self._line(event))
        if depth > MAX_DEPTH:
            raise _bad(f"The properties are nested deeper than {MAX_DEPTH} levels.", self._line(event))
        if self._nodes > MAX_NODES:
            raise _bad(f"The properties hold more than {MAX_NODES} values.", self._line(event))

    def _next(self) -> yaml.Event:
        try:
            return next(self._events)
        except yaml.YAMLError as error:
            raise _bad(*self._explain(error)) from None
        except (RecursionError, StopIteration):
            raise _bad("The properties are not valid YAML.", 1) from None

    def _explain(self, error: yaml.YAMLError) -> tuple[str, int]:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if mark is not None:
            problem = getattr(error, "problem", None) or getattr(error, "context", None)
            return f"The properties are not valid YAML: {problem}.", self._line_at(mark.index)
        character = getattr(error, "character", None)
        if isinstance(character, int) and chr(character) in self._block:
            return "The properties hold a control character.", self._line_at(self._block.index(chr(character)))
        return "The properties are not valid YAML.", 1

    def _line(self, event: yaml.Event) -> int:
        return self._line_at(event.start_mark.index)

    def _line_at(self, index: int) -> int:
        # YAML reports an error at the end of the text on a line that does not exist.
        return max(1, self._block.count("\n", 0, min(index, len(self._block) - 1)) + 1)

    def _parse(self, masked: str) -> Iterator[yaml.Event]:
        parse = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
        return parse(masked, Loader=_LOADER)

    def _mask(self, block: str) -> str:
        """Swap what only libyaml takes for a line end against private characters that the block does not use."""
        wanted = sorted(set(_NOT_LINE_ENDS.findall(block)))
        if not wanted:
            return block
        free = (code for code in range(0xE000, 0xF8FF) if chr(code) not in block)
        masks = {char: chr(code) for char, code in zip(wanted, free, strict=False)}
        self._restore = {ord(mask): char for char, mask in masks.items()}
        return _NOT_LINE_ENDS.sub(lambda match: masks[match.group()], block)

    def _unmask(self, text: str) -> str:
        return text.translate(self._restore) if self._restore else text


def _shape_of(event: yaml.Event) -> Shape:
    if isinstance(event, yaml.ScalarEvent):
        return "block-scalar" if event.style in ("|", ">") else "scalar"
    if cast("yaml.CollectionStartEvent", event).flow_style:
        return "flow"
    return "block-list" if isinstance(event, yaml.SequenceStartEvent) else "block-mapping"


def _read_json(block: str) -> Properties | None:
    """Read a JSON block, which Obsidian accepts too; None when it is not JSON, so that YAML explains what is wrong."""
    try:
        loaded: Any = json.loads(
            block,
            object_pairs_hook=_no_duplicates,
            parse_int=type_plain,
            parse_float=type_plain,
            parse_constant=str,
        )
    except (ValueError, RecursionError):
        return None
    except _DuplicateJsonKey as error:
        line = _json_line(block, error.key)
        raise _bad(f"The property `{error.key[:60]}` is there twice.", line, "duplicate-key") from None
    if not isinstance(loaded, dict):
        return None
    values = cast("dict[str, PropertyValue]", loaded)
    _check_bounds(values)
    return Properties(tuple(_json_entry(block, key, value) for key, value in values.items()), patchable=False)


class _DuplicateJsonKey(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _no_duplicates(pairs: list[tuple[str, PropertyValue]]) -> dict[str, PropertyValue]:
    values: dict[str, PropertyValue] = {}
    for key, value in pairs:
        if key in values:
            raise _DuplicateJsonKey(key)
        values[key] = value
    return values


def _json_entry(block: str, key: str, value: PropertyValue) -> Entry:
    at = _json_offset(block, key)
    return Entry(key, value, "json", at, at, at, at)


def _json_offset(block: str, key: str) -> int:
    return max(0, block.find(json.dumps(key, ensure_ascii=False)))


def _json_line(block: str, key: str) -> int:
    return block.count("\n", 0, _json_offset(block, key)) + 1


def _check_bounds(root: PropertyValue) -> None:
    level, depth, nodes = [root], 1, 0
    while level:
        nodes += len(level)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise _bad("The properties are nested too deep or hold too many values.", 1)
        level = [child for value in level for child in _children(value)]
        depth += 1


def _children(value: PropertyValue) -> list[PropertyValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []

"""Two texts side by side, as rows of a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

# Line by line beyond this takes too long to wait for, and nobody would read it so.
MAX_LINES = 4_000
_AROUND = 3
_LONGEST = 1_000
_MOST_WITHIN = 200

Piece: TypeAlias = tuple[bool, str]
"""A part of a line, and whether it differs."""


@dataclass(frozen=True, slots=True)
class Side:
    """One line of one text."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the comparison; `skipped` lines that are the same are left out in a row of kind `gap`."""

    kind: Literal["same", "changed", "added", "removed", "gap"]
    old: Side | None = None
    new: Side | None = None
    skipped: int = 0


def side_by_side(old: str, new: str) -> list[Row] | None:
    """The rows that show how two texts differ; None where they are too long for it."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > MAX_LINES:
        return None
    rows: list[Row] = []
    within = 0
    steps = SequenceMatcher(None, before, after).get_opcodes()
    for at, (tag, i1, i2, j1, j2) in enumerate(steps):
        if tag == "equal":
            same = [Row("same", *_plain(before, i1 + n, after, j1 + n)) for n in range(i2 - i1)]
            rows += _unchanged(same, first=at == 0, last=at == len(steps) - 1)
            continue
        for n in range(max(i2 - i1, j2 - j1)):
            left = i1 + n if i1 + n < i2 else None
            right = j1 + n if j1 + n < j2 else None
            within += 1
            rows.append(_changed(before, left, after, right, fine=within <= _MOST_WITHIN))
    return rows


def _changed(before: Sequence[str], left: int | None, after: Sequence[str], right: int | None, *, fine: bool) -> Row:
    if left is None and right is not None:
        return Row("added", None, Side(right + 1, ((True, after[right]),)))
    if left is not None and right is None:
        return Row("removed", Side(left + 1, ((True, before[left]),)), None)
    assert left is not None and right is not None
    old, new = before[left], after[right]
    pieces = _pieces(old, new) if fine else (((True, old),), ((True, new),))
    return Row("changed", Side(left + 1, pieces[0]), Side(right + 1, pieces[1]))


def _pieces(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """What differs within a line; all of it where too little is left in common."""
    whole = ((True, old),), ((True, new),)
    if max(len(old), len(new)) > _LONGEST:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.4:
        return whole
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        differs = tag != "equal"
        if i2 > i1:
            left.append((differs, old[i1:i2]))
        if j2 > j1:
            right.append((differs, new[j1:j2]))
    return tuple(left), tuple(right)


def _unchanged(rows: list[Row], *, first: bool, last: bool) -> Iterator[Row]:
    """A few lines around what differs, and how many were left out."""
    head = 0 if first else _AROUND
    tail = 0 if last else _AROUND
    if len(rows) <= head + tail + 1:
        yield from rows
        return
    yield from rows[:head]
    yield Row("gap", skipped=len(rows) - head - tail)
    yield from rows[len(rows) - tail :]


def _plain(before: Sequence[str], left: int, after: Sequence[str], right: int) -> tuple[Side, Side]:
    return Side(left + 1, ((False, before[left]),)), Side(right + 1, ((False, after[right]),))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n") if text else []

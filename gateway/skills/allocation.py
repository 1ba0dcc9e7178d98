"""Shares a token budget between the parts of a context. One pure function: same input, same output (seed 002).

Each part has a floor that it gets first, a ceiling that it never passes, and a demand. What a part does not need is
lent to others, in the order of the parts, up to their ceilings; the total is never passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a context that wants room; all numbers are tokens.

    Attributes:
        floor: what it gets before anybody else gets more, if it wants that much.
        share: what it may have before it borrows; between floor and ceiling.
        ceiling: what it may have at most.
    """

    name: str
    demand: int
    floor: int = 0
    share: int = 0
    ceiling: int = 0


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of a whole budget a part may have, as fractions."""

    floor: float
    share: float
    ceiling: float


# What a turn needs first stands first: instructions, who the user is, what was just said, what is remembered.
CONTEXT_SHARES: Final[Mapping[str, Shares]] = {
    "directives": Shares(0.05, 0.15, 0.25),
    "profile": Shares(0.10, 0.20, 0.30),
    "working": Shares(0.10, 0.20, 0.30),
    "recall": Shares(0.25, 0.45, 1.00),
}


def parts_of(budget: int, demands: Mapping[str, int], shares: Mapping[str, Shares] = CONTEXT_SHARES) -> list[Part]:
    """The parts of a budget by their shares of it, in the order of the shares."""
    return [
        Part(name, demands.get(name, 0), int(budget * one.floor), int(budget * one.share), int(budget * one.ceiling))
        for name, one in shares.items()
    ]


def allocate(budget: int, parts: Sequence[Part]) -> dict[str, int]:
    """How many tokens each part may use.

    Never more than its ceiling and its demand, never more than the budget in all; a floor that is wanted is given as
    long as the budget lasts, to earlier parts first.
    """
    given = dict.fromkeys((part.name for part in parts), 0)
    left = max(0, budget)
    rounds = [
        [(part, part.floor) for part in parts],
        [(part, part.share) for part in parts],
        [(part, part.ceiling) for part in parts],
    ]
    for part, wanted in (pair for one in rounds for pair in one):
        limit = min(part.demand, part.ceiling, max(0, wanted))
        more = min(left, max(0, limit - given[part.name]))
        given[part.name] += more
        left -= more
    return given

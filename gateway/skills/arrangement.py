"""Whether two statements with the same words put them in the same places: who does what to whom, from where to where.
Pure.

"Ann manages Tom" and "Tom manages Ann" have the same words. What may move is a phrase that a word governs ("in the
editor", "on Monday") and one side of an "and"; what may not is the order of all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

# Governing words that say something by themselves: "tea with milk" is not "tea, milk".
_TELLING = ("with",)
# Governing words that are sure to mean the same in another language.
_SURE = ("before", "after", "from")


@dataclass(frozen=True, slots=True)
class Placed:
    """One word or number in its place.

    Attributes:
        labels: what governs it: "from", "to", "not", …
        breaks: a clause or an "and" stands before it.
        adverbial: a weekday, a time of day: it may stand anywhere.
    """

    token: str
    labels: tuple[str, ...] = ()
    breaks: bool = False
    adverbial: bool = False

    @property
    def begins(self) -> bool:
        """Whether a phrase that may move can begin here."""
        return bool(self.labels) or self.breaks or self.adverbial


def differently_arranged(
    one: Sequence[Placed], other: Sequence[Placed], *, across: bool, groups: Mapping[str, str]
) -> str | None:
    """Why two statements of the same words may say different things; None where they are arranged alike.

    Args:
        across: they are in two languages, whose order of words says nothing: then only what could be exchanged counts.
        groups: the group of a meaning; two of one group could stand for each other.
    """
    common = {placed.token for placed in one} & {placed.token for placed in other}
    mine = [placed for placed in one if placed.token in common]
    theirs = [placed for placed in other if placed.token in common]
    if (label := _moved_label(_governed(mine), _governed(theirs), across=across)) is not None:
        return f"“{label}” is said of another thing"
    if across:
        exchangeable = _exchangeable(mine, groups) or _exchangeable(theirs, groups)
        return "what is which cannot be checked across languages" if exchangeable else None
    return None if _same_order(mine, theirs) else "the same words in another order"


def _exchangeable(placed: Sequence[Placed], groups: Mapping[str, str]) -> bool:
    """Whether a language's order decides which of two is meant: two numbers, two of one group."""
    tokens = {one.token for one in placed}
    alike = [groups[token] for token in tokens if token in groups]
    return len(alike) != len(set(alike)) or sum(token.startswith("#") for token in tokens) > 1


def _moved_label(mine: Mapping[str, set[str]], theirs: Mapping[str, set[str]], *, across: bool) -> str | None:
    """A governing word that governs one thing here and another there."""
    for label in sorted(mine.keys() | theirs.keys()):
        here, there = mine.get(label, set[str]()), theirs.get(label, set[str]())
        moved = bool(here - there and there - here) and (label in _SURE or not across)
        if moved or (label in _TELLING and here != there and not across):
            return label
    if across:
        return None
    for label, here in mine.items():
        for another, there in theirs.items():
            if label != another and (here - theirs.get(label, set[str]())) & (there - mine.get(another, set[str]())):
                return label
    return None


def _governed(placed: Collection[Placed]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in placed:
        for label in one.labels:
            found.setdefault(label, set()).add(one.token)
    return found


def _same_order(one: Sequence[Placed], other: Sequence[Placed]) -> bool:
    mine, theirs = [placed.token for placed in one], [placed.token for placed in other]
    if mine == theirs or _without_repeats(mine) == _without_repeats(theirs):
        return True
    if sorted(mine) != sorted(theirs):
        return False
    for cut in range(1, len(mine)):
        if mine[cut:] + mine[:cut] == theirs and (one[cut].begins or other[len(mine) - cut].begins):
            return True
    return _one_core(one, other)


def _one_core(one: Sequence[Placed], other: Sequence[Placed]) -> bool:
    """One clause each, with the same words in the same order, and the same phrases around it in any."""
    (core, phrases), (other_core, other_phrases) = _parted(one), _parted(other)
    if any(placed.breaks for placed in (*one[1:], *other[1:])) and not _one_of_each(one):
        return False
    return core == other_core and sorted(phrases) == sorted(other_phrases)


def _one_of_each(placed: Sequence[Placed]) -> bool:
    """Whether no two words are governed alike, so that none can have changed places with another; one clause more, at
    most, begins within, and with a governed word ("short, with examples")."""
    labels = [label for one in placed for label in one.labels]
    alone = len(labels) == len(set(labels)) and not any(one.adverbial for one in placed)
    return alone and all(bool(one.labels) for one in placed[1:] if one.breaks)


def _parted(placed: Sequence[Placed]) -> tuple[list[str], list[str]]:
    core: list[str] = []
    phrases: list[str] = []
    for one in placed:
        (phrases if one.labels or one.adverbial else core).append(one.token)
    return core, phrases


def _without_repeats(tokens: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(tokens))

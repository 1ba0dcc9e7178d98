"""Whether two statements are one memory: the same, the opposite, apart, or not to be told without reading them. Pure.

What must agree is checked before what is near: two texts that differ in a number, a date, an identifier, a name or a
negation are two memories, however near their vectors are. Vectors of one language cannot tell such pairs from repeats
(measured: 0.93 to 0.99 both), so they never decide against words; they only confirm (docs/consolidation.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from gateway.skills.arrangement import differently_arranged
from gateway.skills.lexicon import lexicon
from gateway.skills.naming import LESS, WITHOUT
from gateway.skills.wording import Statement

Verdict: TypeAlias = Literal["same", "unsure", "opposite", "apart"]

SAME_WORDS = 0.9
_TOO_LONG = "longer than is compared"
_MARKED = {
    WITHOUT: "one is with what the other is without",
    LESS: "one prefers what the other puts behind",
}
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NOT = re.compile(r"\b(?:not|no|never|none|without|nothing|cannot)\b|n't\b|[不没無无非别莫勿未]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Print:
    """The words of a text, and what must agree in numbers and negations."""

    words: frozenset[str]
    numbers: tuple[str, ...]
    negations: int

    def same_as(self, other: Print) -> bool:
        """Nearly the same words, and exactly the same numbers and negations."""
        if self.numbers != other.numbers or self.negations != other.negations or not self.words:
            return False
        shared = len(self.words & other.words)
        return shared >= SAME_WORDS * len(self.words | other.words)


def print_of(text: str) -> Print:
    """The print of a text."""
    folded = text.casefold()
    return Print(frozenset(_words(folded)), tuple(sorted(_NUMBER.findall(folded))), len(_NOT.findall(folded)))


@dataclass(frozen=True, slots=True)
class Limits:
    """Cosine similarities of passages from which on a vector confirms.

    Attributes:
        alike: of one language, where one statement only says a little more than the other.
        across: of two languages, likewise.
        unsure: from here on a model is worth asking; `unsure_across` for two languages.
        overlap: without vectors, the share of common meanings from which on it is.
    """

    alike: float = 0.995
    across: float = 0.92
    unsure: float = 0.9
    unsure_across: float = 0.8
    overlap: float = 0.34


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two statements are to each other, and why, in a few words.

    Attributes:
        open: the words alone did not decide; vectors may say more.
    """

    verdict: Verdict
    reason: str
    open: bool = False


def compare(one: Statement, other: Statement, similarity: float | None = None, limits: Limits = LIMITS) -> Comparison:
    """Compare two statements of one namespace.

    Args:
        similarity: cosine of their vectors as passages; None without vectors.
    """
    if one.key == other.key:
        return Comparison("same", "the same text")
    if one.cut or other.cut:
        return Comparison("apart", _TOO_LONG)
    if (difference := _fixed_difference(one, other)) is not None:
        return Comparison("apart", difference)
    only_one, only_other = one.tokens - other.tokens, other.tokens - one.tokens
    shared = one.tokens & other.tokens
    denial, explained = _denial(one, other, only_one, only_other)
    if denial is not None:
        rest = (only_one | only_other) - explained
        alike = bool(shared or explained) and not rest
        return Comparison("opposite" if alike else "apart", denial)
    if (difference := _excluded(only_one, only_other)) is not None:
        return Comparison("apart", difference)
    if not shared:
        return Comparison("apart", "nothing in common")
    if _name_unverified(one, other):
        return _unsure(one, other, similarity, limits, "a name that cannot be checked across languages")
    if (difference := _told_otherwise(one, other)) is not None:
        return _unsure(one, other, similarity, limits, difference)
    return _by_nearness(one, other, similarity, limits)


def hard_difference(one: Statement, other: Statement) -> str | None:
    """What no model may overrule: another number, date, identifier or name, a denial, or what excludes the other."""
    only_one, only_other = one.tokens - other.tokens, other.tokens - one.tokens
    if one.cut or other.cut:
        return _TOO_LONG
    return (
        _fixed_difference(one, other) or _denial(one, other, only_one, only_other)[0] or _excluded(only_one, only_other)
    )


def _fixed_difference(one: Statement, other: Statement) -> str | None:
    if one.numbers != other.numbers:
        return "another number"
    if one.dates != other.dates:
        return "another date"
    if one.identifiers != other.identifiers:
        return "another identifier"
    if one.eastern == other.eastern and (_unknown_names(one, other) or _unknown_names(other, one)):
        return "another name"
    if one.eastern != other.eastern:
        east, west = (one, other) if one.eastern else (other, one)
        if _unknown_names(east, west):
            return "another name"
    if _of_another(one, other) or _of_another(other, one):
        return "another name"
    both = one.opening is not None and other.opening is not None
    if both and one.opening not in other.words and other.opening not in one.words:
        return "another name"
    return None


def _told_otherwise(one: Statement, other: Statement) -> str | None:
    """The same things, but how often, how much, whether they must, when, or which of them does it differs."""
    mine, theirs = _by_kind(one.shades), _by_kind(other.shades)
    for kind in sorted(mine.keys() | theirs.keys()):
        here, there = mine.get(kind, set[str]()), theirs.get(kind, set[str]())
        unmarked = (here | there) <= lexicon().unmarked and not (here and there)
        if here != there and not unmarked:
            return f"another “{sorted(here ^ there)[0]}”"
    if one.liking * other.liking > 0 and {*one.marks, *other.marks} <= {"not"}:
        pass  # "do not like" and "dislike" deny the same
    elif "not" in {*one.marks, *other.marks} and one.marks != other.marks:
        return "another part of it is denied"
    across = one.eastern != other.eastern or one.mixed != other.mixed
    return differently_arranged(one.placed, other.placed, across=across, groups=lexicon().group_of)


def _by_kind(shades: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for shade in shades:
        found.setdefault(shade.partition("=")[0], set()).add(shade)
    return found


def _of_another(one: Statement, other: Statement) -> bool:
    """One begins with a name that the other does not know, and only the other speaks of the user."""
    named = one.opening is not None and one.opening not in other.words and not one.personal
    return named and other.personal


def _unknown_names(one: Statement, other: Statement) -> bool:
    return any(name not in other.words and name not in other.tokens and name not in other.names for name in one.names)


def _name_unverified(one: Statement, other: Statement) -> bool:
    """A western name whose eastern form nobody knows here."""
    if one.eastern == other.eastern:
        return False
    east, west = (one, other) if one.eastern else (other, one)
    return _unknown_names(west, east) or (west.opening is not None and west.opening not in east.words)


def _denial(
    one: Statement, other: Statement, only_one: frozenset[str], only_other: frozenset[str]
) -> tuple[str | None, frozenset[str]]:
    """How one denies the other, and the tokens in which it does so."""
    marked: set[str] = set()
    reason: str | None = None
    for mine, theirs in ((only_one, only_other), (only_other, only_one)):
        for token in mine:
            for mark, meant in _MARKED.items():
                if token.startswith(mark) and token.removeprefix(mark) in theirs:
                    marked |= {token, token.removeprefix(mark)}
                    reason = meant
    if reason is not None:
        return reason, frozenset(marked)
    words = lexicon()
    for mine in only_one:
        for theirs in only_other:
            group = words.group_of.get(mine)
            if group in words.opposites and group == words.group_of.get(theirs):
                return "one says the contrary", frozenset({mine, theirs})
    if one.liking * other.liking < 0:
        return "one likes what the other dislikes", frozenset()
    if one.negated != other.negated:
        return "one denies it", frozenset()
    return None, frozenset()


def _excluded(only_one: frozenset[str], only_other: frozenset[str]) -> str | None:
    groups = lexicon().group_of
    mine = {groups[token] for token in only_one if token in groups}
    theirs = {groups[token] for token in only_other if token in groups}
    common = sorted(mine & theirs)
    return f"another {common[0].replace('_', ' ')}" if common else None


def _by_nearness(one: Statement, other: Statement, similarity: float | None, limits: Limits) -> Comparison:
    only_one, only_other = one.tokens - other.tokens, other.tokens - one.tokens
    if not only_one and not only_other:
        return Comparison("same", "the same in other words")
    extra, union = only_one | only_other, len(one.tokens | other.tokens)
    near = limits.alike if one.eastern == other.eastern else limits.across
    little = not (only_one and only_other) and len(extra) <= max(1, 0.25 * union)
    if little and _harmless(extra, one, other) and (similarity or 0.0) >= near:
        return Comparison("same", "one says a little more, and they are near in meaning")
    return _unsure(one, other, similarity, limits, "near in meaning, other words")


def _harmless(extra: frozenset[str], one: Statement, other: Statement) -> bool:
    """Whether words that only one says may be a detail: no "off" or "half", no sister or colour, nothing beside a
    number, nothing at the end (a boat trip is no boat), and no character that only together with others is a word."""
    words = lexicon()
    if extra & words.fragile or any(token in words.group_of for token in extra):
        return False
    if any(len(token) == 1 and not token.isascii() for token in extra):
        return False
    for placed in (one.placed, other.placed):
        if placed and placed[-1].token in extra:
            return False
        for before, after in pairwise(placed):
            if (before.token in extra and after.token[0] == "#") or (after.token in extra and before.token[0] == "#"):
                return False
    return True


def _unsure(one: Statement, other: Statement, similarity: float | None, limits: Limits, why: str) -> Comparison:
    if similarity is None:
        shared = len(one.tokens & other.tokens)
        near = shared >= limits.overlap * len(one.tokens | other.tokens)
    else:
        near = similarity >= (limits.unsure if one.eastern == other.eastern else limits.unsure_across)
    return Comparison("unsure", why, True) if near else Comparison("apart", "said of other things", True)


def _words(text: str) -> Iterable[str]:
    return (match[0] for match in _WORD.finditer(text))

"""Whether two statements contradict each other: a denial, a pair of opposites, or another value of one thing. Pure.

"My dog is a beagle" and "my dog is called Rex" are both true: of "my … is …" only what has one value at a time counts
(a name, a birthday, a port), two values of one kind (two colours), or two numbers of the same unit.

Nothing is decided here: who finds a contradiction lays both sides before a person (design section 8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.skills.lexicon import lexicon
from gateway.skills.likeness import Comparison, compare
from gateway.skills.wording import Statement, statement

_YEAR = re.compile(r"(?:19|20)\d\d")
_SELF = re.compile(r"^(?:i|we|the user|user|he or she|我们?|用户|本人|)$", re.IGNORECASE)
_END = r"(?=[.,;!?，。；！？\n]|$)"
_BEFORE = r"(?:^|(?<=[.,;:!?\n] )|\b(?:that|and) )"
_WHO = rf"{_BEFORE}(?P<who>[\w' ]{{1,40}}?)"
_VALUE = rf"(?P<value>.+?){_END}"
_NOW = "(?:now |currently )?"
_WHO_EAST = r"(?P<who>(?:^|(?<=[，。；：:]))[^，。；：:\s]{0,8}?)"
# (what is valued, where its value must be a name, pattern): one value each at a time.
_VALUES: tuple[tuple[str, bool, re.Pattern[str]], ...] = tuple(
    (name, named, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for name, named, pattern in (
        ("home", True, rf"{_WHO} {_NOW}(?:lives?|am living|is living|moved|resides?) {_NOW}(?:in|to) {_VALUE}"),
        ("home", False, rf"{_WHO_EAST}(?:现在|目前|已经)?(?:住在|住到|搬到了?|搬去了?)(?P<value>.+?){_END}"),
        ("workplace", False, rf"{_WHO} works? (?:at|for) (?P<value>.+?){_END}"),
        ("workplace", False, rf"{_WHO_EAST}(?:现在|目前)?在(?P<value>[^，。]{{1,12}}?)(?:工作|上班){_END}"),
        ("occupation", False, rf"{_WHO} works? as (?P<value>.+?){_END}"),
        ("name", False, rf"{_BEFORE}(?P<who>)my name is (?P<value>.+?){_END}"),
        ("name", False, rf"{_WHO_EAST}(?:的名字)?叫(?P<value>.+?){_END}"),
    )
)  # fmt: skip
_POSSESSION = re.compile(
    rf"{_BEFORE}(?:(?P<mine>my|our|the user's|user's)|(?P<who>[\w ]{{1,30}}?)'s) (?P<what>[\w' -]{{2,40}}?) (?:is|are) "
    rf"(?P<value>.+?){_END}",
    re.IGNORECASE | re.MULTILINE,
)
_POSSESSION_EAST = re.compile(
    rf"(?P<mine>我的|我们的|用户的)(?P<what>[^，。；是叫]{{1,10}})(?:是|叫)(?P<value>.+?){_END}", re.MULTILINE
)
_MEASURE = re.compile(
    rf"{_BEFORE}(?P<mine>the) (?P<what>[\w' -]{{2,60}}?) (?:is|are|listens on|runs on) "
    rf"(?P<value>[\w ]*\d.*?){_END}",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Valued:
    """That something of somebody has a value. `who` is empty for the user."""

    what: frozenset[str]
    who: frozenset[str]
    value: Statement
    single: bool


def contradiction(one: str, other: str, *, own_name: str = "", found: Comparison | None = None) -> str | None:
    """Why two statements cannot both hold; None where they can.

    Args:
        own_name: the user's id: "Tom lives" and "I live" speak of one, in Tom's memories.
        found: how they compare, where that is known already.
    """
    first, second = statement(one, own_name), statement(other, own_name)
    found = found or compare(first, second)
    if found.verdict == "opposite":
        return found.reason
    if found.verdict == "same" or first.eastern != second.eastern:
        return None  # values of two languages cannot be told apart by their letters
    for mine in _values(one, own_name):
        for theirs in _values(other, own_name):
            if mine.what == theirs.what and mine.who == theirs.who and _exclude(mine, theirs):
                return "they give one thing two values"
    return None


def _values(text: str, own_name: str) -> Iterator[Valued]:
    for name, named, pattern in _VALUES:
        for match in pattern.finditer(text):
            if not named or match["value"][:1].isupper():
                value = statement(match["value"], own_name)
                yield Valued(frozenset({name}), _who(match["who"], own_name), value, single=True)
    for pattern in (_POSSESSION, _POSSESSION_EAST, _MEASURE):
        for match in pattern.finditer(text):
            who = match.groupdict().get("who") or ""
            what = statement(match["what"], own_name).tokens
            if what:
                value = statement(match["value"], own_name)
                yield Valued(what, _who(who, own_name), value, single=bool(what & lexicon().single))


def _who(text: str, own_name: str) -> frozenset[str]:
    text = text.strip()
    if _SELF.fullmatch(text) or text.casefold() == own_name.casefold():
        return frozenset()
    return statement(text, own_name).tokens | statement(text, own_name).names


def _exclude(mine: Valued, theirs: Valued) -> bool:
    """Whether the two values cannot both hold."""
    one, other = mine.value, theirs.value
    words = lexicon()
    if {bool(words.countries & side.words) for side in (one, other)} == {True, False}:
        return False  # a town and its country
    if mine.single:
        alike = one.text[:1].isupper() == other.text[:1].isupper()  # a firm and its office
        return alike and not _beside(one, other) and _differ(one, other)
    groups = words.group_of
    kinds = [{groups[token] for token in side.tokens if token in groups} for side in (one, other)]
    same_unit = bool(one.numbers) and bool(other.numbers) and one.tokens == other.tokens
    return bool(kinds[0] & kinds[1] or same_unit) and _differ(one, other)


def _beside(one: Statement, other: Statement) -> bool:
    """Whether both may hold, each at its time: "moved to Paris in 2010", "as a volunteer on weekends"."""
    years = [{number for number in side.numbers if _YEAR.fullmatch(number)} for side in (one, other)]
    if all(years) and years[0] != years[1]:
        return bool(one.tokens and other.tokens)
    return _at_a_time(one) != _at_a_time(other)


def _at_a_time(value: Statement) -> bool:
    words = lexicon()
    return "=weekend" in value.tokens or any(words.group_of.get(one) in words.adverbial for one in value.tokens)


def _differ(one: Statement, other: Statement) -> bool:
    """Another value; one that only says more than the other is the same."""
    if (one.numbers, one.dates, one.identifiers) != (other.numbers, other.dates, other.identifiers):
        return bool(one.numbers or one.dates or one.identifiers) and bool(
            other.numbers or other.dates or other.identifiers
        )
    return bool(one.tokens - other.tokens) and bool(other.tokens - one.tokens)

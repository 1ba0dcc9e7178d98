"""Finds calendar dates in text, so that "May 3rd", "5月3日" and "2023-05-03" share a search token. Pure.

Dates that two readers could read differently (`04/05/2023`) or that need to know today (`yesterday`) are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:[,\ ]{{1,2}}(?P<{}>\d{{4}})\b)?"
_HAN = "[一二三四五六七八九十]"
_DATE = re.compile(
    rf"""
    (?<![\d.])(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?!\d)
    | \b(?P<m2>{_MONTH})\.?\ (?:the\ )?(?P<d2>{_DAY})\b{_YEAR.format("y2")}
    | \b(?P<d3>{_DAY})\ (?:of\ )?(?P<m3>{_MONTH})\b\.?{_YEAR.format("y3")}
    | (?:(?P<y4>\d{{4}})\ ?年\ ?)?(?P<m4>\d{{1,2}}|{_HAN}{{1,2}})\ ?月\ ?(?P<d4>\d{{1,2}}|{_HAN}{{1,3}})\ ?[日号號]
    """,
    re.VERBOSE,
)
# A date in a path, an address or a timestamp is a part of a longer name.
_NAME_BEFORE = re.compile(r"[a-z0-9_][._@/\\:+#\-]*\Z")
_NAME_AFTER = re.compile(r"[._@/\\:+#\-]*[a-z0-9_]")
_DAY_TOKEN = re.compile(r"\d\d-\d\d")
_HAN_DIGITS = {character: number for number, character in enumerate("一二三四五六七八九", 1)}


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date in a text: where it stands, and its tokens."""

    start: int
    end: int
    tokens: tuple[str, ...]


def dates_in(folded: str) -> Iterator[WrittenDate]:
    """The dates of a folded text.

    A day gives `05-03`, so that a year may be left out; with a year it gives `2023-05-03` and `2023-05` too.
    """
    for match in _DATE.finditer(folded):
        parts = {name[0]: value for name, value in match.groupdict().items() if value}
        month, day = _number(parts["m"]), _number(parts["d"])
        if 1 <= month <= 12 and 1 <= day <= 31:
            tokens = [f"{month:02}-{day:02}"]
            if year := parts.get("y"):
                tokens += [f"{year}-{month:02}-{day:02}", f"{year}-{month:02}"]
            yield WrittenDate(match.start(), match.end(), tuple(tokens))


def is_day(token: str) -> bool:
    """Whether a token is a day of any year, as `dates_in` gives it."""
    return _DAY_TOKEN.fullmatch(token) is not None


def without_dates(folded: str) -> str:
    """The text with a blank for each date that is no part of a longer name."""
    kept, last = list[str](), 0
    for date in dates_in(folded):
        if _NAME_BEFORE.search(folded[last : date.start]) or _NAME_AFTER.match(folded, date.end):
            continue
        kept += (folded[last : date.start], " ")
        last = date.end
    return "".join([*kept, folded[last:]])


def _number(written: str) -> int:
    """The value of `3`, `3rd`, `mar`, or 二十三; 0 where it has none."""
    if written[:3] in _MONTHS:
        return _MONTHS.index(written[:3]) + 1
    if digits := re.match(r"\d+", written):
        return int(digits[0])
    tens, ten, ones = written.rpartition("十")
    if len(tens) > 1 or len(ones) > 1:
        return 0
    return (_HAN_DIGITS.get(tens, 1) * 10 if ten else 0) + _HAN_DIGITS.get(ones, 0)

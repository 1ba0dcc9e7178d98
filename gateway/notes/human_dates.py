"""Dates as people write them, in Chinese and English: what span they mean, how exactly, and how surely.

The words are read by `dateparser`; here Chinese forms that it does not know are put into ones that it does, and a date
without an hour becomes the whole day, month or year that it names.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Any, Final, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Precision = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
PRECISIONS: Final[tuple[Precision, ...]] = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")

# How sure a reading is: written out in full, named without doubt, or relative to when it was written.
WRITTEN_OUT, NAMED, RELATIVE = 1.0, 0.9, 0.7

_ISO = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,6})?)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?"
)
_CHINESE_DATE = re.compile(r"(?:(?P<year>\d{4})年)(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?)?")
_QUARTER = re.compile(
    r"(?:(?P<first>\d{4})[\s-]*q(?P<one>[1-4])|q(?P<two>[1-4])[\s-]*(?P<second>\d{4}))", re.IGNORECASE
)
_DIGITS: Final = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_NUMBER = re.compile(
    r"[零〇一二两三四五六七八九]?十[一二三四五六七八九]?|[零〇一二两三四五六七八九](?=[点月日号天周个年小分刻秒])"
)
_WEEKDAYS: Final = {
    "一": "Monday",
    "二": "Tuesday",
    "三": "Wednesday",
    "四": "Thursday",
    "五": "Friday",
    "六": "Saturday",
    "日": "Sunday",
    "天": "Sunday",
}
_WEEKDAY = re.compile(r"(?P<which>下+个?|上+个?|本|这个?)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])")
_DAYS: Final = {"大后天": 3, "后天": 2, "明天": 1, "明日": 1, "今天": 0, "今日": 0, "昨天": -1, "昨日": -1, "前天": -2}
_HALVES: Final = {
    "凌晨": 0,
    "清晨": 0,
    "早上": 0,
    "早晨": 0,
    "上午": 0,
    "中午": 12,
    "下午": 12,
    "傍晚": 12,
    "晚上": 12,
    "今晚": 12,
}
_CLOCK = re.compile(
    r"(?P<half>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|今晚)?\s*(?P<hour>\d{1,2})(?:点钟?|[:：时])"
    r"(?:(?P<half_past>半)|(?P<minute>\d{1,2})分?)?"
)


@dataclass(frozen=True, slots=True)
class Span:
    """What a date means: from `start` up to, but without, `end`, both aware; and how sure that reading is."""

    start: datetime
    end: datetime
    precision: Precision
    confidence: float


def resolve(text: str, *, now: datetime, zone: str | None = None) -> Span:
    """Read a date or time as a person writes it.

    Args:
        now: when it was written; relative words are counted from there.
        zone: IANA name of the time zone it is meant in; None: UTC.

    Raises:
        ValueError: nobody can tell what moment that is, or there is no such zone.
    """
    place = zone_of(zone)
    local = now.astimezone(place)
    cleaned = text.strip()
    if not cleaned or len(cleaned) > 100:
        raise ValueError("no date")
    for read in (_iso, _quarter, _chinese_date, _chinese_words, _by_dateparser):
        found = read(cleaned, local, place)
        if found is not None:
            return found
    raise ValueError(f"{text!r} is no date that can be understood")


def zone_of(name: str | None) -> tzinfo:
    """The time zone of an IANA name.

    Raises:
        ValueError: there is none of that name.
    """
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is no IANA time zone") from None


def _iso(text: str, _local: datetime, place: tzinfo) -> Span | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    try:
        if match["hour"] is None:
            return _of_parts(match["year"], match["month"], match["day"], place, WRITTEN_OUT)
        if match["day"] is None:
            return None
        written = text.replace(" ", "T")
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(f"{text!r} is no date that exists") from None
    start = moment if moment.tzinfo else moment.replace(tzinfo=place)
    return _instant(start, "second" if match["second"] else "minute", WRITTEN_OUT)


def _quarter(text: str, _local: datetime, place: tzinfo) -> Span | None:
    match = _QUARTER.fullmatch(text)
    if match is None:
        return None
    year, quarter = int(match["first"] or match["second"]), int(match["one"] or match["two"])
    start = datetime(year, 3 * quarter - 2, 1, tzinfo=place)
    return Span(start, _months_later(start, 3), "quarter", NAMED)


def _chinese_date(text: str, _local: datetime, place: tzinfo) -> Span | None:
    match = _CHINESE_DATE.fullmatch(_with_digits(text))
    if match is None:
        return None
    return _of_parts(match["year"], match["month"], match["day"], place, WRITTEN_OUT)


def _chinese_words(text: str, local: datetime, _place: tzinfo) -> Span | None:
    """`明天下午三点`, `下周五`, `周三上午9点半`, `三天后`."""
    if not re.search(r"[\u4e00-\u9fff]", text):
        return None
    rest = _with_digits(text)
    day, rest = _chinese_day(rest, local)
    clock = _CLOCK.search(rest)
    if clock is None:
        return Span(*_whole_day(day), "day", RELATIVE) if day is not None and not rest.strip() else None
    if (rest[: clock.start()] + rest[clock.end() :]).strip():
        return None
    hour = int(clock["hour"])
    half = clock["half"]
    if half is not None and _HALVES[half] == 12 and hour < 12:
        hour += 12
    minute = 30 if clock["half_past"] else int(clock["minute"] or 0)
    if hour > 24 or minute > 59:
        return None
    base = day if day is not None else local
    start = _midnight(base) + timedelta(hours=hour, minutes=minute)
    return _instant(start, "minute" if clock["minute"] or clock["half_past"] else "hour", RELATIVE)


def _chinese_day(text: str, local: datetime) -> tuple[datetime | None, str]:
    for word, days in _DAYS.items():
        if word in text:
            return local + timedelta(days=days), text.replace(word, "", 1)
    match = _WEEKDAY.search(text)
    if match is not None:
        wanted = list(calendar.day_name).index(_WEEKDAYS[match["day"]])
        which = match["which"] or ""
        weeks = which.count("下") - which.count("上")
        days = wanted - local.weekday() + 7 * weeks
        if not which and days <= 0:
            days += 7  # a bare weekday is the next one to come
        return local + timedelta(days=days), text[: match.start()] + text[match.end() :]
    later = re.search(r"(\d+)天(后|以后|之后|前|以前|之前)", text)
    if later is not None:
        days = int(later[1]) * (1 if "后" in later[2] else -1)
        return local + timedelta(days=days), text[: later.start()] + text[later.end() :]
    dated = re.search(r"(\d{1,2})月(\d{1,2})[日号]", text)
    if dated is not None:
        try:
            day = local.replace(month=int(dated[1]), day=int(dated[2]))
        except ValueError:
            return None, text
        return day, text[: dated.start()] + text[dated.end() :]
    return None, text


def _by_dateparser(text: str, local: datetime, place: tzinfo) -> Span | None:
    found = _parser()(_with_digits(text), local.replace(tzinfo=None))
    if found is None:
        return None
    moment, period = found
    start = moment.replace(tzinfo=place)
    relative = not re.search(r"\d{4}", text)
    confidence = RELATIVE if relative else NAMED
    match period:
        case "year":
            return _of_parts(str(start.year), None, None, place, confidence)
        case "quarter":
            first = start.replace(month=3 * ((start.month - 1) // 3) + 1, day=1)
            return Span(_midnight(first), _months_later(_midnight(first), 3), "quarter", confidence)
        case "month":
            return _of_parts(str(start.year), str(start.month), None, place, confidence)
        case "week":
            monday = _midnight(start - timedelta(days=start.weekday()))
            return Span(monday, monday + timedelta(days=7), "week", confidence)
        case "time":
            return _instant(start.replace(second=0, microsecond=0), "minute", confidence)
        case _:
            return Span(*_whole_day(start), "day", confidence)


@cache
def _parser() -> Callable[[str, datetime], tuple[datetime, str] | None]:
    """dateparser, loaded when the first date needs it: it brings its languages along."""
    from dateparser.date import DateDataParser  # pyright: ignore[reportMissingTypeStubs]

    def parse(text: str, base: datetime) -> tuple[datetime, str] | None:
        settings = {"RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "RETURN_TIME_AS_PERIOD": True}
        parser: Any = DateDataParser(languages=["en", "zh"], settings=settings)
        data: Any = parser.get_date_data(text)
        moment = cast("datetime | None", data.date_obj)
        return None if moment is None else (moment, str(data.period))

    return parse


def _of_parts(year: str, month: str | None, day: str | None, place: tzinfo, confidence: float) -> Span:
    try:
        start = datetime(int(year), int(month or 1), int(day or 1), tzinfo=place)
    except ValueError:
        raise ValueError("no such day") from None
    if day is not None:
        return Span(*_whole_day(start), "day", confidence)
    if month is not None:
        return Span(start, _months_later(start, 1), "month", confidence)
    return Span(start, _months_later(start, 12), "year", confidence)


def _instant(start: datetime, precision: Precision, confidence: float) -> Span:
    lengths = {"second": 1, "minute": 60, "hour": 3600}
    return Span(start, start + timedelta(seconds=lengths[precision]), precision, confidence)


def _whole_day(moment: datetime) -> tuple[datetime, datetime]:
    start = _midnight(moment)
    following = date(start.year, start.month, start.day) + timedelta(days=1)
    return start, datetime(following.year, following.month, following.day, tzinfo=start.tzinfo)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _months_later(start: datetime, months: int) -> datetime:
    number = start.year * 12 + start.month - 1 + months
    if number // 12 > 9999:
        raise ValueError("no such year")
    return start.replace(year=number // 12, month=number % 12 + 1)


def _with_digits(text: str) -> str:
    """Chinese numbers before a unit become digits: 三点 → 3点, 十二月 → 12月."""

    def number(match: re.Match[str]) -> str:
        word = match[0]
        if "十" not in word:
            return str(_DIGITS[word])
        tens, _, ones = word.partition("十")
        return str((_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0))

    protected = re.sub(
        r"((?:周|星期|礼拜)[一二三四五六日天])", lambda match: "".join(f"\0{char}" for char in match[1]), text
    )
    return _NUMBER.sub(number, protected).replace("\0", "")

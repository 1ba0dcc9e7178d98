"""When a memory holds: `[valid_from, valid_until)`, what kind of statement it is, and what that means for recall.

Seed 002: `temporal_confidence` says how surely the time is known, apart from `confidence`, which is about the fact. A
state that surely ended is not recalled; an event is history; a plan whose time is over was "previously planned".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, cast

from gateway.errors import Invalid
from gateway.notes.human_dates import PRECISIONS, Precision, Span, resolve, zone_of
from gateway.notes.note import NoteProblem, PropertyValue

TemporalKind = Literal["state", "event", "plan", "recurring"]
KINDS: Final[tuple[TemporalKind, ...]] = ("state", "event", "plan", "recurring")
PROPERTIES: Final = ("valid_from", "valid_until", "temporal_kind", "precision", "timezone", "temporal_confidence")

# From here on a time is sure enough to leave a memory out; below, it is recalled with less weight and a word of doubt.
SURE: Final = 0.7
DOUBTFUL_WEIGHT: Final = 0.6
PAST_PLAN_WEIGHT: Final = 0.7
OUT_OF_SEASON_WEIGHT: Final = 0.9
_DAY_MS: Final = 86_400_000
_ADVICE: Final = {
    "valid_from": "Write a date such as `2026-11-30`, `2026-11` or `next Friday`.",
    "valid_until": "Write a date such as `2026-11-30`, `2026-11` or `next Friday`, after `valid_from`.",
    "temporal_kind": "Write state, event, plan or recurring.",
    "precision": "Write second, minute, hour, day, week, month, quarter or year.",
    "timezone": "Write an IANA name such as `Europe/Berlin` or `Asia/Shanghai`.",
    "temporal_confidence": "Write a number from 0 to 1.",
}


@dataclass(frozen=True, slots=True)
class Validity:
    """When a memory holds; times in ms since 1970 UTC, the end excluded. None: open on that side."""

    kind: TemporalKind | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    precision: Precision | None = None
    timezone: str | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the time of a memory means at a moment.

    Attributes:
        weight: what its score is multiplied by.
        qualification: what must be said along with it; None where nothing is to be added.
    """

    recalled: bool
    weight: float = 1.0
    qualification: str | None = None


_WRITTEN_OUT: Final = re.compile(r"\d{4}(-\d\d(-\d\d)?)?([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_Wrong = Callable[[str, str], None]
TIMELESS: Final = Validity()
ALWAYS: Final = Verdict(True)


def read_validity(
    properties: Mapping[str, PropertyValue], *, written: datetime, lines: Mapping[str, int] | None = None
) -> tuple[Validity, tuple[NoteProblem, ...]]:
    """Read the temporal properties of a note. What cannot be read is a problem; the note then holds without a time.

    A date without an hour means all of the day, month or year it names: `valid_until: 2026-11` is the end of November.

    Args:
        written: when it was written; relative words such as `tomorrow` are counted from there.
        lines: the line of each property, for problems.
    """
    given = {name: properties[name] for name in PROPERTIES if properties.get(name) not in (None, "", [])}
    if not given:
        return TIMELESS, ()
    problems: list[NoteProblem] = []

    def wrong(name: str, why: str) -> None:
        message = f"`{name}` cannot be understood: {why}."
        line = lines.get(name) if lines else None
        problems.append(NoteProblem("bad-property", message, line, _ADVICE[name], name))

    zone = _zone(given.get("timezone"), wrong)
    begin = _span(given.get("valid_from"), "valid_from", written, zone, wrong)
    end = _span(given.get("valid_until"), "valid_until", written, zone, wrong)
    if begin is not None and end is not None and end.end <= begin.start:
        wrong("valid_until", "it lies before `valid_from`")
    kind = _one_of(given.get("temporal_kind"), KINDS, "temporal_kind", wrong)
    precision = _one_of(given.get("precision"), PRECISIONS, "precision", wrong)
    confidence = _share(given.get("temporal_confidence"), wrong)
    if problems:
        return TIMELESS, tuple(problems)
    spans = [span for span in (begin, end) if span is not None]
    read = min((span.confidence for span in spans), default=1.0)
    return Validity(
        kind=cast("TemporalKind | None", kind),
        valid_from=_ms(begin.start) if begin else None,
        valid_until=_until(end),
        precision=cast("Precision | None", precision) or (spans[0].precision if spans else None),
        timezone=zone,
        confidence=confidence if confidence is not None else read,
    ), ()


def written_out(properties: Mapping[str, PropertyValue], *, written: datetime) -> dict[str, PropertyValue]:
    """The temporal properties with human dates resolved, so that they mean the same whenever they are read again.

    Raises:
        Invalid: one of them cannot be understood; names the field.
    """
    given = {name: properties[name] for name in PROPERTIES if properties.get(name) not in (None, "", [])}
    validity, problems = read_validity(given, written=written)
    if problems:
        first = problems[0]
        raise Invalid(first.message, field=first.field, advice=first.advice)
    for name in ("valid_from", "valid_until"):
        text = given.get(name)
        if text is None or _WRITTEN_OUT.fullmatch(str(text).strip()):
            continue
        span = resolve(str(text), now=written, zone=validity.timezone)
        given[name] = _text_of(span)
        given.setdefault("precision", span.precision)
        if span.confidence < 1:
            given.setdefault("temporal_confidence", span.confidence)
    return given


def _text_of(span: Span) -> str:
    """A span as ISO 8601, as exactly as it is known."""
    match span.precision:
        case "year":
            return f"{span.start:%Y}"
        case "month":
            return f"{span.start:%Y-%m}"
        case "day" | "week" | "quarter":
            return f"{span.start:%Y-%m-%d}"
        case _:
            return span.start.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def judge(validity: Validity, at: int) -> Verdict:
    """What the time of a memory means for recall at a moment (ms since 1970 UTC)."""
    if validity.valid_from is None and validity.valid_until is None:
        return ALWAYS
    ended = validity.valid_until is not None and validity.valid_until <= at
    ahead = validity.valid_from is not None and validity.valid_from > at
    if validity.kind == "event":
        return Verdict(True, 1.0, "event to come" if ahead else "historical event")
    if validity.kind == "recurring":
        return _recurring(validity, at)
    if validity.kind == "plan":
        if ended or (validity.valid_until is None and _passed(validity, at)):
            return Verdict(True, PAST_PLAN_WEIGHT, "previously planned")
        return Verdict(True, 1.0, "plan")
    if not ended and not ahead:
        return ALWAYS
    if validity.confidence >= SURE:
        return Verdict(False)
    doubt = "possibly outdated state" if ended else "possibly not valid yet"
    return Verdict(True, DOUBTFUL_WEIGHT, doubt)


def _recurring(validity: Validity, at: int) -> Verdict:
    """A window that comes again by its precision: the same hours every day, days every week, and so on."""
    if validity.valid_from is not None and validity.valid_from > at:
        return Verdict(True, OUT_OF_SEASON_WEIGHT, "begins later")
    period = _PERIODS.get(validity.precision or "day")
    if validity.valid_from is None or validity.valid_until is None or period is None:
        return ALWAYS
    length = validity.valid_until - validity.valid_from
    if length >= period or (at - validity.valid_from) % period < length:
        return ALWAYS
    return Verdict(True, OUT_OF_SEASON_WEIGHT, "recurring, not right now")


# How long after its beginning a recurring window comes again, by how exactly it is given.
_PERIODS: Final[Mapping[str, int]] = {
    "minute": _DAY_MS,
    "second": _DAY_MS,
    "hour": _DAY_MS,
    "day": 7 * _DAY_MS,
    "week": 28 * _DAY_MS,
    "month": 365 * _DAY_MS,
    "quarter": 365 * _DAY_MS,
}


def _passed(validity: Validity, at: int) -> bool:
    """Whether a plan that names only its beginning is over: a day after it, or what its precision spans."""
    assert validity.valid_from is not None
    spans = {"week": 7, "month": 31, "quarter": 92, "year": 366}
    return validity.valid_from + spans.get(validity.precision or "day", 1) * _DAY_MS <= at


def _span(value: PropertyValue, name: str, written: datetime, zone: str | None, wrong: _Wrong) -> Span | None:
    if value is None:
        return None
    try:
        return resolve(str(value), now=written, zone=zone)
    except (ValueError, OverflowError):
        wrong(name, "it is no date")
        return None


def _until(end: Span | None) -> int | None:
    """An exact moment is the end itself; a day, month or year is included as a whole."""
    if end is None:
        return None
    return _ms(end.start if end.precision in ("second", "minute", "hour") else end.end)


def _zone(value: PropertyValue, wrong: _Wrong) -> str | None:
    if value is None:
        return None
    try:
        zone_of(str(value))
    except ValueError:
        wrong("timezone", "there is no such zone")
        return None
    return str(value)


def _one_of(value: PropertyValue, words: tuple[str, ...], name: str, wrong: _Wrong) -> str | None:
    if value is None:
        return None
    word = str(value).strip().casefold()
    if word not in words:
        wrong(name, f"it is one of {', '.join(words)}")
        return None
    return word


def _share(value: PropertyValue, wrong: _Wrong) -> float | None:
    if value is None:
        return None
    try:
        share = float(str(value))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        wrong("temporal_confidence", "it is a number from 0 to 1")
        return None
    return share


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1000)

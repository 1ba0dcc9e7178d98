"""Dates as people write them, and what the time of a memory means for recall."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.notes.human_dates import resolve
from gateway.notes.temporal import SURE, Validity, judge, read_validity

MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "start", "end", "precision"),
    [
        ("2026-11", "2026-11-01", "2026-12-01", "month"),
        ("2026", "2026-01-01", "2027-01-01", "year"),
        ("2026-11-30", "2026-11-30", "2026-12-01", "day"),
        ("2026-11-30T10:30:00Z", "2026-11-30T10:30:00", "2026-11-30T10:30:01", "second"),
        ("2026-11-30 10:30", "2026-11-30T10:30:00", "2026-11-30T10:31:00", "minute"),
        ("next Friday", "2026-12-04", "2026-12-05", "day"),
        ("tomorrow at 3pm", "2026-12-01T15:00:00", "2026-12-01T15:01:00", "minute"),
        ("December 2026", "2026-12-01", "2027-01-01", "month"),
        ("Q3 2026", "2026-07-01", "2026-10-01", "quarter"),
        ("last week", "2026-11-23", "2026-11-30", "week"),
        ("明天下午三点", "2026-12-01T15:00:00", "2026-12-01T16:00:00", "hour"),
        ("下周五", "2026-12-11", "2026-12-12", "day"),
        ("周三上午九点半", "2026-12-02T09:30:00", "2026-12-02T09:31:00", "minute"),
        ("三天后", "2026-12-03", "2026-12-04", "day"),
        ("2026年十二月", "2026-12-01", "2027-01-01", "month"),
        ("明年", "2027-01-01", "2028-01-01", "year"),
        ("后天", "2026-12-02", "2026-12-03", "day"),
    ],
)
def test_dates_as_people_write_them(text, start, end, precision):
    span = resolve(text, now=MONDAY)
    assert (span.start, span.end) == tuple(datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (start, end))
    assert span.precision == precision


def test_what_is_written_out_is_surer_than_what_is_counted_from_now():
    assert resolve("2026-11-30", now=MONDAY).confidence > resolve("tomorrow", now=MONDAY).confidence >= SURE


def test_a_time_is_meant_in_its_zone():
    span = resolve("明天下午三点", now=MONDAY, zone="Asia/Shanghai")
    assert span.start.astimezone(UTC) == datetime(2026, 12, 1, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30", "2026-13", "every Monday", "x" * 200, "九月三十五日", "9999", "25点"]
)
def test_what_nobody_can_tell_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        resolve(text, now=MONDAY)


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_a_value_error(text):
    try:
        span = resolve(text, now=MONDAY)
    except (ValueError, OverflowError):
        return
    assert span.start < span.end
    assert 0 < span.confidence <= 1


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)))
def test_a_day_is_all_of_it(moment):
    span = resolve(moment.date().isoformat(), now=MONDAY)
    assert span.start <= moment.replace(tzinfo=UTC) < span.end
    assert span.end - span.start == timedelta(days=1)


def read(**properties):
    return read_validity(properties, written=MONDAY)


def test_a_note_without_times_holds_always():
    validity, problems = read(summary="x")
    assert problems == ()
    assert judge(validity, 0).recalled


def test_the_end_of_a_month_is_its_last_moment():
    validity, _ = read(valid_until="2026-11")
    assert judge(validity, ms("2026-11-30T23:59:59")).recalled
    assert not judge(validity, ms("2026-12-01T00:00:00")).recalled


@pytest.mark.parametrize(
    ("kind", "at", "recalled", "said"),
    [
        ("state", "2026-01-01", False, None),
        ("state", "2026-06-15", True, None),
        ("state", "2026-12-01", False, None),
        ("event", "2026-12-01", True, "historical event"),
        ("plan", "2026-06-15", True, "plan"),
        ("plan", "2026-12-01", True, "previously planned"),
    ],
)
def test_what_a_time_means(kind, at, recalled, said):
    validity, problems = read(temporal_kind=kind, valid_from="2026-06-01", valid_until="2026-06-30")
    assert problems == ()
    verdict = judge(validity, ms(at))
    assert (verdict.recalled, verdict.qualification) == (recalled, said)


def test_an_uncertain_time_lets_pass_with_less_weight_and_a_word():
    validity, _ = read(valid_until="2026-01-01", temporal_confidence=0.3)
    verdict = judge(validity, ms("2026-06-01"))
    assert verdict.recalled
    assert verdict.weight < 1
    assert verdict.qualification


def test_recurring_windows_come_again():
    validity, _ = read(
        temporal_kind="recurring", valid_from="2026-11-30T09:00", valid_until="2026-11-30T10:00", precision="hour"
    )
    inside, outside = judge(validity, ms("2026-12-05T09:30:00")), judge(validity, ms("2026-12-05T12:00:00"))
    assert (inside.weight, inside.qualification) == (1.0, None)
    assert outside.recalled
    assert outside.weight < 1


@pytest.mark.parametrize(
    "properties",
    [
        {"valid_from": "nonsense"},
        {"valid_until": "2026-02-30"},
        {"valid_from": "2026-06-01", "valid_until": "2026-05-01"},
        {"temporal_kind": "sometimes"},
        {"timezone": "Mars/Olympus"},
        {"temporal_confidence": 2},
        {"precision": "roughly"},
    ],
)
def test_malformed_times_are_problems_and_the_note_is_timeless(properties):
    validity, problems = read(**properties)
    assert validity == Validity()
    assert problems
    assert {problem.kind for problem in problems} == {"bad-property"}
    assert all(problem.field in properties for problem in problems)

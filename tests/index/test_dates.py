"""Dates in any of their usual forms share a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.dates import dates_in, is_day, without_dates
from gateway.index.tokens import fold, query_tokens, search_tokens

WITHOUT_YEAR = ["May 3rd", "may 3", "3 May", "the 3rd of May", "5月3日", "5 月 3 号", "五月三日", "５月３日"]
WITH_YEAR = ["2023-05-03", "2023/5/3", "2023.05.03", "May 3, 2023", "3rd May 2023", "2023年5月3日", "2023年五月三号"]


@pytest.mark.parametrize("asked", [*WITHOUT_YEAR, *WITH_YEAR])
@pytest.mark.parametrize("written", WITH_YEAR)
def test_a_day_is_found_however_it_is_written(asked: str, written: str) -> None:
    """Asked with or without its year."""
    wanted = set(query_tokens(f"was war am {asked}, bitte?").split())
    assert "05-03" in wanted
    assert wanted & set(search_tokens(f"Notiz vom {written}: Tee")) <= set(search_tokens(written).split())
    assert {token for token in wanted if is_day(token)} <= set(search_tokens(f"Notiz vom {written}: Tee").split())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("二十三 and 十月二十三日", ["10-23"]),
        ("12月31日", ["12-31"]),
        ("十二月三十一号", ["12-31"]),
        ("十月十日", ["10-10"]),
        ("Sept. 1, 2021", ["09-01", "2021-09-01", "2021-09"]),
        ("2024-02-30T10:00:00Z", ["02-30", "2024-02-30", "2024-02"]),
        ("Daily/2023-05-03.md", ["05-03", "2023-05-03", "2023-05"]),
        ("04/05/2023", []),
        ("May 32, 13月1日, 2023-13-01", []),
        ("1.2023-05-03, 12023-05-03", []),
        ("maybe 3, mayor 5", []),
        ("五五月三三三日", []),
        ("yesterday", []),
    ],
)
def test_what_is_a_date_and_what_is_not(text: str, tokens: list[str]) -> None:
    """Ambiguous and impossible ones are left alone; whether a month has so many days is no matter."""
    assert [token for date in dates_in(fold(text)) for token in date.tokens] == tokens


def test_a_query_asks_for_a_date_in_one_form_only() -> None:
    """The words it is written in would weigh twice; those of a name stay, or the name would not be found."""
    assert query_tokens("On May 3rd").split() == ["05-03", "on"]
    assert "daily/2023-05-03.md" in query_tokens("open Daily/2023-05-03.md").split()
    assert without_dates("在5月3号我们") == "在 我们"
    assert without_dates("on 2023-05-03.") == "on  ."


@given(st.text("0123456789 -/.年月日号五十thmayjun,", max_size=80))
def test_any_text_has_dates_or_none(text: str) -> None:
    """No error, and only days that a calendar could have."""
    folded = fold(text)
    for date in dates_in(folded):
        assert is_day(date.tokens[0])
        assert folded[date.start : date.end]
    assert len(without_dates(folded)) <= len(folded) + 80

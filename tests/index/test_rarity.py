"""What a token weighs, and what all vectors have in common: both from samples of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.index.direction import PRIOR_PASSAGES, CommonDirection
from gateway.index.rarity import Rarity
from gateway.index.sampled import Sampled
from gateway.index.tokens import search_tokens


class Rows:
    """A table of one column."""

    def __init__(self, column: str, values: list[Any], kind: Any = None) -> None:
        self.column = column
        self.values = values
        self.kind = kind
        self.reads = 0

    def sample(self, columns: list[str], size: int) -> Iterator[Any]:
        """All rows, in two batches, as a scan gives them."""
        assert columns == [self.column]
        assert size > 0
        self.reads += 1
        for part in (self.values[::2], self.values[1::2]):
            yield pa.record_batch([pa.array(part, self.kind)], names=[self.column])


def weights(texts: list[str], tokens: str) -> dict[str, float]:
    """Of some tokens, in a table of these texts."""
    return Rarity(Rows("tokens", [search_tokens(text) for text in texts])).weights(tokens.split())


def test_a_rare_word_weighs_more_than_a_common_one_and_an_unknown_one_most() -> None:
    """All are positive."""
    found = weights([*["the tea is hot"] * 9, "the kettle"], "the tea kettl nowher")
    assert 0 < found["the"] < found["tea"] < found["kettl"] < found["nowher"]


def test_a_pair_across_two_words_weighs_less_than_a_word() -> None:
    """Both are in one text of twenty; 欢哪 only because its characters are everywhere."""
    texts = [*["我喜欢茶，你在哪里？"] * 18, "你喜欢哪个菜？", "咖喱很辣"]
    found = weights(texts, "欢哪 咖喱")
    assert found["咖喱"] > 5 * found["欢哪"] > 0


def test_how_many_texts_are_in_other_scripts_does_not_matter_to_pairs() -> None:
    """In a vault of mostly English notes every Chinese character is rare."""
    texts = ["我喜欢茶，你在哪里？"] * 18 + ["咖喱很辣", "你喜欢哪个菜？"]
    assert weights(texts, "喜欢 咖喱") == weights([*texts, *["only English here"] * 500], "喜欢 咖喱")


def test_a_day_weighs_as_much_as_a_word_that_is_nowhere() -> None:
    """However much was written on it."""
    found = weights(["2023-05-03 tea"] * 50, "05-03 nowher tea")
    assert found["05-03"] == found["nowher"] > found["tea"]


def test_a_sample_is_read_at_first_use_and_after_growth() -> None:
    """Not at every write, and again after a failure."""
    read = iter([("a", 100), ("b", 300)])
    sampled = Sampled(lambda: next(read), "unknown")
    assert [sampled.value(), sampled.value()] == ["a", "a"]
    sampled.grown(50)
    assert sampled.value() == "a"
    sampled.grown(1)
    assert sampled.value() == "b"
    sampled.grown(200)
    for _ in range(2):
        with pytest.raises(StopIteration):
            sampled.value()


def direction(vectors: list[list[float] | None]) -> CommonDirection:
    """Over a table of these vectors."""
    return CommonDirection(Rows("vector", vectors, pa.list_(pa.float32(), 2)), 2)


def test_what_all_passages_share_does_not_count() -> None:
    """A passage in the middle of the cone is no longer the nearest to everything."""
    cone = [[0.96, 0.28], [0.96, -0.28]] * 500
    query = np.array([0.98, 0.199], dtype=np.float32)
    middle, answer = np.array([1.0, 0.0]), np.array([0.9, 0.436])
    assert middle @ query > answer @ query
    rest = direction(cone).taken_out_of(query)
    assert answer @ rest > middle @ rest
    assert np.linalg.norm(rest) == pytest.approx(1.0)


def test_few_passages_change_little_and_none_nothing() -> None:
    """The mean of three notes is their topic; rows that wait for a vector are no passages."""
    query = np.array([0.6, 0.8], dtype=np.float32)
    assert direction([]).taken_out_of(query) == pytest.approx(query)
    assert direction([None, None, None]).taken_out_of(query) == pytest.approx(query)
    rest = direction([[1.0, 0.0], None, [1.0, 0.0]]).taken_out_of(query)
    assert rest @ query > 1 - 2 / PRIOR_PASSAGES
    assert rest[0] < query[0]


def test_a_query_of_which_nothing_is_left_stays_as_it_is() -> None:
    """Rather than a direction made of rounding errors."""
    query = np.array([1.0, 0.0], dtype=np.float32)
    many = direction([[1.0, 0.0]] * 100_000)
    assert many.taken_out_of(query) == pytest.approx(query)

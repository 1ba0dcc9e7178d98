"""Counting and cutting by tokens: exact where the tokenizer has a build, within a few percent where it has none."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.notes.token_count import _encoding, count_tokens, cut_to_tokens, estimate

SAMPLES = Path(__file__).parents[1] / "data/paraphrases"


def texts(name: str) -> list[str]:
    rows = [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [value for row in rows for value in row.values() if isinstance(value, str)]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_counts_agree_with_a_real_tokenizer(language):
    encoding = _encoding()
    if encoding is None:
        pytest.skip("the tokenizer has no build for this platform")
    real = sum(len(encoding.encode_ordinary(text)) for text in texts(language))
    assert sum(map(count_tokens, texts(language))) == real
    assert sum(map(estimate, texts(language))) == pytest.approx(real, rel=0.20), "without a tokenizer, a guess"


@given(st.text(max_size=200), st.integers(0, 60))
def test_a_cut_is_a_beginning_and_never_too_long(text, limit):
    cut = cut_to_tokens(text, limit)
    assert text.startswith(cut)
    assert count_tokens(cut) <= max(limit, 0) + 1, "half a character at the end may be counted anew"
    if count_tokens(text) <= limit:
        assert cut == text


def test_half_characters_do_not_stop_counting():
    assert count_tokens("a\ud800b") > 0
    assert estimate("a\ud800b") > 0

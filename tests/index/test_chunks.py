"""Cutting notes along their Markdown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.chunks import Chunk, chunk_note
from gateway.index.tokens import count_tokens

NOTE = """Intro line.

# Plans

First paragraph.

Second paragraph.

## Travel

Kyoto in April.

```python
# not a heading

print("x")
```

# Empty one

# Money

| item | cost |
|------|------|
| rail | 300  |
"""


def test_headings_separate_and_their_path_is_kept() -> None:
    """One chunk a section, as long as it fits."""
    chunks = chunk_note("Trip", NOTE)
    assert [chunk.heading for chunk in chunks] == [(), ("Plans",), ("Plans", "Travel"), ("Empty one",), ("Money",)]
    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2, 3, 4]
    assert chunks[1].text == "First paragraph.\n\nSecond paragraph."


def test_a_fenced_block_is_kept_whole_and_its_comment_is_no_heading() -> None:
    """Code is not cut at the blank line in it."""
    travel = chunk_note("Trip", NOTE)[2]
    assert '```python\n# not a heading\n\nprint("x")\n```' in travel.text


def test_a_fenced_block_that_fits_is_not_cut_although_its_section_must_be() -> None:
    """The cut falls between blocks."""
    fence = "```\n" + "code line\n\n" * 20 + "```"
    chunks = chunk_note("t", "word " * 80 + "\n\n" + fence + "\n\n" + "word " * 80, max_tokens=100)
    assert any(chunk.text == fence for chunk in chunks)


def test_an_empty_body_gives_a_chunk_of_the_title() -> None:
    """A note that is only a title is findable; nothing at all gives nothing."""
    assert chunk_note("Only a title", " \n\n") == [Chunk(0, (), "Only a title")]
    assert chunk_note("", "") == []


def test_nul_and_lone_surrogates_are_cleaned() -> None:
    """Neither LanceDB nor a model takes them."""
    assert chunk_note("t", "a\x00b\ud800c\r\nd")[0].text == "a b\ufffdc\nd"


@pytest.mark.parametrize(
    "body",
    [
        "x" * 200_000,
        "字" * 200_000,
        "a b " * 50_000,
        "Sentence one. " * 14_000,
        "> " * 20_000 + "x",
        "- " * 20_000 + "x",
        "`" * 200_000,
        "[" * 50_000 + "](" * 50_000,
        "# h\n" * 30_000,
        "[a]: b\n" * 20_000,
        "| a " * 40_000 + "\n" + "|--" * 40_000 + "\n",
        "```\n" + "code line\n" * 20_000,
    ],
)
def test_a_hostile_body_is_cut_within_the_limit_in_linear_time(body: str) -> None:
    """Two hundred kilobytes on one line, deep nesting, endless markup."""
    started = time.perf_counter()
    chunks = chunk_note("t", body)
    assert time.perf_counter() - started < 10
    assert chunks
    assert max(count_tokens(chunk.text) for chunk in chunks) <= 512


def test_sentences_are_kept_whole_where_a_paragraph_must_be_cut() -> None:
    """Chinese ones too."""
    chunks = chunk_note("t", "今天天气很好。我们去公园散步。" * 20, max_tokens=50)
    assert all(chunk.text.endswith("。") for chunk in chunks)


@given(st.text(alphabet=st.sampled_from("ab 字。.\n#`|-")), st.integers(5, 40))
def test_no_visible_character_is_lost_within_sections(body: str, limit: int) -> None:
    """Text outside headings survives the cutting, in order."""
    plain = body.replace("#", "").replace("-", "").replace("`", "")
    joined = "".join(chunk.text for chunk in chunk_note("", plain, max_tokens=limit))
    assert "".join(joined.split()) == "".join(plain.split())

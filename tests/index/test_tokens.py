"""What is findable by keyword, in a dozen languages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.tokens import MAX_QUERY_TOKENS, MAX_TOKEN_CHARACTERS, count_tokens, query_tokens, search_tokens


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我把备份脚本放在 GitHub 上，但是GitHub备份脚本上传失败了", "GitHub备份脚本上传失败"),
        ("系統設定完成", "系統"),
        ("程序没有输出。", "输出"),
        ("我养了一只猫", "猫"),
        ("データベースの接続に失敗しました", "データベース"),
        ("데이터베이스 연결 실패", "연결"),
        ("ВЫХОДНЫЕ проводим у ёлки", "выходные елки"),
        ("Der Café-Besuch in München", "cafe munchen"),
        ("La réunion s'est déroulée à l'hôtel", "reunion hotel"),
        ("कल हिन्दी भाषा की परीक्षा है", "हिन्दी"),
        ("ฉันชอบภาษาไทย", "ภาษา"),
        ("قرأتُ مُحَمَّداً", "محمدا"),
        ("שָׁלוֹם עולם", "שלום"),
        ("Η Αθήνα είναι όμορφη", "αθηνα"),
        ("Cuộc họp ở Hà Nội", "ha noi"),
        ("İstanbul'da toplantı", "toplantı"),
        ("The meetings were running late", "meeting run"),
        ("see zq00017x for the answer", "zq00017x"),
        ("call foo_bar in src/app/main.py of v1.2.3", "foo_bar"),
        ("call foo_bar in src/app/main.py of v1.2.3", "bar"),
        ("call foo_bar in src/app/main.py of v1.2.3", "main.py"),
        ("call foo_bar in src/app/main.py of v1.2.3", "v1.2.3"),
        ("write to tom.smith@example.org", "tom.smith@example.org"),
        ("write to tom.smith@example.org", "example.org"),
        ("Emily's piano", "emily"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
    ],
)
def test_every_token_of_the_query_is_a_token_of_the_text_that_holds_it(text: str, query: str) -> None:
    """The index compares tokens, so this is what being findable means."""
    wanted = query_tokens(query).split()
    assert wanted
    assert set(wanted) <= set(search_tokens(text).split())


def test_traditional_and_simplified_characters_stay_apart() -> None:
    """系統 is not 系统: what was written is what is searched."""
    assert not set(query_tokens("系統").split()) & set(search_tokens("系统").split())


@pytest.mark.parametrize("query", ["", "   ", "😀😀🎉", '"""', '"" && || !(){}[]^~*?:\\/', "\x00", "———"])
def test_a_query_without_words_has_no_tokens(query: str) -> None:
    """It finds nothing, and it is no error."""
    assert query_tokens(query) == ""


@pytest.mark.parametrize("query", ["word " * 2_000, "字" * 10_000, "a" * 10_000, "a.b" * 3_000])
def test_a_long_query_is_cut_to_the_cap(query: str) -> None:
    """Ten kilobytes cost no more than a page."""
    tokens = query_tokens(query).split()
    assert 0 < len(tokens) <= MAX_QUERY_TOKENS
    assert max(map(len, tokens)) <= MAX_TOKEN_CHARACTERS


@given(st.text())
def test_any_text_gives_tokens_that_hold_no_blank_and_find_themselves(text: str) -> None:
    """Nothing that can be typed breaks it."""
    indexed = search_tokens(text).split()
    assert all(len(token) <= 2 * MAX_TOKEN_CHARACTERS for token in indexed)
    assert set(query_tokens(text).split()) <= set(indexed)


@given(st.text(), st.text())
def test_the_estimate_of_joined_texts_is_at_most_the_sum(first: str, second: str) -> None:
    """Packing chunks by the sum of estimates relies on it."""
    assert count_tokens(first + second) <= count_tokens(first) + count_tokens(second)


def test_the_estimate_counts_a_chinese_character_as_one_and_four_letters_as_one() -> None:
    """Rough, but right for both scripts."""
    assert count_tokens("系统设置") == 4
    assert count_tokens("a b c") == 3
    assert 4 <= count_tokens("internationalization") <= 6
    assert count_tokens("😀😀😀") == 3
    assert count_tokens("") == 0


def test_two_hundred_kilobytes_are_tokenised_in_linear_time() -> None:
    """A hostile note must not stop the importer."""
    started = time.perf_counter()
    search_tokens("x-" * 100_000)
    search_tokens("字" * 200_000)
    assert time.perf_counter() - started < 5

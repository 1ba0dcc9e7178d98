"""Turns text into the whitespace-joined tokens that the full-text index stores and searches, in any language.

LanceDB only splits at blanks here: everything that decides what is findable by keyword is in this module.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from gateway.index.dates import dates_in, without_dates

MAX_QUERY_TOKENS = 64
MAX_QUERY_CHARACTERS = 2_000
MAX_TOKEN_CHARACTERS = 64

# Scripts written without blanks between words: Han, Kana, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u109f\u1780-\u17d3"
)
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
# What a model spells with at least one token a character: the above, emoji, arrows and other symbols.
_DENSE_CHARACTER = re.compile(f"[{_UNSPACED}\u2190-\u2bff\U00010000-\U0010ffff]")
# Accents, Arabic vowel signs and tatweel, Hebrew points: people leave them out when they type.
_OPTIONAL_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_WORD_PART = re.compile(r"[._@/\\:+#\-]+")
_PATH_PART = re.compile(r"[/\\:@]+")

_stemmers: Any = snowballstemmer
_stem_english: Callable[[str], str] = _stemmers.stemmer("english").stemWord
# The stemmer keeps the word it works on in itself.
_stemmer_lock = threading.Lock()


def search_tokens(text: str) -> str:
    """The tokens of a text, in reading order and with repeats, for a full-text index that splits at blanks.

    The dates of the text follow in their one form (`05-03`), besides the words they are written in.
    """
    folded = fold(text)
    dates = (token for date in dates_in(folded) for token in date.tokens)
    return " ".join([*_tokens(folded, _unspaced_tokens), *dates])


def query_tokens(text: str) -> str:
    """The distinct tokens of a query, at most `MAX_QUERY_TOKENS`; empty where nothing can be looked up.

    Only the first `MAX_QUERY_CHARACTERS` are read. Unspaced scripts are asked for by pairs: with single characters
    recall@10 on Chinese questions was 0.909 instead of 0.921. A character that stands alone is asked for as such.
    A date is asked for in its one form only: the words it is written in would ask for the same twice.
    """
    folded = fold(text[:MAX_QUERY_CHARACTERS])
    distinct = dict.fromkeys(token for date in dates_in(folded) for token in date.tokens)
    distinct |= dict.fromkeys(_tokens(without_dates(folded), _unspaced_query_tokens))
    return " ".join(list(distinct)[:MAX_QUERY_TOKENS])


def is_unspaced(token: str) -> bool:
    """Whether a token is of a script that is written without blanks, and so a character or a pair of them."""
    return _UNSPACED_RUN.fullmatch(token) is not None


def count_tokens(text: str) -> int:
    """Estimate how many tokens a language model sees: one a CJK character or emoji, one for four ASCII characters.

    Subadditive: the estimate of joined texts is at most the sum of theirs.
    """
    words = text.split()
    visible = sum(map(len, words))
    dense = len(_DENSE_CHARACTER.findall(text))
    ascii_visible = len("".join(words).encode("ascii", "ignore"))
    other = visible - dense - ascii_visible
    spelled = -(-ascii_visible // 4) + -(-other // 2)
    spaced_words = len(words) if not dense else 0
    return dense + max(spelled, spaced_words)


def fold(text: str) -> str:
    """The form in which texts are compared: NFKC, case folded, without accents and other optional marks.

    Simplified and traditional characters stay apart, as they are written.
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _OPTIONAL_MARKS.sub("", decomposed))


def _tokens(folded: str, unspaced: Callable[[str], Iterator[str]]) -> Iterator[str]:
    for position, run in enumerate(_UNSPACED_RUN.split(_POSSESSIVE.sub("", folded))):
        if position % 2:
            yield from unspaced(run)
        elif run:
            for word in _word_pattern().findall(run):
                yield from _word_tokens(word)


def _unspaced_tokens(run: str) -> Iterator[str]:
    previous = ""
    for character in run:
        yield character
        if previous:
            yield previous + character
        previous = character


def _unspaced_query_tokens(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second


@lru_cache(maxsize=50_000)
def _word_tokens(word: str) -> tuple[str, ...]:
    """A plain word gives its stem; a compound (`v1.2.3`, `a/b.md`, `x@y.org`) itself, its path parts and its words."""
    parts = [part for part in _WORD_PART.split(word) if part]
    if len(parts) == 1:
        return (_stem(parts[0]),)
    names = [name for name in _PATH_PART.split(word) if name]
    tokens = [word, *(name for name in names if name != word), *(_stem(part) for part in parts)]
    return tuple(dict.fromkeys(token[:MAX_TOKEN_CHARACTERS] for token in tokens))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if len(word) > 3 and word.isascii() and word.isalpha() and len(word) <= MAX_TOKEN_CHARACTERS:
        with _stemmer_lock:
            return _stem_english(word)
    return word[:MAX_TOKEN_CHARACTERS]


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    """Letters and digits with their combining marks, which `\\w` leaves out (Devanagari vowels, for one)."""
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
    letter = f"[\\w{re.escape(marks)}]"
    return re.compile(f"{letter}+(?:[._@/\\\\:+#\\-]+{letter}+)*")

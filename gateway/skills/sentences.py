"""Cuts text into sentences, in English and Chinese, in one pass over it. It knows no grammar, only marks and blanks.

A dot inside a number, a name or an address (`1.5`, `Node.js`, `tom@example.org`) ends nothing, nor does that of a usual
abbreviation. In doubt two sentences stay one: a sentence too long is still true, half of one often is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Possessive, and judged in Python: a condition behind a run would be tried from each of its characters anew.
_STOP = re.compile(
    r"[。！？｡][。！？｡!?.]*+[”’」』）】》]*+"
    r"|(?P<mark>[.!?]++)[\"'”’»)\]}」』）】》*_`]*+"
    r"|[\n\r\x0b\x0c\x85\u2028\u2029]"
)
_LIST_MARK = re.compile(r"\d{1,3}\.")
_LONGEST = 12
_WORD_BEFORE = re.compile(r"[A-Za-z.]*\Z")
_BLANKS_BEFORE_WORD = re.compile(r"[^\S\n]*+(?P<word>[^\W_]{0,12}+)")
_LETTERS = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")

# A closed list: what a dot belongs to always (small letters: in any case), before a number, before a small letter.
_ALWAYS = frozenset({"dr", "mr", "mrs", "prof", "Ms", "St", "e.g", "i.e", "vs", "cf", "approx"})
_BEFORE_NUMBER = frozenset({"no", "nr", "fig", "vol", "pp"})
_BEFORE_SMALL = frozenset({"etc", "inc", "ltd", "corp", "jr", "sr"})
# What begins a sentence and is no surname: "plan B. We agreed" are two sentences, "J. Smith" is one name.
_OPENERS = re.compile(
    r"an?|and|at|but|for|he|his|i|if|in|it|its|my|no|our|please|she|so|that|the|their|then|there|these|they|this|those"
    r"|to|today|we|what|when|yes|you|your",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in order, each with its mark and without blanks around it; numbers of lists left out."""
    start = 0
    for end in sentence_ends(text):
        sentence = text[start:end].strip()
        start = end
        if sentence and not _LIST_MARK.fullmatch(sentence):
            yield sentence


def pieces(text: str, limit: int) -> Iterator[str]:
    """A text in pieces of at most so many characters: cut where a sentence ends, else at a blank, else anywhere."""
    start = kept = 0
    for end in sentence_ends(text):
        while end - start > limit:
            if kept == start:
                blank = text.rfind(" ", start + 1, start + limit)
                kept = blank if blank > 0 else start + limit
            yield text[start:kept]
            start = kept
        kept = end
    if start < len(text):
        yield text[start:]


def sentence_ends(text: str) -> Iterator[int]:
    """Where the sentences of a text end; the last end is that of the text."""
    for match in _STOP.finditer(text):
        if match["mark"] is None or _is_end(text, match):
            yield match.end()
    yield len(text)


def _is_end(text: str, match: re.Match[str]) -> bool:
    """Whether an ASCII mark ends a sentence: a blank follows, or it stands between Chinese characters."""
    after = text[match.end() : match.end() + 1]
    if after and not after.isspace():
        before = text[max(0, match.start() - 1) : match.start()]
        return _is_chinese(after) and ("." not in match["mark"] or _is_chinese(before))
    return match["mark"] != "." or not _is_abbreviation(text, match.start(), match.end())


def _is_abbreviation(text: str, dot: int, end: int) -> bool:
    # Of a longer word only the end is seen, which is no abbreviation then.
    before = text[max(0, dot - _LONGEST) : dot]
    found = _WORD_BEFORE.search(before)
    word = found.group() if found else ""
    following = _BLANKS_BEFORE_WORD.match(text, end)
    after = following["word"] if following else ""
    if not word or not after or before[: -len(word)][-1:].isalnum():
        return False
    small = word.lower()
    if word in _ALWAYS or small in _ALWAYS:
        return True
    if small in _BEFORE_NUMBER:
        return after[0].isdigit()
    if small in _BEFORE_SMALL:
        return after[0].islower()
    return _is_initial(word, after)


def _is_initial(word: str, after: str) -> bool:
    """Whether letters with dots go on: `J. Smith`, `U.S. Army`, `9 a.m. on Mondays`; the pronoun I is none."""
    if after[0].islower():
        return _LETTERS.fullmatch(word) is not None
    initial = word != "I" and (len(word) == 1 or _LETTERS.fullmatch(word) is not None)
    return initial and word.isupper() and after[0].isupper() and _OPENERS.fullmatch(after) is None


def _is_chinese(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or "\u3040" <= character <= "\u30ff"

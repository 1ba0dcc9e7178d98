"""Which words of a statement may be names, and the words that are none though they may be written large. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from gateway.index.tokens import fold
from gateway.skills.lexicon import EAST, lexicon, stem

WITHOUT, LESS = "no ", "less "
NEGATIONS = frozenset({"not", "never", "cannot", "neither", "nor", "nothing", "nobody", "none"})
MARKS = {"without": WITHOUT, "no": WITHOUT, "over": LESS, "than": LESS}
_NUMBER_WORDS = (
    "two second/three third/four fourth/five fifth/six sixth/seven seventh/eight eighth/nine ninth/ten tenth/"
    "eleven eleventh/twelve twelfth"
)
_TENS = {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "half": "0.5"}
ENGLISH_NUMBERS = _TENS | {
    word: str(number) for number, words in enumerate(_NUMBER_WORDS.split("/"), 2) for word in words.split()
}
_CLITIC = re.compile(r"['’](?:s|m|ve|re|ll|d)\b")
_CAPITAL = re.compile(r"(?P<before>^|[.!?:;\n]\s*|[\"“(]|\s|[^\w\s])(?P<word>[A-Z][\w'’-]*)")
_MAY_OF_A_DATE = re.compile(r"\bMay(?= \d)|(?<=\d )May\b")
# "Will leads", "May is": no auxiliary stands before such a form.
_NAMED_LIKE_AUXILIARY = re.compile(r"\s*(Will|May)\s+(?:is|was|has|[a-z]+[^s\W]s)\b")
_SURNAMES = "王李张刘陈杨赵周吴徐孙胡朱郭何罗郑谢宋唐许韩冯邓曹彭"
_EASTERN_NAME = re.compile(
    rf"[小老阿][{_SURNAMES}]|(?<![{EAST}])[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?(?=[是在负喜住说的爱和])"
)


def names_in(text: str, own_name: str) -> tuple[set[str], str | None]:
    """Capitalised words that the lexicon does not know, folded; the one at the beginning apart from the others."""
    names: set[str] = set()
    auxiliary = _NAMED_LIKE_AUXILIARY.match(text)
    opening: str | None = fold(auxiliary[1]) if auxiliary else None
    for first, word in _capitals(_MAY_OF_A_DATE.sub("", unicodedata.normalize("NFKC", text))):
        folded = fold(_CLITIC.sub("", word))
        month = word == "May" and not first  # small, it is an everyday word
        if folded in ("i", own_name.casefold()) or (_known(folded) and not month) or is_identifier(folded):
            continue
        if first and not (len(word) > 1 and word.isupper()):
            opening = opening or folded
        else:
            names.add(stem(folded))
    return names, opening


def _capitals(text: str) -> Iterator[tuple[bool, str]]:
    for match in _CAPITAL.finditer(text):
        yield match["before"] == "" or match["before"].strip() != "" or "\n" in match["before"], match["word"]


def _known(folded: str) -> bool:
    words = lexicon().english
    return (
        folded in words
        or stem(folded) in words
        or folded in NEGATIONS
        or folded in MARKS
        or folded in ENGLISH_NUMBERS
        or folded.partition("'")[0] in ("don", "doesn", "didn", "can", "won", "isn")
    )


def eastern_names_in(folded: str) -> set[str]:
    """Chinese names as far as they can be told: a familiar form, or a surname before what people do."""
    return set(_EASTERN_NAME.findall(folded))


def unclitic(text: str) -> str:
    """A text without what English hangs on its words: "Ann's", "I'm"."""
    return _CLITIC.sub("", text)


def is_identifier(word: str) -> bool:
    """Whether a folded word is an identifier: letters with digits, underscores, paths, or a prefix of a ticket."""
    return bool(re.search(r"[a-z]", word)) and bool(re.search(r"[\d_.@/]|[a-z0-9]-$", word))

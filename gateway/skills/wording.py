"""What a statement says, without how it says it: words of one meaning are one, in English and Chinese. Pure.

Two statements are compared by these parts (`likeness`, `contradiction`). The words stand in `likeness_words.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from gateway.index.dates import dates_in, is_day, without_dates
from gateway.index.tokens import fold, search_tokens
from gateway.notes.text import content_hash

MAX_CHARACTERS = 2_000
WITHOUT, LESS = "no ", "less "
_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_EAST_RUN = re.compile(f"[{_EAST}]+")
_PIECE = re.compile(f"[{_EAST}]+|[^\\W{_EAST}]+(?:[._/@:+#-][^\\W{_EAST}]+)*[-_]?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_HATES = re.compile(r"\b(?:can't|cannot|can not|couldn't) (?:stand|bear)\b")
_NOT = re.compile(
    r"\b(?:do|does|did|is|are|was|were|will|would|should|can|could|has|have|had|must|need)(?:n't|nt\b| not\b)"
)
_CLITIC = re.compile(r"['’](?:s|m|ve|re|ll|d)\b")
_PERSONAL = re.compile(r"\b(?:i|me|my|mine|we|us|our|user|users)\b|我|用户|咱")
_CAPITAL = re.compile(r"(?P<before>^|[.!?:;\n]\s*|[\"“(]|\s|[^\w\s])(?P<word>[A-Z][\w'’-]*)")
_NEGATIONS = frozenset({"not", "never", "cannot", "neither", "nor", "nothing", "nobody", "none", "don't", "won't"})
_MARKS = {"without": WITHOUT, "no": WITHOUT, "over": LESS, "than": LESS}
_MARKS_EAST = {
    "不加": WITHOUT,
    "不放": WITHOUT,
    "不带": WITHOUT,
    "不含": WITHOUT,
    "无": WITHOUT,
    "比起": LESS,
    "相比": LESS,
}
_NEGATIONS_EAST = ("从来不", "从不", "不再", "没有", "不", "没", "别", "莫", "勿", "未", "非")
_NUMBER_WORDS = (
    "two second/three third/four fourth/five fifth/six sixth/seven seventh/eight eighth/nine ninth/ten tenth/"
    "eleven eleventh/twelve twelfth"
)
_TENS = {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000"}
_ENGLISH_NUMBERS = _TENS | {
    word: str(number) for number, words in enumerate(_NUMBER_WORDS.split("/"), 2) for word in words.split()
}
_EASTERN_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {"两": 2}
_EASTERN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_SURNAMES = "王李张刘陈杨赵周吴徐孙胡朱郭何罗郑谢宋唐许韩冯邓曹彭"
_EASTERN_NAME = re.compile(
    rf"[小老阿][{_SURNAMES}]|(?<![{_EAST}])[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?(?=[是在负喜住说的爱和])"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, taken apart.

    Attributes:
        key: hash of the normalised text.
        tokens: what it speaks of: `=coffee` for a known meaning, `coffe` for the stem of any other word, one character
            of an eastern word that is not known; `no sugar` for what it does without,
            `less coffee` for what something else is preferred to.
        numbers, dates, identifiers: sorted, as they must agree.
        names: capitalised words, Latin words in an eastern text, eastern names as far as they can be told.
        opening: an unknown capitalised word at the beginning, which may be a name.
        words: all words, for looking names up.
        liking: 1 for what is liked, -1 for what is disliked, 0 where it speaks of neither.
        negated: it is denied. A denied liking is a dislike and not negated.
        personal: it speaks of the user: I, my, we, the user.
        eastern: it is written in Chinese, Japanese or Korean.
    """

    text: str
    key: str
    tokens: frozenset[str]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    identifiers: frozenset[str]
    names: frozenset[str]
    opening: str | None
    words: frozenset[str]
    liking: int
    negated: bool
    personal: bool
    eastern: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words by stem or eastern phrase; `group_of` names the group in which a meaning excludes others,
    `words_of` all stems and phrases of a meaning."""

    english: Mapping[str, str]
    eastern: Mapping[str, str]
    group_of: Mapping[str, str]
    opposites: frozenset[str]
    longest: int
    words_of: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _Found:
    tokens: set[str] = field(default_factory=set[str])
    numbers: list[str] = field(default_factory=list[str])
    identifiers: set[str] = field(default_factory=set[str])
    latin: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    liking: int = 0
    negations: int = 0
    mark: str = ""

    def add(self, meaning: str) -> None:
        """Take a meaning or an unknown word in."""
        match meaning:
            case "weak":
                return
            case "likes":
                self.liking = self.liking or 1
            case "dislikes":
                self.liking = self.liking or -1
            case _:
                self.tokens.add(self.mark + meaning)
        self.mark = ""


@lru_cache(maxsize=8_192)
def statement(text: str, own_name: str = "") -> Statement:
    """Take a statement apart; of a long text its first 2,000 characters.

    Args:
        own_name: the user's id: who says "I" and who is called by that name are the same.
    """
    text = text[:MAX_CHARACTERS]
    folded = fold(text)
    dates = sorted({token for date in dates_in(folded) for token in date.tokens})
    rest = _CLITIC.sub("", _NOT.sub(" not ", _HATES.sub(" hate ", without_dates(folded).replace("’", "'"))))
    found = _Found()
    for piece in _PIECE.findall(rest):
        if _EAST_RUN.fullmatch(piece):
            _eastern(found, piece)
        elif piece.casefold() != own_name.casefold():
            _western(found, piece)
    eastern = len("".join(_EAST_RUN.findall(folded))) * 2 > sum(map(str.isalpha, folded))
    names, opening = _names(text, own_name)
    if eastern:
        names |= found.latin
    names |= set(_EASTERN_NAME.findall(folded))
    negated = found.negations % 2 == 1
    return Statement(
        text=text,
        key=content_hash(text),
        tokens=frozenset(found.tokens),
        numbers=tuple(sorted(found.numbers)),
        dates=tuple(date for date in dates if is_day(date) or len(date) > 7),
        identifiers=frozenset(found.identifiers),
        names=frozenset(names),
        opening=opening,
        words=frozenset(found.words),
        liking=-found.liking if negated else found.liking,
        negated=negated and not found.liking,
        personal=bool(_PERSONAL.search(folded)) or bool(own_name and own_name.casefold() in folded),
        eastern=eastern,
    )


def in_all_words(one: Statement) -> str:
    """A statement's meanings in every word that is known for them: what finds it in another language."""
    words = lexicon().words_of
    meanings = [token.removeprefix(WITHOUT).removeprefix(LESS) for token in sorted(one.tokens)]
    return " ".join(word for meaning in meanings for word in words.get(meaning, (meaning,)))


@cache
def lexicon() -> Lexicon:
    """The words of the file."""
    data = tomllib.loads(files(__package__ or "gateway.skills").joinpath("likeness_words.toml").read_text("utf-8"))
    english: dict[str, str] = {}
    eastern: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for kind in ("weak", "weak_zh", "likes", "dislikes"):
        _learn(english, eastern, str(data[kind]), "weak" if kind == "weak_zh" else kind)
    tables: dict[str, Any] = data["groups"] | data["opposites"]
    for group, meanings in tables.items():
        for meaning, words in meanings.items():
            group_of[f"={meaning}"] = group
            _learn(english, eastern, words, f"={meaning}")
    for meaning, words in data["words"].items():
        _learn(english, eastern, words, f"={meaning}")
    words_of: dict[str, list[str]] = {}
    for word, meaning in (*english.items(), *eastern.items()):
        words_of.setdefault(meaning, []).append(word)
    every = {meaning: tuple(words) for meaning, words in words_of.items()}
    return Lexicon(english, eastern, group_of, frozenset(data["opposites"]), max(map(len, eastern)), every)


def _learn(english: dict[str, str], eastern: dict[str, str], words: str, meaning: str) -> None:
    for word in words.split():
        if _EAST_RUN.search(word):
            eastern.setdefault(word, meaning)
        else:
            english.setdefault(_stem(word), meaning)
            if meaning in ("weak", "likes", "dislikes"):
                english.setdefault(word, meaning)


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    return (search_tokens(word).split() or [word])[0]


def _western(found: _Found, piece: str) -> None:
    parts = [piece] if _is_identifier(piece) else re.split(r"[._/@:+#-]+", piece)
    for part in filter(None, parts):
        _word(found, part)


def _word(found: _Found, word: str) -> None:
    stem = _stem(word)
    found.words |= {word, stem}
    if _NUMBER.fullmatch(word):
        found.numbers.append(word)
    elif word in _ENGLISH_NUMBERS:
        found.numbers.append(_ENGLISH_NUMBERS[word])
    elif word in _MARKS:
        found.mark = _MARKS[word]
    elif word in _NEGATIONS:
        found.negations += 1
    elif _is_identifier(word):
        found.identifiers.add(word)
        found.tokens.add(word)
    else:
        meaning = lexicon().english.get(word) or lexicon().english.get(stem)
        if meaning is None:
            found.latin.add(stem)
        found.add(meaning or stem)


def _is_identifier(word: str) -> bool:
    return bool(re.search(r"[a-z]", word)) and bool(re.search(r"[\d_.@/]|[a-z0-9]-$", word))


def _eastern(found: _Found, run: str) -> None:
    at = 0
    while at < len(run):
        phrase, meaning = _longest(run, at)
        if meaning is not None:
            found.words.add(phrase)
            found.add(meaning)
        elif mark := next((one for one in _MARKS_EAST if run.startswith(one, at)), None):
            phrase, found.mark = mark, _MARKS_EAST[mark]
        elif denied := next((one for one in _NEGATIONS_EAST if run.startswith(one, at)), None):
            phrase = denied
            found.negations += 1
        elif numeral := _numeral(run, at):
            phrase = numeral
            found.numbers.append(str(_value(numeral)))
        else:
            found.words.add(run[at])
            found.add(run[at])
        at += len(phrase)


def _longest(run: str, at: int) -> tuple[str, str | None]:
    words = lexicon()
    for length in range(min(words.longest, len(run) - at), 0, -1):
        meaning = words.eastern.get(run[at : at + length])
        if meaning is not None:
            return run[at : at + length], meaning
    return run[at], None


def _numeral(run: str, at: int) -> str:
    end = at
    while end < len(run) and (run[end] in _EASTERN_DIGITS or run[end] in _EASTERN_UNITS):
        end += 1
    return run[at:end]


def _value(numeral: str) -> int:
    """十二 is 12, 二十 is 20, 三百 is 300; digits one after the other (一二三四) are read as such."""
    if not any(sign in _EASTERN_UNITS for sign in numeral):
        return int("".join(str(_EASTERN_DIGITS[sign]) for sign in numeral))
    total, digit = 0, 0
    for sign in numeral:
        if sign in _EASTERN_UNITS:
            total += (digit or 1) * _EASTERN_UNITS[sign]
            digit = 0
        else:
            digit = _EASTERN_DIGITS[sign]
    return total + digit


def _names(text: str, own_name: str) -> tuple[set[str], str | None]:
    """Capitalised words that the lexicon does not know, folded; the one at the beginning apart from the others."""
    names: set[str] = set()
    opening: str | None = None
    for first, word in _capitals(unicodedata.normalize("NFKC", text)):
        folded = fold(_CLITIC.sub("", word))
        month = word == "May" and not first  # small, it is an everyday word
        if folded in ("i", own_name.casefold()) or (_known(folded) and not month) or _is_identifier(folded):
            continue
        if first and not (len(word) > 1 and word.isupper()):
            opening = opening or folded
        else:
            names.add(_stem(folded))
    return names, opening


def _capitals(text: str) -> Iterator[tuple[bool, str]]:
    for match in _CAPITAL.finditer(text):
        yield match["before"] == "" or match["before"].strip() != "" or "\n" in match["before"], match["word"]


def _known(folded: str) -> bool:
    words = lexicon().english
    return (
        folded in words
        or _stem(folded) in words
        or folded in _NEGATIONS
        or folded in _MARKS
        or folded in _ENGLISH_NUMBERS
    )

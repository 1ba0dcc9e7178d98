"""What a statement says, without how it says it: words of one meaning are one, in English and Chinese. Pure.

Two statements are compared by these parts (`likeness`, `arrangement`, `contradiction`). The words stand in
`likeness_words.toml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gateway.index.dates import dates_in, is_day, without_dates
from gateway.index.tokens import fold
from gateway.notes.text import content_hash
from gateway.skills.arrangement import Placed
from gateway.skills.lexicon import EAST, EAST_RUN, GOVERN, SHADE, lexicon, stem
from gateway.skills.naming import (
    ENGLISH_NUMBERS,
    LESS,
    MARKS,
    NEGATIONS,
    WITHOUT,
    eastern_names_in,
    is_identifier,
    names_in,
    unclitic,
)
from gateway.skills.spelling import one_spelling

MAX_CHARACTERS = 2_000
SELF = "=self"
LIKED, DISLIKED = "=liked", "=disliked"
_PIECE = re.compile(f"[{EAST}]+|[^\\W{EAST}]+(?:[._/@:+#-][^\\W{EAST}]+)*[-_]?|[,;:.!?，。；：！？、\\n]+")
_BREAK = re.compile(r"[,;:.!?，。；：！？、\n]+")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
# Which of the two is the month is anybody's guess.
_AMBIGUOUS_DATE = re.compile(r"(?<![\d/])\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})(?![\d/])")
_DONE = re.compile(r"[a-z]{2,}[^e]ed")
# Behind these a form in -ed is a passive or a quality.
_QUALIFIED = frozenset(
    ("is", "are", "am", "be", "been", "being", "get", "gets", "a", "an", "the", "my", "your", "our", "their", "his")
)
_PERSONAL = re.compile(r"\b(?:i|me|my|mine|we|us|our|user|users)\b|我|用户|咱")
_SELVES = frozenset({"i", "me", "we", "us", "user"})
_SELVES_EAST = ("我们", "我", "用户", "咱们")
_OF_SELF_EAST = ("我们的", "我的", "用户的")
_MARKS_EAST = {
    "不加": WITHOUT,
    "不放": WITHOUT,
    "不带": WITHOUT,
    "不含": WITHOUT,
    "无": WITHOUT,
    "比起": LESS,
    "相比": LESS,
}
_NEGATIONS_EAST = ("从来不", "从不", "不再", "没有", "无法", "不得", "不", "没", "别", "莫", "勿", "未", "非")
_ONLY = "^only"
_ORDERS = ("=before", "=after")
# With nothing before them they speak of the past; behind something they are "before".
_FORMERLY_EAST = ("以前", "之前")
_KIN_EAST = {"哥哥": "kin=elder", "姐姐": "kin=elder", "弟弟": "kin=younger", "妹妹": "kin=younger"}
_EASTERN_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {"两": 2}
_EASTERN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, taken apart.

    Attributes:
        key: hash of the normalised text, the whole of it.
        cut: it is longer than what is taken apart.
        tokens: what it speaks of: `=coffee` for a known meaning, `coffe` for the stem of any other word, one character
            of an eastern word that is not known; `no sugar` for what it does without,
            `less coffee` for what something else is preferred to.
        placed: the tokens and numbers (`#5`) in their order, with what governs each.
        shades: how often, how much, whether it must, when: `often=always`, one each.
        marks: negations and what they may deny a part of, in their order.
        numbers, dates, identifiers: sorted, as they must agree.
        names: capitalised words, Latin words in an eastern text, eastern names as far as they can be told.
        opening: an unknown capitalised word at the beginning, which may be a name.
        words: all words, for looking names up.
        liking: 1 for what is liked, -1 for what is disliked, 0 where it speaks of neither.
        negated: it is denied. A denied liking is a dislike and not negated.
        personal: it speaks of the user: I, my, we, the user.
        eastern: it is written in Chinese, Japanese or Korean, at least for the most part.
        mixed: only for a lesser part.
    """

    text: str
    key: str
    cut: bool
    tokens: frozenset[str]
    placed: tuple[Placed, ...]
    shades: frozenset[str]
    marks: tuple[str, ...]
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
    mixed: bool


@dataclass(slots=True)
class _Found:
    tokens: set[str] = field(default_factory=set[str])
    placed: list[Placed] = field(default_factory=list[Placed])
    shades: set[str] = field(default_factory=set[str])
    marks: list[str] = field(default_factory=list[str])
    numbers: list[str] = field(default_factory=list[str])
    identifiers: set[str] = field(default_factory=set[str])
    latin: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    likings: set[int] = field(default_factory=set[int])
    liking: int = 0
    negations: int = 0
    mark: str = ""
    labels: list[str] = field(default_factory=list[str])
    broken: bool = False
    before: str = ""

    def add(self, meaning: str) -> None:
        """Take a meaning or an unknown word in."""
        match meaning[0]:
            case _ if meaning == "weak":
                return
            case _ if meaning == "breaks":
                self.broken = True
            case _ if meaning in ("likes", "dislikes"):
                self._like(1 if meaning == "likes" else -1)
            case "~":
                self.shade(meaning.removeprefix(SHADE))
            case "^":
                self.labels.append(meaning.removeprefix(GOVERN))
                if meaning == _ONLY:
                    self.shade("much=only")
            case _ if meaning in _ORDERS:
                self.tokens.add(meaning)
                self.labels.append(meaning.removeprefix("="))
            case _:
                self.tokens.add(self.mark + meaning)
                self.place(self.mark + meaning)
                self.mark = ""

    def place(self, token: str) -> None:
        """Put a token or number into its place."""
        labels = () if self.mark else tuple(dict.fromkeys(self.labels))
        adverbial = lexicon().group_of.get(token) in lexicon().adverbial
        self.placed.append(Placed(token, labels, self.broken, adverbial))
        self.labels, self.broken = [], False

    def postposed(self, meaning: str) -> bool:
        """Take in a "before" or "after" that stands behind what it governs. False where nothing stands there."""
        if not self.placed or self.placed[-1].token == SELF or self.broken:
            return False
        last = self.placed[-1]
        self.placed[-1] = replace(last, labels=(*last.labels, meaning.removeprefix("=")))
        self.tokens.add(meaning)
        return True

    def shade(self, shade: str) -> None:
        """Take in how often, how much, whether it must, when."""
        self.shades.add(shade)
        if shade.partition("=")[0] in ("often", "much"):
            self.marks.append(shade)

    def number(self, number: str) -> None:
        """Take a number in."""
        self.numbers.append(number)
        self.place(f"#{number}")

    def deny(self) -> None:
        """Take a negation in."""
        self.negations += 1
        self.marks.append("not")
        self.labels.append("not")

    def _like(self, liking: int) -> None:
        self.liking = self.liking or liking
        self.likings.add(liking)
        self.place(LIKED if liking > 0 else DISLIKED)
        self.mark = ""


@lru_cache(maxsize=8_192)
def statement(text: str, own_name: str = "") -> Statement:
    """Take a statement apart; of a long text its first 2,000 characters.

    Args:
        own_name: the user's id: who says "I" and who is called by that name are the same.
    """
    whole, text = text, text[:MAX_CHARACTERS]
    folded = fold(text)
    dates = sorted({token for date in dates_in(folded) for token in date.tokens})
    rest = unclitic(one_spelling(without_dates(folded)))
    found = _Found(numbers=_AMBIGUOUS_DATE.findall(folded))
    for piece in _PIECE.findall(rest):
        if _BREAK.fullmatch(piece):
            found.broken = True
        elif EAST_RUN.fullmatch(piece):
            _eastern(found, piece)
        elif piece.casefold() != own_name.casefold():
            _western(found, piece)
        else:
            found.place(SELF)
    eastern = len("".join(EAST_RUN.findall(folded))) * 2 > sum(map(str.isalpha, folded))
    names, opening = names_in(text, own_name)
    if eastern:
        names |= found.latin
    names |= eastern_names_in(folded)
    negated = found.negations % 2 == 1
    return Statement(
        text=text,
        key=content_hash(whole),
        cut=len(whole) > MAX_CHARACTERS,
        tokens=frozenset(found.tokens),
        placed=_order_that_tells(found, named=bool(names or opening)),
        shades=frozenset(found.shades),
        marks=tuple(found.marks),
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
        mixed=not eastern and EAST_RUN.search(folded) is not None,
    )


def in_all_words(one: Statement) -> str:
    """A statement's meanings in every word that is known for them: what finds it in another language."""
    words = lexicon().words_of
    meanings = [token.removeprefix(WITHOUT).removeprefix(LESS) for token in sorted(one.tokens)]
    return " ".join(word for meaning in meanings for word in words.get(meaning, (meaning,)))


def _order_that_tells(found: _Found, *, named: bool) -> tuple[Placed, ...]:
    """Where the user stands says something beside a name only, and a liking only beside a dislike."""
    left = () if named else (SELF,)
    left += () if len(found.likings) > 1 else (LIKED, DISLIKED)
    return tuple(one for one in found.placed if one.token not in left)


def _western(found: _Found, piece: str) -> None:
    parts = [piece] if is_identifier(piece) else re.split(r"[._/@:+#-]+", piece)
    if _NUMBER.fullmatch(piece):
        parts = [piece]
    for part in filter(None, parts):
        _word(found, part)
        found.before = part


def _word(found: _Found, word: str) -> None:
    stemmed = stem(word)
    found.words |= {word, stemmed}
    if _NUMBER.fullmatch(word):
        found.number(word)
    elif word in ENGLISH_NUMBERS:
        found.number(ENGLISH_NUMBERS[word])
    elif word in MARKS:
        found.mark = MARKS[word]
    elif word in NEGATIONS:
        found.deny()
        if word in ("nothing", "nobody"):
            found.shade(f"none={word}")
    elif is_identifier(word):
        found.identifiers.add(word)
        found.tokens.add(word)
        found.place(word)
    else:
        if word in _SELVES:
            found.place(SELF)
        meaning = lexicon().english.get(word) or lexicon().english.get(stemmed)
        if _is_past(found, word, meaning):
            found.shade("plan=done")
        if meaning is None:
            found.latin.add(stemmed)
        found.add(meaning or stemmed)


def _is_past(found: _Found, word: str, meaning: str | None) -> bool:
    """Whether a form in -ed tells of the past: no state ("enabled"), no quality."""
    if not _DONE.fullmatch(word) or meaning == "weak" or lexicon().group_of.get(meaning or "") in lexicon().opposites:
        return False
    return found.before not in _QUALIFIED


def _eastern(found: _Found, run: str) -> None:
    at = 0
    while at < len(run):
        phrase, meaning = _longest(run, at)
        if own := next((one for one in _OF_SELF_EAST if run.startswith(one, at)), None):
            phrase = own
        elif own := next((one for one in _SELVES_EAST if run.startswith(one, at)), None):
            phrase = own
            found.place(SELF)
        elif phrase == "只" and at and (run[at - 1] in _EASTERN_DIGITS or run[at - 1] in _EASTERN_UNITS):
            pass  # two of them: what counts animals
        elif meaning in _ORDERS and found.postposed(meaning):
            found.words.add(phrase)
        elif phrase in _FORMERLY_EAST:
            found.shade("when=past")
        elif meaning is not None:
            found.words.add(phrase)
            found.add(meaning)
            if phrase in _KIN_EAST:
                found.shade(_KIN_EAST[phrase])
        elif mark := next((one for one in _MARKS_EAST if run.startswith(one, at)), None):
            phrase, found.mark = mark, _MARKS_EAST[mark]
        elif denied := next((one for one in _NEGATIONS_EAST if run.startswith(one, at)), None):
            phrase = denied
            found.deny()
        elif numeral := _numeral(run, at):
            phrase = numeral
            found.number(str(_value(numeral)))
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
    """十二 is 12, 三百 is 300, 五百万 is 5,000,000; digits one after the other (一二三四) are read as such."""
    if not any(sign in _EASTERN_UNITS for sign in numeral):
        return int("".join(str(_EASTERN_DIGITS[sign]) for sign in numeral))
    total, part, digit = 0, 0, 0
    for sign in numeral:
        unit = _EASTERN_UNITS.get(sign)
        if unit is None:
            digit = _EASTERN_DIGITS[sign]
        elif unit >= 10_000:
            total, part, digit = total + ((part + digit) or 1) * unit, 0, 0
        else:
            part, digit = part + (digit or 1) * unit, 0
    return total + part + digit

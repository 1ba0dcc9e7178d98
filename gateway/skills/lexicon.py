"""The words of `likeness_words.toml`: what means the same, weighs nothing, shades or governs another word. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from gateway.index.tokens import search_tokens

EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
EAST_RUN = re.compile(f"[{EAST}]+")
# What a meaning is told by, where it is no thing that is spoken of.
SHADE, GOVERN = "~", "^"
_PLAIN = ("weak", "likes", "dislikes", "breaks")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words by stem or eastern phrase.

    Attributes:
        english, eastern: their meanings: `=coffee`; `weak`, `likes`, `dislikes`, `breaks`; `~kind=value` for a shade,
            such as how often; `^label` for a word that governs the next, such as "from".
        group_of: the group in which a meaning excludes others.
        unmarked: shades that change nothing where the other statement has none of their kind.
        fragile: what is never only a little more: "off", "half", "beta".
        single: what has one value at a time: a birthday, a port.
        countries: towns lie in them.
        words_of: all stems and phrases of a meaning.
    """

    english: Mapping[str, str]
    eastern: Mapping[str, str]
    group_of: Mapping[str, str]
    opposites: frozenset[str]
    adverbial: frozenset[str]
    unmarked: frozenset[str]
    fragile: frozenset[str]
    single: frozenset[str]
    countries: frozenset[str]
    longest: int
    words_of: Mapping[str, tuple[str, ...]]


@cache
def lexicon() -> Lexicon:
    """The words of the file."""
    data = tomllib.loads(files(__package__ or "gateway.skills").joinpath("likeness_words.toml").read_text("utf-8"))
    english: dict[str, str] = {}
    eastern: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for kind, values in data["shades"].items():
        for value, words in values.items():
            _learn(english, eastern, words, f"{SHADE}{kind}={value}")
    for label, words in data["governs"].items():
        _learn(english, eastern, words, f"{GOVERN}{label}")
    for kind in ("breaks", "weak", "weak_zh", "likes", "dislikes"):
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
    return Lexicon(
        english,
        eastern,
        group_of,
        opposites=frozenset(data["opposites"]),
        adverbial=frozenset(str(data["adverbial"]).split()),
        unmarked=frozenset(str(data["unmarked"]).split()),
        fragile=frozenset(stem(word) for word in str(data["fragile"]).split()),
        single=frozenset(english.get(word) or eastern.get(word) or stem(word) for word in str(data["single"]).split()),
        countries=frozenset(str(data["countries"]).split()),
        longest=max(map(len, eastern)),
        words_of={meaning: tuple(words) for meaning, words in words_of.items()},
    )


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """What a word's forms have in common."""
    return (search_tokens(word).split() or [word])[0]


def _learn(english: dict[str, str], eastern: dict[str, str], words: str, meaning: str) -> None:
    exact = meaning in _PLAIN or meaning[0] in (SHADE, GOVERN)
    for word in words.split():
        if EAST_RUN.search(word):
            eastern.setdefault(word, meaning)
            continue
        if exact:
            english.setdefault(word, meaning)
        if meaning[0] not in (SHADE, GOVERN):
            english.setdefault(stem(word), meaning)

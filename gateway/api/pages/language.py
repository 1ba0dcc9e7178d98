"""The page's words in two languages: which of them a person wants, and what they say."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from gateway.api.pages.visible import shown

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@cache
def words(language: Language) -> dict[str, str]:
    """All words of a language, by dotted name."""
    text = files("gateway.api.pages").joinpath("words", f"{language}.toml").read_text("utf-8")
    return dict(_flat(tomllib.loads(text), ""))


def said(language: Language, name: str, /, **values: Any) -> str:
    """A sentence in a language, with values put in as they may be shown.

    Raises:
        KeyError: there is no such sentence.
    """
    return words(language)[name].format_map({key: shown(value) for key, value in values.items()})


def known(language: Language, name: str) -> bool:
    """Whether there is such a sentence."""
    return name in words(language)


def wanted(query: str | None, cookie: str | None, accepted: str | None) -> Language:
    """The language of a request: chosen just now, chosen before, or the browser's."""
    for chosen in (query, cookie):
        if chosen in LANGUAGES:
            return chosen
    ranked: list[tuple[float, int, Language]] = []
    for place, part in enumerate((accepted or "")[:1_000].split(",")):
        name, _, quality = part.partition(";")
        start = name.strip().lower().partition("-")[0]
        if start in LANGUAGES:
            ranked.append((-_quality(quality), place, start))
    return min(ranked)[2] if ranked else "en"


def _quality(text: str) -> float:
    try:
        return float(text.partition("=")[2] or 1)
    except ValueError:
        return 0.0


def _flat(table: dict[str, Any], start: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += _flat(cast("dict[str, Any]", value), f"{start}{name}.")
        else:
            found.append((f"{start}{name}", str(value)))
    return found

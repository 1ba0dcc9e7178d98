"""Recognises text that tries to command an agent rather than to tell it something. Such text waits for a person.

The patterns, each with its reason, with texts that it must hit and with near misses, stand in `instruction_like.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_DATA = "instruction_like.toml"
_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_GAP_BETWEEN_IDEOGRAPHS = re.compile(f"(?<=[{_EAST}]) | (?=[{_EAST}])")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to command an agent.

    Attributes:
        reason: what the text does, for the person who decides: "asks to ignore instructions".
        where: `flat`: the whole text in one line; `lines`: with its lines; `raw`: the text as it is.
        matches: texts that it must hit.
        misses: texts that look alike and that no pattern may hit.
    """

    reason: str
    where: str
    expression: re.Pattern[str]
    matches: tuple[str, ...]
    misses: tuple[str, ...]


def instruction_like(text: str) -> str | None:
    """The reason why a text looks like a command to an agent, or None.

    Full-width letters, letters of other styles, invisible signs inside words, and line breaks make no difference.
    """
    lines = _plain(text)
    forms = {"raw": text, "lines": lines, "flat": _GAP_BETWEEN_IDEOGRAPHS.sub("", " ".join(lines.split()))}
    for pattern in patterns():
        if pattern.expression.search(forms[pattern.where]):
            return pattern.reason
    return None


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in the order in which they are asked."""
    data = tomllib.loads(files(__package__ or "gateway.notes").joinpath(_DATA).read_text("utf-8"))
    return tuple(
        Pattern(
            one["reason"],
            one.get("where", "flat"),
            re.compile(one["pattern"], re.MULTILINE | re.VERBOSE),
            tuple(one["matches"]),
            tuple(one["misses"]),
        )
        for one in data["patterns"]
    )


def _plain(text: str) -> str:
    """Compatibility forms made plain, invisible signs dropped, small letters; lines stay."""
    kept = "".join(sign for sign in text if unicodedata.category(sign) != "Cf") if not text.isascii() else text
    return unicodedata.normalize("NFKC", kept).casefold()

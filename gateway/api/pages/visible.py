"""Characters that nobody sees, or that turn text around, are shown by their number: what is read is what is there."""

from __future__ import annotations

import unicodedata
from typing import Any

_JOINER = "\u200d"


def shown(value: Any) -> Any:
    """A value as it is shown; texts with hidden characters made visible, everything else as it is."""
    if not isinstance(value, str) or type(value) is not str:  # marked-up text was escaped already
        return value
    if value.isascii() and value.isprintable():
        return value
    return "".join(f"⟦U+{ord(char):04X}⟧" if _hidden(value, place) else char for place, char in enumerate(value))


def hidden_count(text: str) -> int:
    """How many characters of a text are not to be seen."""
    return sum(_hidden(text, place) for place in range(len(text)))


def _hidden(text: str, place: int) -> bool:
    char = text[place]
    if char in "\n\t":
        return False
    if char == "\r":
        return text[place + 1 : place + 2] != "\n"
    if char == _JOINER:  # within an emoji it is part of one picture
        return not (_pictured(text[place - 1 : place]) and _pictured(text[place + 1 : place + 2]))
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _pictured(char: str) -> bool:
    return char == "\ufe0f" or (char != "" and unicodedata.category(char) in ("So", "Sk"))

"""Topics that a user wants left out of recall: what counts as one, and which texts it covers. Pure.

Seed 002: CJK topics match as normalised substrings, so they need two base characters; other scripts match whole words.
A topic that would cover nearly everything is refused where it is written and ignored where it is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+")
MAX_TOPIC_CHARS: Final = 100
MIN_LATIN_CHARS: Final = 3
# Words that stand in nearly every text: a topic of these alone would silence everything.
_COMMON: Final = (
    "a about all also an and any anything are as at be because but by can do everything for from had has have he her "
    "his how i if in is it its like me memory memories my no not nothing of on one or our she so some something than "
    "that the their them there they thing things this to topic topics up us user was we were what when where which "
    "who will with work you your"
)
_EVERYWHERE: Final = frozenset(_COMMON.split()) | frozenset(
    (
        "我们",
        "你们",
        "他们",
        "用户",
        "记忆",
        "所有",
        "一切",
        "什么",
        "这个",
        "那个",
        "全部",
        "任何",
        "东西",
        "事情",
        "内容",
        "话题",
    )
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in the form in which it is compared."""

    folded: str

    def covers(self, text: str, tags: Sequence[str] = ()) -> bool:
        """Whether a text, or one of its tags, is about the topic."""
        for one in (text, *(tag.replace("/", " ").replace("-", " ") for tag in tags)):
            folded = _folded(one)
            if _CJK.search(self.folded):
                if self.folded.replace(" ", "") in folded.replace(" ", ""):
                    return True
            elif re.search(rf"(?<![^\W_]){re.escape(self.folded)}(?:s|es)?(?![^\W_])", folded):
                return True
        return False


def topic_of(text: str) -> Topic:
    """A topic from what a user wrote.

    Raises:
        ValueError: it is empty, too long, or so broad that it would cover nearly everything.
    """
    folded = _folded(text)
    if not folded:
        raise ValueError("a topic has at least one word")
    if len(folded) > MAX_TOPIC_CHARS:
        raise ValueError(f"a topic has at most {MAX_TOPIC_CHARS} characters")
    words = _WORD.findall(folded)
    if folded in _EVERYWHERE or not words or all(word in _EVERYWHERE for word in words):
        raise ValueError("the topic is so broad that it would cover nearly everything")
    cjk = _CJK.findall(folded)
    if cjk and len(cjk) < 2:
        raise ValueError("a topic in Chinese, Japanese or Korean has at least two characters")
    if not cjk and sum(len(word) for word in words) < MIN_LATIN_CHARS:
        raise ValueError(f"a topic has at least {MIN_LATIN_CHARS} letters")
    return Topic(folded)


def _folded(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LN" else " " for char in normal)
    return " ".join(kept.split())

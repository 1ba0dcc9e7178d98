"""What a candidate is worth, and what is left of a memory's importance when nobody asks for it. Pure.

    score = trust × (0.30 × importance + 0.20 × stability + 0.50 × repetition)

    importance   what the extraction said, 0 to 1
    stability    by kind (preference and decision 0.8, fact 0.7, experience 0.6); less where it speaks of a moment or is
                 not sure of itself
    repetition   1 - 0.5 ** sessions: 0.5 for one conversation, 0.75 for two, 0.875 for three
    trust        confidence × how many of the author's proposals people accepted (`reviews.trust`)

Seed 004 section H: importance, stability, repetition, trust in the source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

WEIGHTS = {"importance": 0.30, "stability": 0.20, "repetition": 0.50}
_STABILITY = {"preference": 0.8, "decision": 0.8, "fact": 0.7, "experience": 0.6}
_OTHER_KIND = 0.5
_PASSING, _UNSURE = 0.3, 0.6
_MOMENT = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|this (?:time|morning|week|once)|for now|just now"
    r"|temporarily)\b|今天|明天|昨天|今晚|这次(?!的教训)|这一次|暂时|刚才|此刻|眼下|这周|临时",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|probably|might|possibly|i guess|i think|not sure|kind of)\b"
    "|也许|可能|大概|或许|好像|说不定|不确定",
    re.IGNORECASE,
)
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Factors:
    """What a score is made of, each from 0 to 1; `sessions` is the number of distinct conversations."""

    importance: float
    stability: float
    repetition: float
    trust: float
    sessions: int
    score: float

    def shown(self) -> dict[str, float]:
        """By name, rounded, as a report lists them."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def score(
    content: str, memory_type: str, *, importance: float, confidence: float, author_trust: float, sessions: int
) -> Factors:
    """The score of a candidate and its factors.

    Args:
        author_trust: share of the author's proposals that counts, as `reviews.trust` says.
        sessions: distinct conversations in which it was said.
    """
    stability = stability_of(content, memory_type)
    repetition = 1 - 0.5 ** max(0, sessions)
    trust = confidence * author_trust
    parts = {"importance": importance, "stability": stability, "repetition": repetition}
    worth = trust * sum(WEIGHTS[name] * value for name, value in parts.items())
    return Factors(importance, stability, repetition, trust, sessions, worth)


def stability_of(content: str, memory_type: str) -> float:
    """How lasting a statement is: by its kind, less for what speaks of a moment or doubts itself."""
    lasting = _STABILITY.get(memory_type, _OTHER_KIND)
    if _MOMENT.search(content):
        lasting *= _PASSING
    if _HEDGE.search(content):
        lasting *= _UNSURE
    return lasting


def is_lasting(content: str) -> bool:
    """Whether a statement neither speaks of a moment nor doubts itself."""
    return not _MOMENT.search(content) and not _HEDGE.search(content)


def faded(importance: float, *, idle_ms: int, half_life_days: float, judgements: Sequence[str] = ()) -> float:
    """What is left of an importance: it halves with each half-life in which nobody was shown the memory.

    Each `useful` lengthens the half-life by itself once; a newest judgement `outdated` halves it.

    Args:
        idle_ms: time since it was last shown, changed or weighed.
        judgements: what was said of it, oldest first.
    """
    life = half_life_days * (1 + sum(one == "useful" for one in judgements))
    telling = [one for one in judgements if one in ("useful", "outdated")]
    if telling and telling[-1] == "outdated":
        life /= 2
    return importance * 0.5 ** (max(0, idle_ms) / _DAY_MS / life)

"""The patterns by which a plain statement of the user is known, in English and Chinese. They know no speakers."""

from __future__ import annotations

import re
from dataclasses import dataclass

# (type, importance, confidence, pattern): plain statements about the user, in English and Chinese.
_RULES: tuple[tuple[str, float, float, re.Pattern[str]], ...] = tuple(
    (kind, importance, confidence, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, importance, confidence, patterns in (
        (
            "explicit", 0.9, 0.95,
            (
                r"\b(?:please )?(?:remember|note|keep in mind|don't forget) (?:that|this)\b",
                "(?:请|帮我)?(?:记住|记下|牢记)",
            ),
        ),
        (
            "decision", 0.75, 0.85,
            (
                r"\b(?:we|i|the team|they) (?:have |just )?(?:decided|agreed|chose|settled on|went with)\b",
                r"\bwe(?:'ll| will| are going to| shall) (?:go with|use|adopt|keep|drop|switch to)\b",
                r"^\s*(?:decision|decided|agreed)\s*:",
                "(?:我们|我|团队|大家)?(?:决定|确定|商定|约定|敲定|拍板)(?:了|采用|使用|用)?",
                r"^\s*决定[:：]",
            ),
        ),
        (
            "experience", 0.65, 0.8,
            (
                r"\blessons?(?: learned)?\b[^.]{0,3}(?:is|was|:|,|that)|\blesson learned\b",
                r"\b(?:it )?turn(?:ed|s) out\b",
                r"\bthe fix (?:was|is)\b|\broot cause\b|\bwhat (?:worked|helped|fixed it) was\b",
                r"\b(?:i|we) learn(?:ed|t) that\b",
                "教训|原因是|根因|解决办法是|解决方法是|踩坑|经验是|原来是因为",
            ),
        ),
        (
            "preference", 0.75, 0.85,
            (
                r"\b(?:i|user|the user|we) (?:\w+ ){0,2}(?:prefer|like|love|enjoy|hate|dislike|detest)s?\b",
                r"\bmy favou?rite\b",
                r"\b(?:i|we) (?:can't stand|cannot stand|(?:always|never) (?:want|use|drink|eat|take))\b",
                r"\b(?:i'm|i am) (?:\w+ )?(?:fond of|a fan of|used to)\b|\bi'd rather\b|\bi would rather\b",
                r"\b(?:is|are) (?:what|how) i (?:prefer|like|want)\b|\bi don't (?:eat|drink|like|use|want)\b",
                "(?:我|用户)[^，。]{0,24}(?:喜欢|偏好|偏爱|讨厌|习惯|最爱|受不了|爱喝|爱吃|爱用)|比起[^，。]{1,12}更",
                "(?:我|用户)(?:从来不|从不|不)(?:吃|喝|用)",
            ),
        ),
        (
            "fact", 0.65, 0.8,
            (
                r"\b(?:my name is|call me|i am an?|i'm an?|i work (?:as|at|for|in)|i moved to)\b",
                r"\bi(?:'m| am)? liv(?:e|ing) in\b",
                r"\bi(?:'m| am) (?:allergic|vegetarian|vegan|from|based in|responsible)\b",
                r"\b(?:i was born|i speak|i own|i study)\b",
                r"\b(?:my [\w' -]{1,30} (?:is|are|was)|(?:the )?user (?:is|works|lives|has|speaks))\b",
                "我叫|我是|(?:我|用户)(?:现在|目前)?住在|(?:我|用户)在[^，。]{1,12}(?:工作|上班)",
                "我来自|我会说|我负责|我出生",
                "(?:(?:我|用户)的[^，。]{1,8}(?:是|叫))|(?:我|用户)对[^，。]{1,14}过敏|我每(?:天|周|月)[^，。]{2,}",
            ),
        ),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """What a pattern says of a sentence: the memory type, and importance and confidence from 0 to 1."""

    memory_type: str
    importance: float
    confidence: float


def rule_for(sentence: str) -> Rule | None:
    """What kind of statement a sentence is, if it is one."""
    for kind, importance, confidence, pattern in _RULES:
        if pattern.search(sentence):
            return Rule("fact" if kind == "explicit" else kind, importance, confidence)
    return None

"""One spelling for what is written in several: numbers, times, amounts, names with signs, set phrases. Pure."""

from __future__ import annotations

import re

_TIMES = {"k": 1_000, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_EASTERN_TIMES = {"千": 1_000, "万": 10_000, "亿": 100_000_000}
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.]([0-5]\d))?\s*([ap])\.?\s?m\b\.?")
_HOUR = re.compile(r"(?<![\d:.,/-])0?(\d{1,2}):([0-5]\d)(?![\d:])")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_MULTIPLE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(k|thousand|million|billion)\b")
_EASTERN_MULTIPLE = re.compile(r"(\d+(?:\.\d+)?)\s?([千万亿])")
_EASTERN_HOURS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_LATER = ("下午", "晚上", "傍晚")
_EASTERN_HOUR = re.compile(
    rf"(上午|早上|清晨|{'|'.join(_LATER)})\s?(\d{{1,2}}|十[一二]?|[一二两三四五六七八九])([点时])"
)
_WRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b(?:can't|cannot|can not|couldn't) (?:stand|bear)\b", " hate "),
        (r"\bno one\b|\bnoone\b", " nobody "),
        (r"\b(?:get|gets|got|getting|wake|wakes|woke|waking) up\b", " rise "),
        (r"\binstead of\b|\brather than\b", " not "),
        (r"\b(col|fav|neighb|behavi|harb|flav|hon|lab|hum|rum)our", r"\1or"),
        (r"\b(\w{3,})is(e|es|ed|ing|ation|ations)\b", r"\1iz\2"),
        (r"\bat all\b|\bturn(?:s|ed)? out\b", " "),
        (r"\bat least\b|\bno (?:less|fewer) than\b", " atleast "),
        (r"\bat most\b|\bup to\b|\bno more than\b", " atmost "),
        (r"\b(?:more|greater|higher|longer|later) than (?=[\d$€£])|\b(?:over|above) (?=[\d$€£])", " morethan "),
        (r"\b(?:less|fewer|lower|shorter|earlier) than (?=[\d$€£])|\b(?:under|below) (?=[\d$€£])", " lessthan "),
        (r"(?<!\bam )(?<!\bare )(?<!\bis )(?<!'m )(?<!'re )(?<!'s )(?<!\bget )\bused to\b(?= [a-z])", " formerly "),
        (r"(?:\b(?:am|is|are)|'m|'re|'s) going to\b", " will "),
        (
            r"\b(?:isn|aren|wasn|weren|don|doesn|didn|won|wouldn|shouldn|can|couldn|hasn|haven|hadn|mustn|needn|shan|ain)['’]?t\b",
            " not ",
        ),
        (r"\b(?:do|does|did|is|are|was|were|will|would|should|can|could|has|have|had|must|need) not\b", " not "),
        (r"\bcannot\b", " not "),
        (r"\bc\+\+", "cplusplus"),
        (r"\b([cf])#", r"\1sharp"),
        (r"(?<!\w)\.net\b", "dotnet"),
        (r"\$\s?(?=\d)", " dollar "),
        (r"€\s?(?=\d)|(?<=\d)\s?€", " euro "),
        (r"£\s?(?=\d)", " pound "),
        (r"[¥￥]\s?(?=\d)", " yuan "),
        (r"(?<=\d)\s?%", " percent "),
        (r"(?<=\d)\s*°\s*c\b", " celsius "),
        (r"(?<=\d)\s*°\s*f\b", " fahrenheit "),
        (r"(?<![\w)\]])[-−](?=\d)", " minus "),
        (r"\bv(?:ersion)?\.?\s?(?=\d)", " version "),
    )
)


def one_spelling(folded: str) -> str:
    """A folded text in which what is written in several ways is written in one.

    Negated verbs lose the verb that only carries the negation: "does not eat" and "don't eat" are "not eat".
    """
    text = folded.replace("’", "'")
    text = _CLOCK.sub(_clock, text)
    text = _HOUR.sub(_hour, text)
    text = _EASTERN_HOUR.sub(_eastern_hour, text)
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    text = _MULTIPLE.sub(lambda found: f" {_product(found[1], _TIMES[found[2]])} ", text)
    text = _EASTERN_MULTIPLE.sub(lambda found: _product(found[1], _EASTERN_TIMES[found[2]]), text)
    for pattern, instead in _WRITTEN:
        text = pattern.sub(instead, text)
    return text


def _clock(found: re.Match[str]) -> str:
    hour = int(found[1]) % 12 + (12 if found[3] == "p" else 0)
    return f"{hour}:{found[2]}" if found[2] and found[2] != "00" else str(hour)


def _eastern_hour(found: re.Match[str]) -> str:
    hour = int(found[2]) if found[2].isdigit() else _EASTERN_HOURS.index(found[2].replace("二", "两", found[2] == "二"))
    return f"{hour % 12 + 12 if found[1] in _LATER else hour}{found[3]}"


def _hour(found: re.Match[str]) -> str:
    return f"{int(found[1])}:{found[2]}" if found[2] != "00" else str(int(found[1]))


def _product(number: str, times: int) -> str:
    value = float(number) * times
    return str(int(value)) if value == int(value) else str(value)

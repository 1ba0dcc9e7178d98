"""Reads who says a line of a transcript from the label before it. Of the text alone; it knows no session.

A label may end trust on slight grounds and gives it only on good ones: whoever is misread is then not believed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

Role = Literal["user", "other", "tool"]

_USER = (
    r"(?:user|human)(?: (?:message|input|query|prompt|turn))?(?: \d{1,4})?|me"
    r"|用户(?:输入|消息)?|使用者|人类|本人|我"
)
_MODELS = "chatgpt|claude|codex|copilot|deepseek|gemini|gpt|grok|hermes|kimi|llama|mistral|openai|qwen"
_OTHER = (
    r"(?:the )?(?:ai |virtual )?(?:assistant|agent|ai|bot|chatbot|model|llm|language model|system|developer)"
    r"(?: (?:message|prompt|response|reply|answer|output|turn|instructions?|says|said))?(?: \d{1,4})?"
    rf"|(?:{_MODELS})(?:[ .\-]?\d[\w.\-]{{0,12}})?(?: [\w.\-]{{1,16}}){{0,3}}"
    r"|thoughts?|thinking|reasoning|final answer|actions?|action input"
    r"|\w{0,8}(?:助手|机器人|助理|智能体)(?:回复|回答|说)?|(?:大|语言|大语言)?模型(?:回复|回答|输出)?|系统(?:提示|消息|信息)?"
    r"|开发者|思考|推理|行动|动作|最终答案"
)
_TOOL = (
    r"(?:the )?(?:tools?|functions?|mcp|api|web|search|retrieval|memory|shell|command|execution)"
    r"(?: (?:calls?|use|results?|outputs?|responses?|returns?|search results?|call outputs?))(?: \d{1,4})?"
    r"|tools?|functions?|observations?|results?|outputs?|stdout|stderr"
    r"|(?:工具|函数|插件)(?:调用|输出|返回|响应)?(?:结果)?|(?:返回|搜索|检索|查询|执行|运行)?结果|输出|观察|观测"
)
_ROLES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("user", re.compile(_USER)),
    ("other", re.compile(_OTHER)),
    ("tool", re.compile(_TOOL)),
)
# A tool's name, as only programs write it: memory_search, web.fetch_page. Other such names are settings.
_FUNCTION = re.compile(
    r"(?=[\w.]*_)(?:[a-z0-9]+[._])*"
    r"(?:browser?|exec|fetch|lookup|outputs?|query|recall|responses?|results?|retrieve|search|tools?)(?:[._][a-z0-9]+)*"
)
# Words of ordinary documents: in a list, in a heading or in mid-line they say nothing about a speaker.
_ORDINARY = re.compile(
    r"systems?|models?|tools?|functions?|observations?|results?|outputs?|actions?|thoughts?|thinking|reasoning|me"
    r"|系统|模型|工具|函数|观察|观测|结果|输出|行动|动作|思考|推理|我"
)

_DATE = r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?(?:[AaPp]\.?[Mm]\.?|Z|UTC|[+-]\d{2}:?\d{2}))?"
# Every part is bounded and possessive: a line is read in a time that its length does not change.
_LABEL = re.compile(
    rf"""
    (?P<lead>(?:[^\w\n]|_){{0,32}}+)
    (?P<item>\d{{1,3}}[.)]\s{{1,4}})?+
    (?P<time>(?:{_DATE}(?:[T,]?\s?{_CLOCK})?|{_CLOCK})(?![\w]))?+
    (?P<marks>(?:[^\w\n]|_){{0,16}}+)
    (?P<name>[^\W\d_](?:[\w.'’\-]|[ \t](?=[^\W_])){{0,47}}+)
    (?P<close>[*_`~|\]>】」\s]{{0,8}}+)
    (?:[(\[（【<](?P<aside>[^()\[\]（）【】<>\n]{{0,60}}+)[)\]）】>]
       (?P<noun>\s(?:results?|outputs?|responses?)\b)?+[*_`~\]>\s]{{0,8}}+)?+
    (?P<colon>[:：](?!//))?+
    (?P<tail>[*_`~\]>】]{{0,4}}+(?=\s|\Z)|)
    \s{{0,8}}+
    """,
    re.VERBOSE,
)
_TAG = re.compile(
    r"\s{0,32}+(?:<\|(?:im_start|start_header_id)\|>\s?(?P<turn>\w{1,20}+)(?:<\|end_header_id\|>)?"
    r"|<\|?(?P<end>/?)(?P<name>[^\W\d_][\w\-]{0,31}+)(?:\s[^<>\n]{0,120}+)?+\|?>)\s{0,8}+"
)
_MID_TAG = re.compile(r"<\|?(?P<end>/?)(?P<name>[^\W\d_][\w\-]{0,31}+)(?:\s[^<>\n]{0,120}+)?+\|?>")
_LISTED = re.compile(r"\s*(?:>|[-+*•]\s)")
_PAIRS = {"[": "]", "<": ">", "【": "】", "「": "」"}
_DRESS = frozenset("*_`[<【「#>-+•")
_LABEL_BEGINS_WITHIN = 200
_MAY_HAVE_LABEL = re.compile(r"[:：\[<【「*_#]")
_CODE = re.compile(r"\s{0,3}(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Label:
    """What stands before a line and says who speaks.

    Attributes:
        role: whose it is; None: a name that no list knows.
        name: without marks, in small letters.
        length: how much of the line it takes.
        dress: the marks around it (`**`, `[`): labels of one transcript wear the same.
    """

    role: Role | None
    name: str
    length: int
    dress: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a transcript with its label, if it has one; `apart`: a blank line stands before it; `inner`: it is cut
    from the line before it at a tag."""

    text: str
    label: Label | None
    apart: bool
    inner: bool = False


def lines_of(text: str) -> list[Line]:
    """The lines of a transcript; one with a tag inside (`<user>…</user><assistant>…`) is several, blank ones are one.

    A user's label inside a block of code is an example, and another's.
    """
    raw = text.splitlines()
    code = _in_code(raw)
    lines: list[Line] = []
    apart = True
    for number, line in enumerate(raw):
        if not line or line.isspace():
            if not apart:
                lines.append(Line("", None, False))
            apart = True
            continue
        for part, segment in enumerate(_segments(line)):
            label = label_of(segment)
            if label is not None and label.role == "user" and number in code:
                label = Label("other", label.name, label.length, label.dress)
            lines.append(Line(segment, label, apart, inner=part > 0))
            apart = False
    return lines


def label_of(line: str) -> Label | None:
    """The label that a line begins with: of a known speaker, or of a name that may be one.

    One that is quoted, an item of a list or a bare heading is never the user's.
    """
    if not _MAY_HAVE_LABEL.search(line, 0, _LABEL_BEGINS_WITHIN):
        return None
    tag = _TAG.match(line)
    if tag is not None:
        return _of_tag(tag)
    match = _LABEL.match(line)
    if match is None:
        return None
    name = _plain(match["name"] + (match["noun"] or ""))
    role = role_of(name)
    if match["colon"] is None:
        role = _without_colon(match, line, name, role)
        if role is None:
            return None
    elif role is None and not _may_be_speaker(match):
        return None
    if _LISTED.match(line) or match["item"] is not None:
        if role is None or _ORDINARY.fullmatch(name):
            return None  # an item of one's own list
        role = "tool" if role == "tool" else "other"
    return Label(role, name, match.end(), _dress(match))


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role | None:
    """Whose a label is, by its name in small letters."""
    spaced = name.replace("_", " ").replace("-", " ")
    for role, names in _ROLES:
        if names.fullmatch(name) or names.fullmatch(spaced):
            return role
    return "tool" if _FUNCTION.fullmatch(name) else None


def _of_tag(tag: re.Match[str]) -> Label | None:
    name = _plain(tag["turn"] or tag["name"])
    role = role_of(name)
    if role is None:
        return None
    return Label("other" if tag["end"] else role, name, tag.end(), "<")


def _without_colon(match: re.Match[str], line: str, name: str, role: Role | None) -> Role | None:
    """`[assistant] …` is a label as good as one with a colon; a heading or bold word alone can only end trust."""
    opener = (match["marks"] or match["lead"]).rstrip("*_`/| ")[-1:]
    closer = match["close"].lstrip("*_`|")[:1]
    if opener in _PAIRS and _PAIRS[opener] == closer:
        return None if match["aside"] is not None else role
    marked = "#" in match["lead"] or match["lead"].strip().startswith(("**", "__"))
    if marked and match.end() == len(line) and role is not None and not _ORDINARY.fullmatch(name):
        return "other"
    return None


def _may_be_speaker(match: re.Match[str]) -> bool:
    """Whether an unknown name may be a speaker's: one to three words with a capital, or a few Chinese characters."""
    name: str = match["name"].strip("_ ")
    if not name.isascii() and all("\u3400" <= one <= "\u9fff" for one in name):
        return len(name) <= 6
    spaced = match["colon"] == "：" or match.end() == len(match.string) or match.string[match.end() - 1].isspace()
    return spaced and name[:1].isupper() and len(name.split()) <= 3


def _dress(match: re.Match[str]) -> str:
    before = match["lead"] + match["marks"] if match["time"] is None else match["marks"]
    return "".join(character for character in before if character in _DRESS)


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().strip("_ ").split())


def _segments(line: str) -> list[str]:
    """A line, cut around the tags of speakers inside it. A user's tag in mid-line is no beginning."""
    cuts: list[int] = []
    for tag in _MID_TAG.finditer(line) if "<" in line else ():
        name = _plain(tag["name"])
        role = None if _ORDINARY.fullmatch(name) else role_of(name)
        if role is not None and tag["end"]:
            cuts += [tag.start(), tag.end()]
        elif role is not None and role != "user":
            cuts.append(tag.start())
    bounds = [0, *cuts, len(line)]
    found = [line[start:end] for start, end in pairwise(bounds) if line[start:end].strip()]
    return found or [line]


def _in_code(lines: list[str]) -> frozenset[int]:
    """The numbers of the lines between a fence of code and the one that closes it."""
    inside: set[int] = set()
    opened: int | None = None
    for number, line in enumerate(lines):
        if _CODE.match(line):
            if opened is not None:
                inside.update(range(opened, number))
            opened = number if opened is None else None
    return frozenset(inside)

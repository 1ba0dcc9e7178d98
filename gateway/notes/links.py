"""Finds links and tags in the text of a note, where Obsidian would: not in code, math, HTML, comments or addresses."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote

from markdown_it import MarkdownIt

LinkKind: TypeAlias = Literal["wiki", "embed", "markdown"]

_BLOCKS = frozenset(("fence", "code_block", "html_block"))
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_HIDDEN = re.compile(r"%%.*?(?:%%|\Z)|<!--.*?(?:-->|\Z)|(?<!\\)\$\$.+?\$\$", re.DOTALL)
_INLINE_MATH = re.compile(r"(?<![\\$])\$(?![\s$])[^$\n]+?(?<![\s\\])\$(?![\d$])")
_HTML_TAG = re.compile(r"(?<!\]\()</?[A-Za-z][^<>\n]*>")
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s<>]+")
_WIKI = re.compile(r"(?<!\\)(!?)\[\[([^\[\]\n]+)\]\]")
_MARKDOWN = re.compile(
    r"(?<![\\!\]])(!?)\[((?:[^\[\]\\\n]|\\.)*)\]"
    r"\([ \t]*(<[^<>\n]*>|(?:[^()\s<]|\([^()\s]*\))(?:[^()\s]|\([^()\s]*\))*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:")
# A tag begins after a blank or an opening sign; it holds no space and no punctuation but _ - and /.
_TAG = re.compile(
    r"(?:(?<=[\s(\[{<>*_~\"'|,;\u3001\u3002\uff0c\uff08\uff1a\u300c\u300e\u201c\u2018])|(?<![\s\S]))#"
    r"([^\s!-,.:-@\[-^`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f\u3000-\u3003"
    r"\u3008-\u3011\u3014-\u301f\uff01-\uff0c\uff0e\uff1a-\uff20\uff3b-\uff3d\uff5b-\uff65]+)"
)
_PARSER = MarkdownIt("commonmark").disable(["inline", "reference"])


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another note or file of the vault.

    Attributes:
        target: the note or path as written, decoded; empty for a place in the same note.
        heading: what follows `#`, headings joined by `#`; None without.
        block: the block id after `#^`; None without.
        alias: the shown text; None without.
        line: 1-based line in the text that was searched.
    """

    kind: LinkKind
    target: str
    heading: str | None
    block: str | None
    alias: str | None
    line: int


def links_in(body: str) -> tuple[Link, ...]:
    """Return all links of a body, in order: wikilinks, embeds and Markdown links inside the vault."""
    text = visible(body)
    found = [(match.start(), _wiki_link(match)) for match in _WIKI.finditer(text)]
    rest = _WIKI.sub(lambda match: _blank(match.group()), text)
    found += [(match.start(), link) for match in _MARKDOWN.finditer(rest) if (link := _markdown_link(match))]
    return tuple(link for _, link in sorted(found, key=lambda pair: pair[0]))


def body_tags(body: str) -> tuple[str, ...]:
    """Return the tags of a body without #, in order, each once (compared without case); nested ones as `a/b`.

    A tag needs a character that is not a digit: `#y1984` is one, `#1984` is not (Obsidian's documentation of tags).
    """
    if "#" not in body:
        return ()
    text = _WIKI.sub(lambda match: _blank(match.group()), visible(body))
    text = _ADDRESS.sub(lambda match: _blank(match.group()), text)
    kept: dict[str, str] = {}
    for match in _TAG.finditer(text):
        tag = match.group(1).strip("/")
        if tag and not tag.replace("/", "").isdigit():
            kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())


def visible(body: str) -> str:
    """Blank out code, math, HTML and `%%` comments; every other character keeps its place and line."""
    text = _without_code_spans(_without_blocks(body))
    for pattern in (_HIDDEN, _INLINE_MATH, _HTML_TAG):
        text = pattern.sub(lambda match: _blank(match.group()), text)
    return text


def _without_blocks(body: str) -> str:
    lines = body.replace("\0", " ").split("\n")
    # markdown-it counts a lone CR as a line end; here it is none, so that its line numbers fit ours.
    source = "\n".join(line.rstrip("\r").replace("\r", " ") for line in lines)
    for token in _PARSER.parse(source):
        if token.type in _BLOCKS and token.map:
            for number in range(token.map[0], min(token.map[1], len(lines))):
                lines[number] = _blank(lines[number])
    return "\n".join(lines)


def _without_code_spans(text: str) -> str:
    """Blank out what stands between two equally long runs of backticks in one paragraph, in one pass."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    next_alike: dict[int, int] = {}
    closing = [0] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing[number] = next_alike.get(length, -1)
        next_alike[length] = number
    blank_lines = [match.start() for match in _BLANK_LINE.finditer(text)]
    pieces, done, number = list[str](), 0, 0
    while number < len(runs):
        start, end = runs[number]
        other = closing[number]
        number += 1
        if other < 0 or text[start - 1 : start] == "\\":
            continue
        if bisect_left(blank_lines, end) != bisect_left(blank_lines, runs[other][0]):
            continue
        pieces += [text[done:start], _blank(text[start : runs[other][1]])]
        done, number = runs[other][1], other + 1
    return "".join((*pieces, text[done:]))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _wiki_link(match: re.Match[str]) -> Link:
    # In a table the bar before the alias is escaped.
    whole, _, alias = match.group(2).replace("\\|", "|").partition("|")
    target, heading, block = _place(whole.strip())
    return Link("embed" if match.group(1) else "wiki", target, heading, block, alias.strip() or None, _line(match))


def _markdown_link(match: re.Match[str]) -> Link | None:
    address = match.group(3)
    address = address[1:-1] if address.startswith("<") else address
    if _SCHEME.match(address) or address.startswith("//"):
        return None
    target, heading, block = _place(unquote(address))
    return Link("embed" if match.group(1) else "markdown", target, heading, block, match.group(2) or None, _line(match))


def _place(whole: str) -> tuple[str, str | None, str | None]:
    target, _, place = whole.partition("#")
    if place.startswith("^"):
        return target.strip(), None, place[1:]
    return target.strip(), place or None, None


def _line(match: re.Match[str]) -> int:
    return match.string.count("\n", 0, match.start()) + 1

"""Cuts the Markdown of a note into chunks that fit an embedding model, along its own structure.

Pure text in, values out; it knows neither notes nor the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt

from gateway.index.tokens import count_tokens

MAX_CHUNK_TOKENS = 512
# Above this size the parser's worst cases cost more than the structure is worth.
_MAX_PARSED_CHARACTERS = 1_000_000

_SURROGATES = re.compile("[\ud800-\udfff]")
# From coarse to fine; each keeps its separator with the part before it.
_BOUNDARIES = (
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?;]+[\"'”’)\]]*\s|[。！？；…]+[”’」』）]*"),
    re.compile(r"\s"),
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a note: its position, the headings above it (outermost first) and its text."""

    ordinal: int
    heading: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    heading: tuple[str, ...]
    text: str


def chunk_note(title: str, body: str, *, max_tokens: int = MAX_CHUNK_TOKENS) -> list[Chunk]:
    """Cut a note into chunks of at most `max_tokens` (by `count_tokens`), in reading order.

    Headings separate; blocks under one heading are joined while they fit; fenced blocks and tables are cut only when
    they alone are too long. An empty body gives one chunk of the title, and none if both are empty.
    """
    blocks = _blocks(clean(body))
    chunks = list(_merged(blocks, max_tokens))
    if not chunks and (only_title := clean(title).strip()):
        chunks = [_Block((), piece) for piece in _pieces(only_title, max_tokens)]
    return [Chunk(ordinal, block.heading, block.text) for ordinal, block in enumerate(chunks)]


def clean(text: str) -> str:
    """Text that every store and model can take: no NUL, no lone surrogates, one kind of line end."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ")
    return _SURROGATES.sub("\ufffd", unified)


def _blocks(body: str) -> list[_Block]:
    if len(body) > _MAX_PARSED_CHARACTERS:
        return [_Block((), body.strip())]
    return list(_parsed_blocks(body))


def _parsed_blocks(body: str) -> Iterator[_Block]:
    lines = body.split("\n")
    path: list[tuple[int, str]] = []
    start, empty_section = 0, False
    for level, first, last, title in _headings(body):
        yield from _section(path, "\n".join(lines[start:first]), empty_section and level <= path[-1][0])
        path = [item for item in path if item[0] < level]
        path.append((level, title))
        start, empty_section = last, True
    yield from _section(path, "\n".join(lines[start:]), empty_section)


def _section(path: list[tuple[int, str]], text: str, speaks_for_itself: bool) -> Iterator[_Block]:
    """The blocks of one section; a heading with nothing below it is its own text."""
    heading = tuple(title for _, title in path if title)
    if text.strip():
        yield from (_Block(heading, block) for block in _top_level_blocks(text))
    elif speaks_for_itself and heading:
        yield _Block(heading, heading[-1])


def _headings(body: str) -> Iterator[tuple[int, int, int, str]]:
    """Level, first line, line after, and title of each heading that is not inside another block."""
    tokens = _parser().parse(body)
    for token, content in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield int(token.tag[1:]), token.map[0], token.map[1], content.content.strip()


def _top_level_blocks(text: str) -> Iterator[str]:
    lines = text.split("\n")
    start = 0
    for token in _parser().parse(text):
        if token.level == 0 and token.map and token.nesting >= 0 and token.map[0] > start:
            yield from _unless_blank("\n".join(lines[start : token.map[0]]))
            start = token.map[0]
    yield from _unless_blank("\n".join(lines[start:]))


def _unless_blank(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip("\n").rstrip()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Blocks only: inline markup costs time and changes no boundary."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _merged(blocks: Iterable[_Block], max_tokens: int) -> Iterator[_Block]:
    heading: tuple[str, ...] = ()
    texts: list[str] = []
    size = 0
    for block in blocks:
        for piece in _pieces(block.text, max_tokens):
            tokens = count_tokens(piece)
            if texts and (block.heading != heading or size + tokens > max_tokens):
                yield _Block(heading, "\n\n".join(texts))
                texts, size = [], 0
            heading = block.heading
            texts.append(piece)
            size += tokens
    if texts:
        yield _Block(heading, "\n\n".join(texts))


def _pieces(text: str, max_tokens: int, boundary: int = 0) -> Iterator[str]:
    """Parts of at most `max_tokens`: cut at the coarsest boundary that serves, each level in linear time."""
    if count_tokens(text) <= max_tokens:
        if text.strip():
            yield text.strip("\n").rstrip()
        return
    if boundary == len(_BOUNDARIES):
        # A character is at most one token, so small steps pack to just below the limit.
        step = max(1, max_tokens // 8)
        parts: Iterable[str] = (text[at : at + step] for at in range(0, len(text), step))
    else:
        parts = _split(text, _BOUNDARIES[boundary])
    for packed in _packed(parts, max_tokens):
        yield from _pieces(packed, max_tokens, min(boundary + 1, len(_BOUNDARIES)))


def _split(text: str, boundary: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for match in boundary.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _packed(parts: Iterable[str], max_tokens: int) -> Iterator[str]:
    collected: list[str] = []
    size = 0
    for part in parts:
        tokens = count_tokens(part)
        if collected and size + tokens > max_tokens:
            yield "".join(collected)
            collected, size = [], 0
        collected.append(part)
        size += tokens
    if collected:
        yield "".join(collected)

"""Finds the properties block of a note, as strictly as Obsidian does, and reads it through python-frontmatter.

Only `frontmatter.parse` of that library is used: its own splitting changes text, and its dumps re-write a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import frontmatter
from frontmatter.default_handlers import BaseHandler

from gateway.errors import BadNote
from gateway.notes.properties import Properties, read_properties

BOM = "\ufeff"
FENCE = "---"

# Obsidian's fences carry nothing after the dashes; a lone CR ends no line.
_OPEN = re.compile(r"---\r?\n")
_CLOSE = re.compile(r"^---(?:\r?\n|\Z)", re.MULTILINE)
_ALMOST_OPEN = re.compile(r"---[ \t]*\r?(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Split:
    """Where a note's parts lie: `text == bom + opening + block + closing + body`.

    Attributes:
        has_block: there is a finished properties block.
        unfinished: the text looks like a block that has no end (or fences with trailing blanks, which Obsidian does
            not take for fences); a second block must never be put above it.
    """

    bom: str
    opening: str
    block: str
    closing: str
    body: str
    has_block: bool
    unfinished: bool

    @property
    def head(self) -> str:
        """Everything before the body."""
        return self.bom + self.opening + self.block + self.closing

    @property
    def body_start_line(self) -> int:
        """The 1-based line of the file on which the body begins."""
        return self.head.count("\n") + 1


def split(text: str) -> Split:
    """Cut a note into its parts without changing or dropping a character.

    The block begins on the very first line, which is exactly `---` (after an optional byte order mark), and ends at
    the first line that is exactly `---`, also inside a block scalar: so does Obsidian.
    """
    bom = BOM if text.startswith(BOM) else ""
    rest = text[len(bom) :]
    opening = _OPEN.match(rest)
    closing = _CLOSE.search(rest, opening.end()) if opening else None
    if opening is None or closing is None:
        return Split(bom, "", "", "", rest, has_block=False, unfinished=_looks_unfinished(rest))
    return Split(
        bom,
        rest[: opening.end()],
        rest[opening.end() : closing.start()],
        rest[closing.start() : closing.end()],
        rest[closing.end() :],
        has_block=True,
        unfinished=False,
    )


def read_block(parts: Split) -> Properties:
    """Read the properties of a note that was split; none if it has no block.

    Raises:
        BadNote: the block is not acceptable; `line` is the 1-based line in the file.
    """
    if not parts.has_block:
        return Properties((), patchable=True)
    handler = ObsidianHandler(parts.block)
    try:
        frontmatter.parse(parts.opening + parts.block + parts.closing, handler=handler)
    except BadNote as error:
        # The block begins on the second line of the file.
        raise BadNote(error.detail, line=(error.line or 1) + 1, kind=error.facts.get("kind")) from None
    return handler.properties


class ObsidianHandler(BaseHandler):
    """A python-frontmatter handler with Obsidian's fences and types.

    `properties` holds what `load` read last, with the place of each key. Since python-frontmatter turns CRLF into LF
    before it asks, the block as it stands in the file can be given, so that the places fit the file.
    """

    FM_BOUNDARY = _CLOSE
    START_DELIMITER = FENCE
    END_DELIMITER = FENCE

    def __init__(self, block: str | None = None) -> None:
        super().__init__()
        self._block = block
        self.properties = Properties((), patchable=True)

    def detect(self, text: str) -> bool:
        """Say whether the text begins with a finished block."""
        return split(text).has_block

    def split(self, text: str) -> tuple[str, str]:
        """Return block and body; python-frontmatter takes ValueError for "no block"."""
        parts = split(text)
        if not parts.has_block:
            raise ValueError("no properties block")
        return parts.block, parts.body

    def load(self, fm: str) -> dict[str, Any]:
        """Read a block within the bounds of `read_properties`."""
        self.properties = read_properties(fm if self._block is None else self._block)
        return dict(self.properties.values)


def line_end_of(text: str) -> str:
    """Return the line end of the first line, `\\n` if there is none."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def is_cr_only(text: str) -> bool:
    """Say whether the text uses the line ends of old Macs, which Obsidian does not count as line ends."""
    return "\r" in text and "\n" not in text


def _looks_unfinished(text: str) -> bool:
    return bool(_ALMOST_OPEN.match(text)) or text.startswith(FENCE + "\r")

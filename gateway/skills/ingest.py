"""ingest: brings a conversation, a file's text or task events into one plain form. Writes nothing."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from gateway.errors import Invalid
from gateway.skills.contract import Skill

MAX_CONTENT_CHARS = 200_000
_USERS = ("", "user", "human", "用户")
_BLANK_LINES = re.compile(r"\r?\n[^\S\n]*(?:\r?\n[^\S\n]*)+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RawMaterial:
    """What an agent hands over: text, or events of a task (`{"role" | "type", "content" | "text", ...}`), or both."""

    content: str
    events: tuple[Any, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Normalised:
    """Plain text in NFC with LF line ends, and the events that were in it."""

    content: str
    events: list[Any]
    tags: list[str]


def ingest(raw: RawMaterial) -> Normalised:
    """Normalise what an agent hands over.

    Raises:
        Invalid: there is no text in it, or too much.
    """
    said = [raw.content, *(_said(event) for event in raw.events)]
    # Each turn is a paragraph: a line within one that looks like somebody else's turn is none (`hearing`).
    text = "\n\n".join(one for one in said if one.strip())
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _CONTROL.sub(" ", text.encode("utf-8", "replace").decode("utf-8")).strip()
    if not text:
        raise Invalid("There is no text in it.", field="content")
    if len(text) > MAX_CONTENT_CHARS:
        raise Invalid(f"An episode may have {MAX_CONTENT_CHARS:,} characters.", field="content")
    return Normalised(text, list(raw.events), list(dict.fromkeys(raw.tags)))


def _said(event: Any) -> str:
    """An event as one turn of a conversation: who, what. Only a user's turn has paragraphs."""
    if not isinstance(event, dict):
        return event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
    known: dict[str, Any] = {str(name): value for name, value in event.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    who = known.get("role") or known.get("type") or ""
    what = known.get("content") or known.get("text") or known.get("message") or ""
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False)
    if str(who).casefold() not in _USERS and "\n" in text:
        text = "\n" + _BLANK_LINES.sub("\n", text).strip("\r\n")
    return f"{who}: {text}" if who and text else text


SKILL = Skill(
    name="ingest",
    does="Brings a conversation, a file's text or task events into one plain form.",
    takes=RawMaterial,
    gives=Normalised,
    when="before an episode is stored",
    writes_long_term=False,
)

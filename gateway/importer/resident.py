"""A user's fixed notes: which template each begins with, and what a structured one says.

Templates are seeds 000 and 001: SOUL, USER, MEMORY, UserMemory, WorkMemory.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from gateway.importer.places import Place
from gateway.ledger import Transaction, structured
from gateway.ledger.registry import NoteRow
from gateway.ledger.structured import LastGood
from gateway.notes.frontmatter import split
from gateway.notes.note import NoteProblem, ParsedNote
from gateway.notes.structured import MODELS, plain, read_structured
from gateway.notes.text import etag_of
from gateway.starter import templates

# The rooms that every user has from the beginning, and their templates.
TEMPLATES: Final = {
    "user_memory": "UserMemory.md",
    "work_memory": "WorkMemory.md",
    "user_file": "USER.md",
    "soul": "SOUL.md",
    "memory_file": "MEMORY.md",
}


@cache
def template_of(room: str) -> bytes:
    """The bytes that the note of a room begins with; agent files without properties."""
    data = (templates() / TEMPLATES[room]).read_bytes()
    return data if room in MODELS else split(data.decode("utf-8")).body.lstrip("\r\n").encode("utf-8")


def is_blank(place: Place, etag: str) -> bool:
    """Whether a fixed note is still its template."""
    room = place.namespace.room
    return room in TEMPLATES and not place.archived and etag == etag_of(template_of(room))


def take_in(
    tx: Transaction, row: NoteRow, previous: NoteRow | None, place: Place, parsed: ParsedNote
) -> tuple[NoteProblem, ...]:
    """Keep what a structured note says, if it reads well. Returns what is wrong with it otherwise."""
    room = place.namespace.room
    model = None if place.archived else MODELS.get(room)
    if model is None:
        if previous is not None and was_structured(previous):
            structured.forget(tx, [row.note_id])
        return ()
    content, problems = read_structured(parsed, model)
    if content is not None:
        structured.save(tx, LastGood(row.note_id, room, plain(content), row.etag))
    return problems


def was_structured(row: NoteRow) -> bool:
    """Whether a memory stands where structured ones do."""
    return row.namespace.rpartition("/")[2] in MODELS

"""The topics that a user wants left out of recall, by their active `suppress_topic` directives."""

from __future__ import annotations

from gateway.importer.parts import Parts
from gateway.ledger import registry
from gateway.ledger.registry import NoteRow
from gateway.notes.frontmatter import split
from gateway.notes.namespace import Namespace
from gateway.notes.note import parse
from gateway.notes.topics import Topic, topic_of

SUPPRESS = "suppress_topic"


def active_directives(parts: Parts, user_id: str) -> list[NoteRow]:
    """A user's active directives, last changed first; equal times by id (seed 002)."""
    with parts.ledger.read() as tx:
        rows = registry.active_in(tx, str(Namespace("user", user_id, "directives")))
    return sorted(rows, key=lambda row: (-row.updated_at, row.note_id))


def kind_of(data: bytes) -> str:
    """The kind that a directive note says it is; `rule` where it says none."""
    value = parse(data).properties.get("kind")
    return value if isinstance(value, str) and value in ("style", "rule", SUPPRESS) else "rule"


def suppressed_topics(parts: Parts, user_id: str | None) -> tuple[Topic, ...]:
    """The topics that are left out for a user. One that is too broad, however it got there, is ignored."""
    if user_id is None:
        return ()
    topics: list[Topic] = []
    for row in active_directives(parts, user_id):
        read = parts.files.read(row.path)
        if read is None or kind_of(read.data) != SUPPRESS:
            continue
        try:
            topics.append(topic_of(split(read.data.decode("utf-8", "replace")).body))
        except ValueError:
            continue
    return tuple(topics)

"""The last good content of each structured memory: what is in force while a person's note cannot be read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema_users import structured


@dataclass(frozen=True, slots=True)
class LastGood:
    """What a note said when it last read well; `etag` is that of the note then."""

    note_id: str
    room: str
    content: dict[str, Any]
    etag: str


def save(tx: Transaction, good: LastGood) -> None:
    """The note reads well, and says this."""
    row = {"note_id": good.note_id, "room": good.room, "content": good.content, "etag": good.etag}
    upsert(tx, structured, [row | {"updated_at": now_ms()}], keys=["note_id"])


def last_good(tx: Transaction, note_id: str) -> LastGood | None:
    """What a note said when it last read well."""
    columns = [structured.c[name] for name in LastGood.__slots__]
    row = tx.execute(sa.select(*columns).where(structured.c.note_id == note_id)).first()
    return LastGood(*row) if row else None


def forget(tx: Transaction, note_ids: Collection[str]) -> None:
    """The notes are gone, or are no structured memories any more."""
    if note_ids:
        tx.execute(sa.delete(structured).where(structured.c.note_id.in_(list(note_ids))))

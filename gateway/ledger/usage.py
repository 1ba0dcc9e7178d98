"""How often a memory was shown, and when last: what is used stays, what nobody asks for fades (seed 004 section H)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction
from gateway.ledger.schema_upkeep import usage


@dataclass(frozen=True, slots=True)
class Use:
    """Turns in which a memory was shown, and the time of the last one (ms since 1970 UTC)."""

    hits: int
    last_hit_at: int


def count(tx: Transaction, hits: Mapping[str, int]) -> None:
    """Add hits by note id."""
    if not hits:
        return
    if tx.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert
    at = now_ms()
    statement = insert(usage)
    more = {"hits": usage.c.hits + statement.excluded.hits, "last_hit_at": statement.excluded.last_hit_at}
    rows = [{"note_id": note_id, "hits": number, "last_hit_at": at} for note_id, number in hits.items()]
    tx.execute(statement.on_conflict_do_update(index_elements=["note_id"], set_=more), rows)


def of(tx: Transaction, note_ids: Collection[str]) -> dict[str, Use]:
    """The use of memories that were ever shown."""
    query = sa.select(usage.c.note_id, usage.c.hits, usage.c.last_hit_at).where(usage.c.note_id.in_(list(note_ids)))
    return {row[0]: Use(row[1], row[2]) for row in tx.execute(query)}


def forget(tx: Transaction, note_id: str) -> None:
    """The memory is gone, and with it what was counted."""
    tx.execute(sa.delete(usage).where(usage.c.note_id == note_id))

"""Cached vectors that no memory has a text for any more, and since when: they are kept for a while, then removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction
from gateway.ledger.schema_upkeep import orphans

# Stands for all vectors of a place.
WHOLE = "*"
_AT_ONCE = 500


def state(tx: Transaction, place: str, hashes: Collection[str]) -> None:
    """These texts, and no others, are orphans now; one that was before keeps its time."""
    before = {row[0] for row in tx.execute(sa.select(orphans.c.text_hash).where(orphans.c.place == place))}
    forget(tx, place, [one for one in before if one not in hashes])
    at = now_ms()
    new = [{"place": place, "text_hash": one, "since": at} for one in hashes if one not in before]
    if new:
        tx.execute(sa.insert(orphans), new)


def due(tx: Transaction, place: str, until: int, limit: int) -> list[str]:
    """Orphans since a time (ms) or longer, the oldest first."""
    query = sa.select(orphans.c.text_hash).where(orphans.c.place == place, orphans.c.since <= until)
    return list(tx.scalars(query.order_by(orphans.c.since).limit(limit)))


def places(tx: Transaction) -> list[str]:
    """All places with orphans."""
    return list(tx.scalars(sa.select(orphans.c.place).distinct()))


def forget(tx: Transaction, place: str, hashes: Sequence[str]) -> None:
    """They are gone, or no orphans any more."""
    for start in range(0, len(hashes), _AT_ONCE):
        part = hashes[start : start + _AT_ONCE]
        tx.execute(sa.delete(orphans).where(orphans.c.place == place, orphans.c.text_hash.in_(part)))

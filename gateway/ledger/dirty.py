"""What consolidation has to look at: one row per memory or session that changed, with a generation.

Bounded by the number of notes and sessions. What fails is tried again behind all that was not tried yet (seed 002).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, inserting
from gateway.ledger.schema_upkeep import dirty

NOTE, SESSION = "note", "session"


@dataclass(frozen=True, slots=True)
class Dirty:
    """One piece of work: a memory (`note`, its id) or a session (`session`, `<user>/<session>`)."""

    kind: str
    key: str
    namespace: str
    generation: int
    tries: int
    tried_at: int
    created_at: int


_COLUMNS = [dirty.c[field.name] for field in fields(Dirty)]


def mark(tx: Transaction, kind: str, key: str, namespace: str) -> None:
    """Something changed: it is looked at anew, and what was begun with it before is out of date."""
    at = now_ms()
    values = {"kind": kind, "key": key, "namespace": namespace, "generation": at, "tries": 0, "tried_at": 0}
    newer = {"generation": dirty.c.generation + 1, "namespace": namespace, "tries": 0, "tried_at": 0}
    statement = inserting(tx, dirty).values(**values, created_at=at)
    tx.execute(statement.on_conflict_do_update(index_elements=["kind", "key"], set_=newer))


def waiting(tx: Transaction, limit: int, *, before: int | None = None) -> list[Dirty]:
    """Work in order: what was never tried first, then what was tried longest ago (before a time in ms, if given)."""
    query = sa.select(*_COLUMNS).order_by(dirty.c.tried_at, dirty.c.created_at, dirty.c.key).limit(limit)
    if before is not None:
        query = query.where(dirty.c.tried_at < before)
    return [Dirty(*row) for row in tx.execute(query)]


def generation(tx: Transaction, kind: str, key: str) -> int | None:
    """The present generation of a piece of work; None where it has settled."""
    return tx.scalar(sa.select(dirty.c.generation).where(dirty.c.kind == kind, dirty.c.key == key))


def failed(tx: Transaction, work: Dirty) -> None:
    """It could not be done: it goes behind everything that waits."""
    where = (dirty.c.kind == work.kind, dirty.c.key == work.key, dirty.c.generation == work.generation)
    tx.execute(sa.update(dirty).where(*where).values(tries=dirty.c.tries + 1, tried_at=now_ms()))


def settle(tx: Transaction, work: Dirty) -> bool:
    """It is done, unless it changed again meanwhile. Returns whether it is settled."""
    where = (dirty.c.kind == work.kind, dirty.c.key == work.key, dirty.c.generation == work.generation)
    return tx.execute(sa.delete(dirty).where(*where)).rowcount > 0


def forget(tx: Transaction, kind: str, key: str) -> None:
    """It is gone: nothing is left to do."""
    tx.execute(sa.delete(dirty).where(dirty.c.kind == kind, dirty.c.key == key))


def count(tx: Transaction) -> int:
    """How much waits."""
    return tx.scalar(sa.select(sa.func.count()).select_from(dirty)) or 0

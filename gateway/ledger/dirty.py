"""What consolidation has to look at: one row per memory or session that changed, with a generation.

Bounded by the number of notes and sessions. Two queues, each in order: what was not tried since it changed, by the time
from which on it waits (`created_at`), and what had to wait or failed, by the time of the last try (`tried_at`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, inserting
from gateway.ledger.schema import sessions
from gateway.ledger.schema_upkeep import dirty

NOTE, SESSION = "note", "session"
# The share of a pass that is kept for what had to wait or failed: one in so many, and one at least.
_LATE = 4


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
    """Something changed: it is looked at anew, and what was begun with it before is out of date.

    What waits untried keeps its place, so that change upon change neither puts it off nor lets it pass others. So does
    a session that still goes on and was put off until it may have fallen silent.
    """
    at = now_ms()
    values = {"kind": kind, "key": key, "namespace": namespace, "generation": at, "tries": 0, "tried_at": 0}
    moved = dirty.c.tried_at > 0
    if kind != SESSION or not _goes_on(tx, key):
        moved = sa.or_(moved, dirty.c.created_at > at)
    newer = {
        "generation": dirty.c.generation + 1,
        "namespace": namespace,
        "tries": 0,
        "tried_at": 0,
        "created_at": sa.case((moved, at), else_=dirty.c.created_at),
    }
    statement = inserting(tx, dirty).values(**values, created_at=at)
    tx.execute(statement.on_conflict_do_update(index_elements=["kind", "key"], set_=newer))


def waiting(tx: Transaction, limit: int) -> list[Dirty]:
    """All work: what was not tried first, then what was tried longest ago."""
    return _in_order(tx, limit)


def turn(tx: Transaction, limit: int, at: int, longest: int) -> list[Dirty]:
    """The work of one pass: whatever has waited longest, then what was not tried, then the rest of what was.

    Each queue has its share of the items and gives what it does not need to the other, and the first item is the
    longest-waiting one of both: whatever waits has its turn after a bounded number of passes, even of one item each.

    Args:
        at: the time in ms; what was put off until later is left out.
        longest: for how long (ms) anything is put off at most; a date beyond that is of a clock that was set back.
    """
    due = sa.or_(dirty.c.created_at <= at, dirty.c.created_at > at + longest)
    late = _in_order(tx, limit, dirty.c.tried_at > 0)
    fresh = _in_order(tx, limit, dirty.c.tried_at == 0, due)
    late = late[: max(1, limit // _LATE, limit - len(fresh))]
    fresh = fresh[: max(1, limit - len(late))]
    first = min([*late[:1], *fresh[:1]], key=_since, default=None)
    rest = [one for one in (*fresh, *late) if one is not first]
    return [first, *rest][:limit] if first is not None else []


def generation(tx: Transaction, kind: str, key: str) -> int | None:
    """The present generation of a piece of work; None where it has settled."""
    return tx.scalar(sa.select(dirty.c.generation).where(dirty.c.kind == kind, dirty.c.key == key))


def failed(tx: Transaction, work: Dirty) -> None:
    """It could not be done: it goes behind everything that was tried before."""
    tx.execute(sa.update(dirty).where(*_same(work)).values(tries=dirty.c.tries + 1, tried_at=now_ms()))


def put_off(tx: Transaction, work: Dirty, until: int) -> None:
    """There is nothing to do before a time (ms): until then it takes no part, unless it changes."""
    tx.execute(sa.update(dirty).where(*_same(work)).values(tries=0, tried_at=0, created_at=until))


def settle(tx: Transaction, work: Dirty) -> bool:
    """It is done, unless it changed again meanwhile. Returns whether it is settled."""
    return tx.execute(sa.delete(dirty).where(*_same(work))).rowcount > 0


def forget(tx: Transaction, kind: str, key: str) -> None:
    """It is gone: nothing is left to do."""
    tx.execute(sa.delete(dirty).where(dirty.c.kind == kind, dirty.c.key == key))


def count(tx: Transaction) -> int:
    """How much waits."""
    return tx.scalar(sa.select(sa.func.count()).select_from(dirty)) or 0


def _same(work: Dirty) -> tuple[sa.ColumnElement[bool], ...]:
    """The row of a piece of work, unless it changed since."""
    return (dirty.c.kind == work.kind, dirty.c.key == work.key, dirty.c.generation == work.generation)


def _in_order(tx: Transaction, limit: int, *where: sa.ColumnElement[bool]) -> list[Dirty]:
    order = (dirty.c.tried_at, dirty.c.created_at, dirty.c.key)
    return [Dirty(*row) for row in tx.execute(sa.select(*_COLUMNS).where(*where).order_by(*order).limit(limit))]


def _since(work: Dirty) -> int:
    return work.tried_at or work.created_at


def _goes_on(tx: Transaction, key: str) -> bool:
    user_id, _, session_id = key.partition("/")
    where = (sessions.c.user_id == user_id, sessions.c.id == session_id)
    return tx.scalar(sa.select(sessions.c.status).where(*where)) == "open"

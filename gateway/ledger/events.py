"""What happened, for those who listen: ids and kinds only, never text. Kept a day, so that a listener can resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction
from gateway.ledger.schema_upkeep import events

# More than can have been given out since a backup.
_LEAP = 1_000_000_000
MEMORY, DRAFT, PROBLEM, JOB = "memory", "draft", "problem", "job"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `kind`: memory, draft, problem or job; `change` what became of it.

    Attributes:
        namespace, visibility: where the target stands, which decides who may hear of it; None: administrators only,
            or the user named by `user_id` (a job).
        seq: its number, which `Last-Event-ID` names; 0 before it is written.
    """

    kind: str
    change: str
    target_id: str
    namespace: str | None = None
    visibility: str | None = None
    user_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    at: int = 0
    seq: int = 0


_COLUMNS = [events.c[one.name] for one in fields(Event)]


def write(tx: Transaction, *happened: Event) -> None:
    """Record events, in the transaction of what they speak of."""
    if not happened:
        return
    at = now_ms()
    tx.execute(
        sa.insert(events),
        [
            {
                "at": at,
                "kind": one.kind,
                "change": one.change,
                "target_id": one.target_id,
                "namespace": one.namespace,
                "visibility": one.visibility,
                "user_id": one.user_id,
                "data": dict(one.data),
            }
            for one in happened
        ],
    )


def after(tx: Transaction, seq: int, limit: int) -> Sequence[Event]:
    """Events after a number, in order."""
    query = sa.select(*_COLUMNS).where(events.c.seq > seq).order_by(events.c.seq).limit(limit)
    return [Event(*row) for row in tx.execute(query)]


def newest(tx: Transaction) -> int:
    """The number of the last event; 0 where there is none."""
    return tx.scalar(sa.select(sa.func.max(events.c.seq))) or 0


def oldest(tx: Transaction) -> int | None:
    """The number of the first event that is still kept."""
    return tx.scalar(sa.select(sa.func.min(events.c.seq)))


def restart(tx: Transaction) -> None:
    """Begin anew in a ledger that was restored: who resumes from what was sent before learns that it missed some."""
    last = newest(tx)
    tx.execute(sa.delete(events))
    mark = Event(JOB, "restored", "restore", at=now_ms(), seq=last + _LEAP)
    tx.execute(sa.insert(events).values(**asdict(mark)))


def trim(tx: Transaction, older_than: int, *, most: int = 100_000) -> int:
    """Remove events from before a time (ms), at most so many at once. Returns how many.

    The newest one stays: it tells what has been missed.
    """
    where = sa.and_(events.c.at < older_than, events.c.seq < newest(tx))
    last = tx.scalar(
        sa.select(sa.func.max(sa.select(events.c.seq).where(where).order_by(events.c.seq).limit(most).subquery().c.seq))
    )
    return tx.execute(sa.delete(events).where(where, events.c.seq <= last)).rowcount if last is not None else 0

"""Who did what to what, and why it was allowed: ids and reasons only, never content."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from gateway.ledger.database import Transaction, now_ms
from gateway.ledger.schema import audit


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One decision or mutation; `decision` is `allow` or `deny`."""

    action: str
    target_type: str
    target_id: str | None
    namespace: str | None
    decision: str
    reason: str
    request_id: str | None = None
    key_id: str | None = None
    actor_user_id: str | None = None
    actor_agent_id: str | None = None


def write(tx: Transaction, *entries: AuditEntry) -> None:
    """Add entries, in the transaction of what they speak of."""
    if entries:
        rows = [{name: getattr(entry, name) for name in AuditEntry.__slots__} | {"at": now_ms()} for entry in entries]
        tx.execute(sa.insert(audit), rows)


def entries_about(tx: Transaction, target_id: str) -> list[AuditEntry]:
    """The entries about one target, oldest first."""
    columns = [audit.c[name] for name in AuditEntry.__slots__]
    rows = tx.execute(sa.select(*columns).where(audit.c.target_id == target_id).order_by(audit.c.seq))
    return [AuditEntry(*row) for row in rows]

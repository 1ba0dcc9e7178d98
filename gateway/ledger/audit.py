"""Who did what to what, and why it was allowed: ids and reasons only, never content. A hash chain shows tampering."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import meta
from gateway.ledger.database import Ledger, Transaction
from gateway.ledger.schema import audit
from gateway.notes.secrets import mask

_ANCHOR = "audit.anchor"
_BATCH = 5_000


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


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry of the audit, with its number and time (ms since 1970 UTC)."""

    seq: int
    at: int
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are asked for; None means "any"."""

    actor_user_id: str | None = None
    action: str | None = None
    actor_agent_id: str | None = None
    target_id: str | None = None
    namespace: str | None = None
    decision: str | None = None


# What a caller chose freely: an id that does not exist, a header.
_FROM_OUTSIDE = ("target_id", "namespace", "request_id")
_FIELDS = [field.name for field in fields(AuditEntry)]
_COLUMNS = [audit.c.seq, audit.c.at, *(audit.c[name] for name in _FIELDS)]


def write(tx: Transaction, *entries: AuditEntry) -> None:
    """Add entries, in the transaction of what they speak of."""
    if not entries:
        return
    before = tx.scalar(sa.select(audit.c.hash).order_by(audit.c.seq.desc()).limit(1)) or meta.get(tx, _ANCHOR) or ""
    rows: list[dict[str, Any]] = []
    for entry in entries:
        values: dict[str, Any] = asdict(entry) | {"at": now_ms()}
        for name in _FROM_OUTSIDE:
            values[name] = values[name] and mask(values[name], personal=False)  # an id may well be a number
        before = _link(before, values)
        rows.append(values | {"hash": before})
    tx.execute(sa.insert(audit), rows)


def page(tx: Transaction, wanted: AuditFilter, *, limit: int, before: int | None) -> list[StoredEntry]:
    """Entries, newest first; `before` is the number of the last one of the page before."""
    where = [audit.c[name] == value for name, value in asdict(wanted).items() if value is not None]
    if before is not None:
        where.append(audit.c.seq < before)
    rows = tx.execute(sa.select(*_COLUMNS).where(*where).order_by(audit.c.seq.desc()).limit(limit))
    return [_stored(tuple(row)) for row in rows]


def _stored(row: tuple[Any, ...]) -> StoredEntry:
    return StoredEntry(row[0], row[1], AuditEntry(*row[2:]))


def entries_about(tx: Transaction, target_id: str) -> list[AuditEntry]:
    """The entries about one target, oldest first."""
    found = page(tx, AuditFilter(target_id=target_id), limit=10_000, before=None)
    return [stored.entry for stored in reversed(found)]


def verify(tx: Transaction) -> int | None:
    """Walk the hash chain. Returns the number of the first entry that does not fit, None when all do."""
    before = meta.get(tx, _ANCHOR) or ""
    last = 0
    while True:
        query = sa.select(*_COLUMNS, audit.c.hash).where(audit.c.seq > last).order_by(audit.c.seq).limit(_BATCH)
        rows: list[tuple[Any, ...]] = [tuple(row) for row in tx.execute(query)]
        if not rows:
            return None
        for row in rows:
            values = dict(zip(_FIELDS, row[2:-1], strict=True)) | {"at": row[1]}
            if row[-1] is None:  # written before the chain began
                last = row[0]
                continue
            before = _link(before, values)
            if before != row[-1]:
                return int(row[0])
            last = row[0]


def trim(tx: Transaction, older_than: int, *, most: int | None = None) -> int:
    """Remove entries from before a time (ms), the oldest `most` of them; the chain goes on from the last one removed.
    Returns how many."""
    old = sa.select(audit.c.seq, audit.c.hash).where(audit.c.at < older_than)
    if most is None:
        rows = tx.execute(old.order_by(audit.c.seq.desc()).limit(1)).all()
    else:
        rows = tx.execute(old.order_by(audit.c.seq).limit(most)).all()
    if not rows:
        return 0
    row = rows[-1]
    if row[1] is not None:
        meta.put(tx, _ANCHOR, row[1])
    return tx.execute(sa.delete(audit).where(audit.c.seq <= row[0])).rowcount


class ReadBuffer:
    """Entries about reads, written at most a second later and at the stop: a search must not wait for a disk."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._entries: list[AuditEntry] = []
        self._lock = threading.Lock()

    def add(self, *entries: AuditEntry) -> None:
        """Remember entries."""
        with self._lock:
            self._entries.extend(entries)

    def flush(self) -> int:
        """Write what is remembered. Returns how many entries."""
        with self._lock:
            entries, self._entries = self._entries, []
        if entries:
            with self._ledger.write() as tx:
                write(tx, *entries)
        return len(entries)


def _link(before: str, values: dict[str, Any]) -> str:
    text = json.dumps([before, *(values[name] for name in ("at", *_FIELDS))], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()

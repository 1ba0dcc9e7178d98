"""What each sandbox was last brought to: the note's version, and the hash of the text that both sides had then."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema_users import sandbox_files


@dataclass(frozen=True, slots=True)
class Synced:
    """One file of a sandbox as of its last sync.

    Attributes:
        etag: of the note in the vault then.
        text_hash: of the text that sandbox and vault had in common then.
    """

    name: str
    etag: str
    text_hash: str


def synced(tx: Transaction, user_id: str, sandbox_id: str) -> dict[str, Synced]:
    """The files of a sandbox by name."""
    columns = [sandbox_files.c[name] for name in Synced.__slots__]
    where = (sandbox_files.c.user_id == user_id, sandbox_files.c.sandbox_id == sandbox_id)
    return {row.name: Synced(*row) for row in tx.execute(sa.select(*columns).where(*where))}


def remember(tx: Transaction, user_id: str, sandbox_id: str, file: Synced) -> None:
    """Sandbox and vault have the same text now."""
    row = {"user_id": user_id, "sandbox_id": sandbox_id, "name": file.name, "etag": file.etag}
    row |= {"text_hash": file.text_hash}
    upsert(tx, sandbox_files, [row | {"synced_at": now_ms()}], keys=["user_id", "sandbox_id", "name"])

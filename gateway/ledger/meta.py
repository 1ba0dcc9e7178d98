"""Single facts about this installation: the identity of the index, the confirmed deletions, the vault it belongs to."""

from __future__ import annotations

import sqlalchemy as sa

from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema import meta

INDEX_IDENTITY = "index.identity"
INDEX_GENERATION = "index.generation"
VAULT_ROOT = "vault.root"


def get(tx: Transaction, key: str) -> str | None:
    """The value of a fact, None when it was never set."""
    return tx.scalar(sa.select(meta.c.value).where(meta.c.key == key))


def put(tx: Transaction, key: str, value: str) -> None:
    """Set a fact."""
    upsert(tx, meta, [{"key": key, "value": value}], keys=["key"])


def remove(tx: Transaction, key: str) -> None:
    """Unset a fact."""
    tx.execute(sa.delete(meta).where(meta.c.key == key))

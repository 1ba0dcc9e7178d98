"""Single facts about this installation: its index, its vault, the rules that its notes were judged by."""

from __future__ import annotations

import sqlalchemy as sa

from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema import meta

INDEX_IDENTITY = "index.identity"
INDEX_GENERATION = "index.generation"
# The model of the index, as JSON; the identity above is only its slug.
INDEX_MODEL = "index.model"
# The index that a change of model fills: its slug and generation.
INDEX_MIGRATION = "index.migration"
VAULT_ROOT = "vault.root"
NOTE_RULES = "notes.rules"
REVIEW_HEAD = "review.head"
REMOTE_HEAD = "remote.head"


def get(tx: Transaction, key: str) -> str | None:
    """The value of a fact, None when it was never set."""
    return tx.scalar(sa.select(meta.c.value).where(meta.c.key == key))


def put(tx: Transaction, key: str, value: str) -> None:
    """Set a fact."""
    upsert(tx, meta, [{"key": key, "value": value}], keys=["key"])


def remove(tx: Transaction, key: str) -> None:
    """Unset a fact."""
    tx.execute(sa.delete(meta).where(meta.c.key == key))

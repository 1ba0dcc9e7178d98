"""First answers, kept so that a retried request gets the same one (draft-ietf-httpapi-idempotency-key-header)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.errors import Busy, IdempotencyMismatch
from gateway.ledger.database import Transaction
from gateway.ledger.schema import idempotency


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that carries an idempotency key."""

    principal_id: str
    key: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """What the first request was told."""

    status: int
    answer: dict[str, Any]


def recall(tx: Transaction, claim: Claim) -> FirstAnswer | None:
    """The answer to an earlier request with this key.

    Raises:
        IdempotencyMismatch: the earlier request was another one.
        Busy: the earlier request has not been answered yet.
    """
    row = tx.execute(sa.select(idempotency).where(*_same(claim))).first()
    if row is None:
        return None
    if row.request_hash != claim.request_hash:
        raise IdempotencyMismatch(
            "This idempotency key was used for a different request.",
            field="Idempotency-Key",
            advice="Use a new key for a new request.",
        )
    if row.status is None:
        raise Busy("The first request with this key is still being worked on.", advice="Try again in a moment.")
    return FirstAnswer(row.status, row.answer)


def reserve(tx: Transaction, claim: Claim, intent_id: str) -> None:
    """Tie a key to the intent that will answer it, in the intent's own transaction."""
    tx.execute(
        sa.insert(idempotency).values(
            principal_id=claim.principal_id,
            key=claim.key,
            request_hash=claim.request_hash,
            intent_id=intent_id,
            created_at=now_ms(),
        )
    )


def answer(tx: Transaction, intent_id: str, status: int, body: dict[str, Any]) -> None:
    """Keep the answer of an intent, in the transaction that settles it."""
    tx.execute(sa.update(idempotency).where(idempotency.c.intent_id == intent_id).values(status=status, answer=body))


def amend(tx: Transaction, claim: Claim, body: dict[str, Any]) -> None:
    """Keep a fuller answer than could be told when the intent settled."""
    tx.execute(sa.update(idempotency).where(*_same(claim)).values(answer=body))


def abandon(tx: Transaction, intent_id: str) -> None:
    """The intent came to nothing: the key may be used again."""
    tx.execute(sa.delete(idempotency).where(idempotency.c.intent_id == intent_id, idempotency.c.status.is_(None)))


def expire(tx: Transaction, older_than: int, *, most: int = 100_000) -> int:
    """Forget answers from before a time (ms since 1970 UTC), at most so many at once. Returns how many."""
    key = sa.tuple_(idempotency.c.principal_id, idempotency.c.key)
    old = sa.select(idempotency.c.principal_id, idempotency.c.key).where(idempotency.c.created_at < older_than)
    return tx.execute(sa.delete(idempotency).where(key.in_(old.limit(most)))).rowcount


def _same(claim: Claim) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return (idempotency.c.principal_id == claim.principal_id, idempotency.c.key == claim.key)

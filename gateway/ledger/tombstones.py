"""What was forgotten: domain-separated SHA-256 of canonical provenance and of normalised content, never the text.

Design section 8; seed 002 on forgetting. A tombstone holds within one scope, which is a namespace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema import tombstones

CONTENT = "content"
PROVENANCE = "provenance"
PROPOSAL = "proposal"


def fingerprint(domain: str, scope: str, value: str) -> str:
    """The hash under which `value` is suppressed in `scope`; lengths are part of it, so that no two inputs collide."""
    digest = hashlib.sha256()
    for part in ("memory-gateway/tombstone/1", domain, scope, value):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def bury(tx: Transaction, scope: str, *, content_hash: str, provenance: Collection[str]) -> None:
    """Suppress a content and its provenances in a scope; one that was released is buried again."""
    values = [(CONTENT, content_hash), *((PROVENANCE, value) for value in provenance)]
    rows = [
        {
            "scope": scope,
            "domain": domain,
            "hash": fingerprint(domain, scope, value),
            "created_at": now_ms(),
            "released_at": None,
            "released_by": None,
        }
        for domain, value in values
    ]
    upsert(tx, tombstones, rows, keys=["scope", "domain", "hash"])


def buried(tx: Transaction, scope: str, *, content_hash: str, provenance: Collection[str] = ()) -> bool:
    """Whether this content, or one of these provenances, is suppressed in the scope."""
    return bool(_matching(tx, scope, content_hash, provenance))


def any_buried(tx: Transaction) -> bool:
    """Whether there is any tombstone in force; spares the look-ups where there is none."""
    return tx.execute(sa.select(tombstones.c.id).where(tombstones.c.released_at.is_(None)).limit(1)).first() is not None


def release(tx: Transaction, scope: str, *, content_hash: str, provenance: Collection[str] = (), by: str) -> int:
    """A user's explicit write lifts the suppression. Returns how many tombstones were released."""
    ids = _matching(tx, scope, content_hash, provenance, proposal=f":{content_hash}")
    if ids:
        tx.execute(sa.update(tombstones).where(tombstones.c.id.in_(ids)).values(released_at=now_ms(), released_by=by))
    return len(ids)


def bury_proposal(tx: Transaction, scope: str, key: str) -> None:
    """A person rejected a proposal: it is not made again. Their own notes with the same text are not concerned."""
    row = {
        "scope": scope,
        "domain": PROPOSAL,
        "hash": fingerprint(PROPOSAL, scope, key),
        "created_at": now_ms(),
        "released_at": None,
        "released_by": None,
    }
    upsert(tx, tombstones, [row], keys=["scope", "domain", "hash"])


def proposal_buried(tx: Transaction, scope: str, key: str) -> bool:
    """Whether the same proposal was rejected for this scope."""
    query = sa.select(tombstones.c.id).where(
        tombstones.c.scope == scope,
        tombstones.c.domain == PROPOSAL,
        tombstones.c.hash == fingerprint(PROPOSAL, scope, key),
        tombstones.c.released_at.is_(None),
    )
    return tx.execute(query).first() is not None


def _matching(
    tx: Transaction, scope: str, content_hash: str, provenance: Collection[str], *, proposal: str | None = None
) -> list[int]:
    hashes = [
        fingerprint(CONTENT, scope, content_hash),
        *([fingerprint(PROPOSAL, scope, proposal)] if proposal is not None else ()),
        *(fingerprint(PROVENANCE, scope, value) for value in provenance),
    ]
    query = sa.select(tombstones.c.id).where(
        tombstones.c.scope == scope, tombstones.c.hash.in_(hashes), tombstones.c.released_at.is_(None)
    )
    return list(tx.scalars(query))

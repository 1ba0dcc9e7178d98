"""What was forgotten: domain-separated SHA-256 of canonical provenance and of normalised content, never the text.

Design section 8; seed 002 on forgetting. A content is suppressed within one scope, which is a namespace: the same words
of another user are theirs. An id is suppressed everywhere: under any name and in any folder it is the same memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import registry
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.registry import NoteRow
from gateway.ledger.schema import notes, tombstones
from gateway.notes.text import content_hash as hash_of_content

CONTENT = "content"
PROVENANCE = "provenance"
PROPOSAL = "proposal"
_EVERYWHERE = ""
_NOTHING = hash_of_content("")
_KEYS = ["scope", "domain", "hash"]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One tombstone as it is kept; times in ms since 1970 UTC."""

    scope: str
    domain: str
    hash: str
    created_at: int
    released_at: int | None
    released_by: str | None

    @property
    def told_at(self) -> int:
        """When it last said something."""
        return max(self.created_at, self.released_at or 0)


_COLUMNS = [tombstones.c[field.name] for field in fields(Tombstone)]


def fingerprint(domain: str, scope: str, value: str) -> str:
    """The hash under which `value` is suppressed in `scope`; lengths are part of it, so that no two inputs collide."""
    digest = hashlib.sha256()
    for part in ("memory-gateway/tombstone/1", domain, scope, value):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def bury(tx: Transaction, scope: str, *, content_hash: str | None, memory_id: str) -> None:
    """Suppress a memory's id, and its content in its scope; what was released is buried again.

    Args:
        content_hash: None where the content is nobody's in particular, such as an empty form.
    """
    wanted = [(PROVENANCE, _EVERYWHERE, f"id:{memory_id}")]
    if content_hash is not None and content_hash != _NOTHING:
        wanted.append((CONTENT, scope, content_hash))
    upsert(tx, tombstones, [_row(*one) for one in wanted], keys=_KEYS)


def buried(tx: Transaction, scope: str, *, content_hash: str, memory_id: str | None = None) -> bool:
    """Whether this content is suppressed in the scope, or the memory of this id anywhere."""
    return bool(_matching(tx, scope, content_hash, memory_id))


def any_buried(tx: Transaction) -> bool:
    """Whether there is any tombstone in force; spares the look-ups where there is none."""
    return tx.execute(sa.select(tombstones.c.id).where(tombstones.c.released_at.is_(None)).limit(1)).first() is not None


def release(tx: Transaction, scope: str, *, content_hash: str, memory_id: str, by: str) -> int:
    """A user's explicit write lifts the suppression. Returns how many tombstones were released."""
    ids = _matching(tx, scope, content_hash, memory_id, proposal=f":{content_hash}")
    if ids:
        tx.execute(sa.update(tombstones).where(tombstones.c.id.in_(ids)).values(released_at=now_ms(), released_by=by))
    return len(ids)


def bury_proposal(tx: Transaction, scope: str, key: str) -> None:
    """A person rejected a proposal: it is not made again. Their own notes with the same text are not concerned."""
    upsert(tx, tombstones, [_row(PROPOSAL, scope, key)], keys=_KEYS)


def proposal_buried(tx: Transaction, scope: str, key: str) -> bool:
    """Whether the same proposal was rejected for this scope."""
    query = sa.select(tombstones.c.id).where(
        tombstones.c.scope == scope,
        tombstones.c.domain == PROPOSAL,
        tombstones.c.hash == fingerprint(PROPOSAL, scope, key),
        tombstones.c.released_at.is_(None),
    )
    return tx.execute(query).first() is not None


def everything(tx: Transaction) -> list[Tombstone]:
    """All tombstones, released ones too: to be taken over by a restored ledger."""
    return [Tombstone(*row) for row in tx.execute(sa.select(*_COLUMNS))]


def take_over(tx: Transaction, others: Sequence[Tombstone]) -> int:
    """Take over what another ledger knows to be forgotten, where it knows it later. Returns how many."""
    known = {(one.scope, one.domain, one.hash): one.told_at for one in everything(tx)}
    later = [one for one in others if one.told_at > known.get((one.scope, one.domain, one.hash), -1)]
    upsert(tx, tombstones, [asdict(one) for one in later], keys=_KEYS)
    return len(later)


def suppressed(tx: Transaction) -> list[NoteRow]:
    """The memories that a tombstone in force suppresses though they are known."""
    if not any_buried(tx):
        return []
    query = sa.select(notes.c.note_id, notes.c.namespace, notes.c.content_hash)
    gone = [
        row.note_id
        for row in tx.execute(query).all()
        if buried(tx, row.namespace, content_hash=row.content_hash, memory_id=row.note_id)
    ]
    return list(registry.notes_by_id(tx, gone).values())


def drop_scope(tx: Transaction, start: str) -> int:
    """Forget what was forgotten in namespaces that begin like this: who comes after begins clean. Returns how many."""
    return tx.execute(sa.delete(tombstones).where(tombstones.c.scope.startswith(start, autoescape=True))).rowcount


def _row(domain: str, scope: str, value: str) -> dict[str, object]:
    return {
        "scope": scope,
        "domain": domain,
        "hash": fingerprint(domain, scope, value),
        "created_at": now_ms(),
        "released_at": None,
        "released_by": None,
    }


def _matching(
    tx: Transaction, scope: str, content_hash: str, memory_id: str | None, *, proposal: str | None = None
) -> list[int]:
    hashes = [fingerprint(CONTENT, scope, content_hash)]
    if proposal is not None:
        hashes.append(fingerprint(PROPOSAL, scope, proposal))
    if memory_id is not None:
        # Ids buried before they held everywhere are known by their namespace.
        hashes += [fingerprint(PROVENANCE, where, f"id:{memory_id}") for where in (_EVERYWHERE, scope)]
    query = sa.select(tombstones.c.id).where(
        tombstones.c.scope.in_([scope, _EVERYWHERE]), tombstones.c.hash.in_(hashes), tombstones.c.released_at.is_(None)
    )
    return list(tx.scalars(query))

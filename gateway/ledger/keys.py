"""API keys: 256 random bits, stored as a SHA-256, shown once. A prefix tells them apart."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.ledger.database import Transaction, now_ms
from gateway.ledger.schema import api_keys

KEY_START = "mgk_"
_PREFIX_LENGTH = len(KEY_START) + 6


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored key, without its secret; times in ms since 1970 UTC."""

    id: str
    prefix: str
    role: str
    user_id: str | None
    agent_id: str | None
    label: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None


def issue(
    tx: Transaction, *, role: str, label: str, user_id: str | None = None, agent_id: str | None = None
) -> tuple[ApiKey, str]:
    """Make a key. The second value is the secret, to be shown once and never stored."""
    secret = KEY_START + secrets.token_urlsafe(32)
    key = ApiKey(
        f"key_{uuid.uuid4().hex}", secret[:_PREFIX_LENGTH], role, user_id, agent_id, label, now_ms(), None, None, None
    )
    values = {name: getattr(key, name) for name in ApiKey.__slots__}
    tx.execute(sa.insert(api_keys).values(hash=_hash(secret), **values))
    return key, secret


def find(tx: Transaction, secret: str) -> ApiKey | None:
    """The valid key of this secret: known, not revoked, not expired.

    The hash is looked up by index, then compared in constant time; the secret itself never meets the database.
    """
    wanted = _hash(secret)
    row = tx.execute(sa.select(api_keys.c.hash, *_columns()).where(api_keys.c.hash == wanted)).first()
    if row is None or not hmac.compare_digest(row[0], wanted):
        return None
    key = ApiKey(*tuple(row)[1:])
    expired = key.expires_at is not None and key.expires_at <= now_ms()
    return None if key.revoked_at is not None or expired else key


def listed(tx: Transaction) -> list[ApiKey]:
    """All keys, oldest first, without secrets."""
    return [ApiKey(*row) for row in tx.execute(sa.select(*_columns()).order_by(api_keys.c.created_at))]


def revoke(tx: Transaction, key_id: str) -> bool:
    """End a key. Returns whether there was such a live key."""
    live = sa.and_(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    return tx.execute(sa.update(api_keys).where(live).values(revoked_at=now_ms())).rowcount > 0


def has_admin(tx: Transaction) -> bool:
    """Whether a live admin key exists."""
    live = sa.and_(api_keys.c.role == "admin", api_keys.c.revoked_at.is_(None))
    return tx.execute(sa.select(api_keys.c.id).where(live).limit(1)).first() is not None


def touch(tx: Transaction, key_ids: dict[str, int]) -> None:
    """Record when keys were last used: {key id: ms}."""
    for key_id, at in key_ids.items():
        tx.execute(sa.update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=at))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _columns() -> list[sa.Column[object]]:
    return [api_keys.c[name] for name in ApiKey.__slots__]

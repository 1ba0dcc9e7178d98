"""API keys: 256 random bits, stored as a SHA-256, shown once. A prefix tells them apart."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction
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
    workspace_ids: list[str]
    label: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key is to stand for; `expires_at` in ms since 1970 UTC."""

    role: str
    label: str
    user_id: str | None = None
    agent_id: str | None = None
    workspace_ids: tuple[str, ...] = ()
    expires_at: int | None = None


def issue(tx: Transaction, new: NewKey) -> tuple[ApiKey, str]:
    """Make a key. The second value is the secret, to be shown once and never stored."""
    secret = KEY_START + secrets.token_urlsafe(32)
    key = ApiKey(
        id=f"key_{uuid.uuid4().hex}",
        prefix=secret[:_PREFIX_LENGTH],
        role=new.role,
        user_id=new.user_id,
        agent_id=new.agent_id,
        workspace_ids=list(new.workspace_ids),
        label=new.label,
        created_at=now_ms(),
        expires_at=new.expires_at,
        revoked_at=None,
        last_used_at=None,
    )
    values = {name: getattr(key, name) for name in ApiKey.__slots__}
    tx.execute(sa.insert(api_keys).values(hash=_hash(secret), **values))
    return key, secret


def key_of_id(tx: Transaction, key_id: str) -> ApiKey | None:
    """The key of this id, live or not."""
    row = tx.execute(sa.select(*_columns()).where(api_keys.c.id == key_id)).first()
    return ApiKey(*row) if row else None


def revoke_for(tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None) -> int:
    """End all keys of a user or an agent. Returns how many."""
    column, value = (api_keys.c.user_id, user_id) if user_id is not None else (api_keys.c.agent_id, agent_id)
    live = sa.and_(column == value, api_keys.c.revoked_at.is_(None))
    return tx.execute(sa.update(api_keys).where(live).values(revoked_at=now_ms())).rowcount


def find(tx: Transaction, secret: str) -> ApiKey | None:
    """The valid key of this secret: known, not revoked, not expired.

    The hash is looked up by index, then compared in constant time; the secret itself never meets the database.
    """
    wanted = _hash(secret)
    row = tx.execute(sa.select(api_keys.c.hash, *_columns()).where(api_keys.c.hash == wanted)).first()
    if row is None or not hmac.compare_digest(row[0], wanted):
        return None
    return _if_live(ApiKey(*tuple(row)[1:]))


def live(tx: Transaction, key_id: str) -> ApiKey | None:
    """The valid key of this id: known, not revoked, not expired."""
    key = key_of_id(tx, key_id)
    return _if_live(key) if key is not None else None


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


def _if_live(key: ApiKey) -> ApiKey | None:
    expired = key.expires_at is not None and key.expires_at <= now_ms()
    return None if key.revoked_at is not None or expired else key


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _columns() -> list[sa.Column[Any]]:
    return [api_keys.c[name] for name in ApiKey.__slots__]

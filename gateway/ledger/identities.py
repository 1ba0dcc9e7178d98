"""Users. An id is unique without regard to case, since its folder may live on a case-insensitive disk."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.errors import AlreadyExists
from gateway.ledger.database import Transaction
from gateway.ledger.schema import users


@dataclass(frozen=True, slots=True)
class User:
    """A person whose memories are kept; times in ms since 1970 UTC."""

    id: str
    display_name: str
    status: str
    preferences: dict[str, Any]
    created_at: int
    updated_at: int


def id_key(identifier: str) -> str:
    """The form under which ids are compared."""
    return unicodedata.normalize("NFC", identifier).casefold()


def user(tx: Transaction, user_id: str) -> User | None:
    """The user of exactly this id."""
    row = tx.execute(sa.select(*_columns()).where(users.c.id == user_id)).first()
    return User(*row) if row else None


def add_user(tx: Transaction, user_id: str, display_name: str, preferences: dict[str, Any]) -> User:
    """Register a user.

    Raises:
        AlreadyExists: the id is taken, perhaps in another case.
    """
    taken = tx.scalar(sa.select(users.c.id).where(users.c.id_key == id_key(user_id)))
    if taken is not None:
        raise AlreadyExists(
            f"There is a user {taken!r} already.",
            field="user_id",
            advice="Ids differ in more than upper and lower case.",
        )
    at = now_ms()
    added = User(user_id, display_name, "active", preferences, at, at)
    tx.execute(
        sa.insert(users).values(
            id=added.id,
            id_key=id_key(added.id),
            display_name=added.display_name,
            status=added.status,
            preferences=added.preferences,
            created_at=at,
            updated_at=at,
        )
    )
    return added


def change_user(tx: Transaction, user_id: str, **values: Any) -> None:
    """Set columns of a user."""
    tx.execute(sa.update(users).where(users.c.id == user_id).values(updated_at=now_ms(), **values))


def user_taking_id(tx: Transaction, user_id: str) -> str | None:
    """The registered id that equals this one without regard to case, if any."""
    return tx.scalar(sa.select(users.c.id).where(users.c.id_key == id_key(user_id)))


def all_users(tx: Transaction) -> list[User]:
    """Everyone, by id."""
    return [User(*row) for row in tx.execute(sa.select(*_columns()).order_by(users.c.id))]


def _columns() -> list[sa.Column[Any]]:
    return [users.c[name] for name in User.__slots__]

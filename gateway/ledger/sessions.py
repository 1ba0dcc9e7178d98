"""Sessions, their episodes and the candidates taken from them. All ends with the session; the vault never sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema import candidates, episodes, sessions


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one user; ids are unique per user. Times in ms since 1970 UTC.

    Attributes:
        kind: `main`, or `subagent`: recalled into, never extracted from.
        status: `open` or `committed`; what is past `expires_at` counts as gone.
        cursor: the number (`seq`) of the last episode whose extraction has settled.
    """

    user_id: str
    id: str
    agent_id: str | None
    workspace_id: str | None
    kind: str
    status: str
    summary: str
    cursor: int
    created_at: int
    updated_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Episode:
    """One piece of a session; `seq` orders them."""

    seq: int
    id: str
    user_id: str
    session_id: str
    agent_id: str | None
    workspace_id: str | None
    content: str
    summary: str
    events: list[Any]
    tags: list[str]
    created_at: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """What might become a memory. `status`: `candidate`, `proposed`, `rejected`, or `promoted` (see `memory_id`)."""

    id: str
    user_id: str
    session_id: str
    agent_id: str | None
    workspace_id: str | None
    episode_ids: list[str]
    memory_type: str
    content: str
    namespace: str
    importance: float
    confidence: float
    status: str
    memory_id: str | None
    created_at: int


_SESSION = [sessions.c[field.name] for field in fields(Session)]
_EPISODE = [episodes.c[field.name] for field in fields(Episode)]
_CANDIDATE = [candidates.c[field.name] for field in fields(Candidate)]


def session(tx: Transaction, user_id: str, session_id: str, *, at: int) -> Session | None:
    """A session that has not expired at a time (ms)."""
    query = sa.select(*_SESSION).where(
        sessions.c.user_id == user_id, sessions.c.id == session_id, sessions.c.expires_at > at
    )
    row = tx.execute(query).first()
    return Session(*row) if row else None


def sessions_named(tx: Transaction, session_id: str, *, at: int) -> list[Session]:
    """The sessions of this id, of whatever user: for administrators."""
    query = sa.select(*_SESSION).where(sessions.c.id == session_id, sessions.c.expires_at > at)
    return [Session(*row) for row in tx.execute(query.order_by(sessions.c.user_id))]


def add_session(tx: Transaction, added: Session) -> None:
    """Register a session; one of the same id that has expired makes room, with all that it held."""
    tx.execute(sa.delete(sessions).where(sessions.c.user_id == added.user_id, sessions.c.id == added.id))
    tx.execute(sa.insert(sessions).values(**asdict(added)))


def change_session(tx: Transaction, user_id: str, session_id: str, **values: Any) -> None:
    """Set columns of a session."""
    where = sa.and_(sessions.c.user_id == user_id, sessions.c.id == session_id)
    tx.execute(sa.update(sessions).where(where).values(updated_at=now_ms(), **values))


def add_episode(tx: Transaction, added: Episode) -> int:
    """Append an episode. Returns its number."""
    values = {name: value for name, value in asdict(added).items() if name != "seq"}
    done = tx.execute(sa.insert(episodes).values(**values))
    key: Any = done.inserted_primary_key
    return int(key[0])


def episodes_of(
    tx: Transaction, user_id: str, session_id: str, *, after: int = 0, limit: int = 1_000, newest: bool = False
) -> list[Episode]:
    """Episodes of a session after a number, in order; with `newest` the last ones, newest first."""
    query = sa.select(*_EPISODE).where(
        episodes.c.user_id == user_id, episodes.c.session_id == session_id, episodes.c.seq > after
    )
    query = query.order_by(episodes.c.seq.desc() if newest else episodes.c.seq).limit(limit)
    return [Episode(*row) for row in tx.execute(query)]


def count_episodes(tx: Transaction, user_id: str, session_id: str) -> int:
    """How many episodes a session has."""
    where = sa.and_(episodes.c.user_id == user_id, episodes.c.session_id == session_id)
    return tx.scalar(sa.select(sa.func.count()).select_from(episodes).where(where)) or 0


def save_candidates(tx: Transaction, found: Sequence[Candidate]) -> None:
    """Keep candidates; one that is known already stays as it is."""
    for one in found:
        known = tx.scalar(sa.select(candidates.c.id).where(candidates.c.id == one.id))
        if known is None:
            upsert(tx, candidates, [asdict(one)], keys=["id"])


def candidates_of(tx: Transaction, user_id: str, session_id: str) -> list[Candidate]:
    """All candidates of a session, oldest first."""
    query = sa.select(*_CANDIDATE).where(candidates.c.user_id == user_id, candidates.c.session_id == session_id)
    return [Candidate(*row) for row in tx.execute(query.order_by(candidates.c.created_at, candidates.c.id))]


def promote(tx: Transaction, candidate_id: str, memory_id: str) -> None:
    """A candidate became a memory."""
    where = candidates.c.id == candidate_id
    tx.execute(sa.update(candidates).where(where).values(status="promoted", memory_id=memory_id))


def reject(tx: Transaction, candidate_id: str) -> None:
    """A person rejected what a candidate proposed."""
    tx.execute(sa.update(candidates).where(candidates.c.id == candidate_id).values(status="rejected"))


def await_review(tx: Transaction, candidate_id: str) -> None:
    """A candidate waits as a draft for a person's decision."""
    tx.execute(sa.update(candidates).where(candidates.c.id == candidate_id).values(status="proposed"))


def purge_expired(tx: Transaction, at: int, *, most: int = 10_000) -> int:
    """Delete sessions that expired before a time (ms), with their episodes and candidates, at most so many at once.
    Returns how many sessions."""
    key = sa.tuple_(sessions.c.user_id, sessions.c.id)
    expired = sa.select(sessions.c.user_id, sessions.c.id).where(sessions.c.expires_at <= at).limit(most)
    return tx.execute(sa.delete(sessions).where(key.in_(expired))).rowcount

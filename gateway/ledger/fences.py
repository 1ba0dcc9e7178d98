"""Fences: what is being cleared can be neither read nor written, from the transaction that orders it to its end.

Seed 002: a clear job fences its scope at once; DeepChat's rule, here for users, agents, workspaces and sessions.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from gateway.errors import BeingCleared
from gateway.ledger.database import Transaction
from gateway.ledger.jobs import OPEN
from gateway.ledger.schema_upkeep import jobs

CLEAR, RETIRE = "clear", "retire"
_DIRECTIVES = "directives"


@dataclass(frozen=True, slots=True)
class Fence:
    """One scope that is closed: `user`, `agent`, `workspace`, or a `session` of a user.

    Attributes:
        directives: whether standing directives are cleared too.
    """

    scope: str
    scope_id: str
    user_id: str | None
    directives: bool
    job_id: str = ""

    @property
    def start(self) -> str:
        """What every namespace of the scope begins with."""
        return f"{self.scope}/{self.scope_id}/"

    @property
    def kept(self) -> tuple[str, ...]:
        """Namespaces of the scope that stay as they are."""
        return () if self.directives or self.scope != "user" else (f"{self.start}{_DIRECTIVES}",)

    def covers(self, namespace: str, owner: str | None = None) -> bool:
        """Whether a namespace is closed; of a session only that of its user (`owner`)."""
        if not namespace.startswith(self.start) or namespace in self.kept:
            return False
        return self.scope != "session" or owner is None or owner == self.user_id


@dataclass(frozen=True, slots=True)
class Fences:
    """All scopes that are closed right now."""

    closed: tuple[Fence, ...] = ()

    def covers(self, namespace: str, owner: str | None = None) -> bool:
        """Whether a namespace is closed."""
        return any(fence.covers(namespace, owner) for fence in self.closed)

    def covers_session(self, user_id: str | None, session_id: str, agent_id: str | None) -> bool:
        """Whether a session is closed: it is being cleared itself, or with its user or agent."""
        named = {"user": user_id, "agent": agent_id}
        return any(
            named.get(fence.scope) == fence.scope_id or fence.covers(f"session/{session_id}/episodic", user_id)
            for fence in self.closed
        )


def active(tx: Transaction) -> Fences:
    """What is closed right now."""
    columns = (jobs.c.scope, jobs.c.scope_id, jobs.c.user_id, jobs.c.options, jobs.c.id)
    query = sa.select(*columns).where(jobs.c.status.in_(OPEN), jobs.c.kind.in_((CLEAR, RETIRE)))
    return Fences(
        tuple(
            Fence(scope, scope_id, user_id, bool(options.get("include_directives")), job_id)
            for scope, scope_id, user_id, options, job_id in tx.execute(query)
        )
    )


def being_cleared(namespace: str) -> BeingCleared:
    """The answer to a write into what is being cleared."""
    return BeingCleared(
        f"{namespace} is being cleared; nothing is written there until that is done.",
        field="namespace",
        advice="Wait until the job in GET /v1/jobs is done, then write again.",
    )

"""Agents and workspaces: who works for whom, and who shares what."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.errors import AlreadyExists
from gateway.ledger.database import Transaction
from gateway.ledger.identities import id_key
from gateway.ledger.schema import agents, workspaces


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of one user; `owner_user_id` None: found in the vault, and nobody's yet. Times in ms since 1970 UTC."""

    id: str
    name: str
    framework: str
    owner_user_id: str | None
    status: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """What users and agents share; `owner_user_id` None: found in the vault, and nobody's yet."""

    id: str
    name: str
    owner_user_id: str | None
    member_user_ids: list[str]
    allowed_agent_ids: list[str]
    status: str
    created_at: int
    updated_at: int

    def has_member(self, user_id: str | None) -> bool:
        """Whether a user belongs to it."""
        return user_id is not None and (user_id == self.owner_user_id or user_id in self.member_user_ids)


_AGENT = [agents.c[field.name] for field in fields(Agent)]
_WORKSPACE = [workspaces.c[field.name] for field in fields(Workspace)]


def agent(tx: Transaction, agent_id: str) -> Agent | None:
    """The agent of exactly this id."""
    row = tx.execute(sa.select(*_AGENT).where(agents.c.id == agent_id)).first()
    return Agent(*row) if row else None


def workspace(tx: Transaction, workspace_id: str) -> Workspace | None:
    """The workspace of exactly this id."""
    row = tx.execute(sa.select(*_WORKSPACE).where(workspaces.c.id == workspace_id)).first()
    return Workspace(*row) if row else None


def add_agent(tx: Transaction, agent_id: str, name: str, framework: str, owner_user_id: str | None) -> Agent:
    """Register an agent.

    Raises:
        AlreadyExists: the id is taken, perhaps in another case.
    """
    _check_free(tx, agents, agent_id, "agent")
    at = now_ms()
    added = Agent(agent_id, name, framework, owner_user_id, "active", at, at)
    tx.execute(sa.insert(agents).values(**_values(added)))
    return added


def add_workspace(
    tx: Transaction, workspace_id: str, *, name: str, owner: str | None, members: list[str], allowed: list[str]
) -> Workspace:
    """Register a workspace.

    Raises:
        AlreadyExists: the id is taken, perhaps in another case.
    """
    _check_free(tx, workspaces, workspace_id, "workspace")
    at = now_ms()
    added = Workspace(workspace_id, name, owner, members, allowed, "active", at, at)
    tx.execute(sa.insert(workspaces).values(**_values(added)))
    return added


def change_agent(tx: Transaction, agent_id: str, **values: Any) -> None:
    """Set columns of an agent."""
    tx.execute(sa.update(agents).where(agents.c.id == agent_id).values(updated_at=now_ms(), **values))


def change_workspace(tx: Transaction, workspace_id: str, **values: Any) -> None:
    """Set columns of a workspace."""
    tx.execute(sa.update(workspaces).where(workspaces.c.id == workspace_id).values(updated_at=now_ms(), **values))


def remove_agent(tx: Transaction, agent_id: str) -> bool:
    """Take an agent out. Its notes stay in the vault, readable by administrators only."""
    return tx.execute(sa.delete(agents).where(agents.c.id == agent_id)).rowcount > 0


def shut_out(tx: Transaction, agent_id: str) -> None:
    """No workspace lets an agent of this name in any more."""
    for one in all_workspaces(tx):
        if agent_id in one.allowed_agent_ids:
            allowed = [other for other in one.allowed_agent_ids if other != agent_id]
            change_workspace(tx, one.id, allowed_agent_ids=allowed)


def remove_workspace(tx: Transaction, workspace_id: str) -> bool:
    """Take a workspace out. Its notes stay in the vault, readable by administrators only."""
    return tx.execute(sa.delete(workspaces).where(workspaces.c.id == workspace_id)).rowcount > 0


def agents_of(tx: Transaction, owner_user_id: str | None) -> list[Agent]:
    """The agents of a user, or everybody's when None, by id."""
    query = sa.select(*_AGENT).order_by(agents.c.id)
    if owner_user_id is not None:
        query = query.where(agents.c.owner_user_id == owner_user_id)
    return [Agent(*row) for row in tx.execute(query)]


def all_workspaces(tx: Transaction) -> list[Workspace]:
    """All workspaces, by id."""
    return [Workspace(*row) for row in tx.execute(sa.select(*_WORKSPACE).order_by(workspaces.c.id))]


def _check_free(tx: Transaction, table: sa.Table, identifier: str, kind: str) -> None:
    taken = tx.scalar(sa.select(table.c.id).where(table.c.id_key == id_key(identifier)))
    if taken is not None:
        raise AlreadyExists(
            f"The {kind} id {identifier!r} is taken.",
            field=f"{kind}_id",
            advice="Ids differ in more than upper and lower case; choose another.",
        )


def _values(value: Agent | Workspace) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)} | {"id_key": id_key(value.id)}

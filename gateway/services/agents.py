"""Agents: who works for whom. A user keeps their own; an administrator everybody's."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.errors import NotAllowed
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, agents, audit, fences, keys
from gateway.ledger.agents import Agent
from gateway.notes.namespace import Namespace
from gateway.services.requests import AgentPatch, NewAgent
from gateway.services.secrets import check_request


def create(principal: Principal, parts: Parts, new: NewAgent) -> Agent:
    """Register an agent and make its folder.

    Raises:
        AlreadyExists: the id is taken.
        NotAllowed: the role may not do this.
        NotFound: the owner is unknown, or not the key's user.
        BeingCleared: an agent of this name is being taken out.
        SecretFound: the name holds a secret.
    """
    decision = keeper(principal)
    context = guard.identify(parts.ledger, principal, user_id=new.owner_user_id)
    owner = context.user_id or parts.settings.vault.owner
    check_request(parts, new)
    with parts.ledger.write() as tx:
        home = str(Namespace("agent", new.agent_id, "memory"))
        if fences.active(tx).covers(home):  # one of this name is being taken out
            raise fences.being_cleared(home)
        added = agents.add_agent(tx, new.agent_id, new.name or new.agent_id, new.framework, owner)
        _audit(tx, principal, "create_agent", added.id, decision)
    (parts.files.root / "Agents" / added.id / "Memory").mkdir(parents=True, exist_ok=True)
    return added


def get(principal: Principal, parts: Parts, agent_id: str) -> Agent:
    """An agent of the key's user.

    Raises:
        NotFound: there is none, or it is another's.
    """
    with parts.ledger.read() as tx:
        found = agents.agent(tx, agent_id)
    own = found is not None and (principal.is_admin or found.owner_user_id == principal.user_id)
    if found is None or not own or principal.agent_id not in (None, agent_id):
        raise guard.no_agent(agent_id)
    return found


def listed(principal: Principal, parts: Parts) -> list[Agent]:
    """The agents of the key's user; an agent sees itself; an administrator sees all."""
    with parts.ledger.read() as tx:
        found = agents.agents_of(tx, None if principal.is_admin else principal.user_id or "")
    return [one for one in found if principal.agent_id in (None, one.id)]


def change(principal: Principal, parts: Parts, agent_id: str, patch: AgentPatch) -> Agent:
    """Change an agent.

    Raises:
        NotAllowed, NotFound, SecretFound: as for `create` and `get`.
    """
    decision = keeper(principal)
    get(principal, parts, agent_id)
    check_request(parts, patch)
    values = {name: value for name, value in patch.model_dump(exclude_unset=True).items() if value is not None}
    with parts.ledger.write() as tx:
        agents.change_agent(tx, agent_id, **values)
        if values.get("status") == "disabled":
            keys.revoke_for(tx, agent_id=agent_id)
        _audit(tx, principal, "change_agent", agent_id, decision)
    return get(principal, parts, agent_id)


def keeper(principal: Principal) -> Decision:
    """Whether the role may keep agents, workspaces and keys at all.

    Raises:
        NotAllowed: agents and readers may not.
    """
    if principal.role not in ("admin", "user"):
        raise NotAllowed("This key may not do that.", advice="Use a key with the right role.")
    return Decision(True, "admin" if principal.is_admin else "own")


def _audit(tx: Transaction, principal: Principal, action: str, agent_id: str, decision: Decision) -> None:
    audit.write(tx, guard.entry(principal, action, "agent", target_id=agent_id, decision=decision))

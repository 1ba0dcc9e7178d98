"""In whose name something is written: the author that git and the audit name."""

from __future__ import annotations

from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.importer.parts import Parts
from gateway.ledger.journal import Actor


def actor_of(context: Context) -> Actor:
    """Who is named as the author of the commit: the agent, else the user, else the administrator."""
    agent, user = context.agent_id, context.user_id
    if agent:
        return Actor("agent", agent, f"{agent}@agents.memory.local", f"agent:{agent}")
    if user:
        return _user(user)
    return Actor("user", "administrator", "admin@memory.local", "admin")


def person_of(principal: Principal, parts: Parts) -> Actor:
    """The person who decides: the key's user; without one, the vault's owner, for whom an administrator acts."""
    return _user(principal.user_id or parts.settings.vault.owner)


def _user(user_id: str) -> Actor:
    return Actor("user", user_id, f"{user_id}@users.memory.local", f"user:{user_id}")

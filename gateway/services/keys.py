"""API keys: made, listed and ended by administrators, and by users for themselves and their agents."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import Invalid, NotAllowed, NotFound
from gateway.importer.parts import Parts
from gateway.ledger import agents, audit, identities, keys
from gateway.ledger.keys import ApiKey, NewKey
from gateway.services.agents import keeper
from gateway.services.requests import NewApiKey
from gateway.services.secrets import check_request


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with its secret, which is shown this once."""

    key: ApiKey
    secret: str


def issue(principal: Principal, parts: Parts, new: NewApiKey) -> IssuedKey:
    """Make a key.

    Raises:
        Invalid: the ids do not fit the role, or the key would have expired already.
        NotAllowed: a user may make keys for themselves and their agents only, and none for administrators.
        NotFound: an id is unknown, or not the key's.
        SecretFound: the label holds a secret.
    """
    decision = keeper(principal)
    if new.role == "admin" and not principal.is_admin:
        raise NotAllowed("Only administrators make keys for administrators.", field="role")
    check_request(parts, new)
    expires = int(new.expires_at.timestamp() * 1000) if new.expires_at else None
    if expires is not None and expires <= now_ms():
        raise Invalid("The key would have expired already.", field="expires_at")
    user_id = new.user_id if principal.is_admin else new.user_id or principal.user_id
    _check_shape(new, user_id)
    with parts.ledger.write() as tx:
        _check_ids(tx, principal, new, user_id)
        made = NewKey(new.role, new.label, user_id, new.agent_id, new.workspace_ids, expires)
        key, secret = keys.issue(tx, made)
        audit.write(tx, guard.entry(principal, "create_key", "key", target_id=key.id, decision=decision))
    return IssuedKey(key, secret)


def listed(principal: Principal, parts: Parts) -> list[ApiKey]:
    """The keys of the key's user, without secrets; an administrator sees all.

    Raises:
        NotAllowed: agents and readers see no keys.
    """
    keeper(principal)
    with parts.ledger.read() as tx:
        return [key for key in keys.listed(tx) if _own(principal, key)]


def revoke(principal: Principal, parts: Parts, key_id: str) -> None:
    """End a key at once.

    Raises:
        NotFound: there is no such live key, or it is another's.
        NotAllowed: agents and readers end no keys.
    """
    decision = keeper(principal)
    missing = NotFound(f"There is no live key {key_id!r}.", field="key_id")
    with parts.ledger.write() as tx:
        key = keys.key_of_id(tx, key_id)
        if key is None or not _own(principal, key) or not keys.revoke(tx, key_id):
            raise missing
        audit.write(tx, guard.entry(principal, "revoke_key", "key", target_id=key_id, decision=decision))


def _own(principal: Principal, key: ApiKey) -> bool:
    return principal.is_admin or (key.user_id == principal.user_id and key.role != "admin")


def _check_shape(new: NewApiKey, user_id: str | None) -> None:
    if new.role != "admin" and user_id is None:
        raise Invalid(f"A key with the role `{new.role}` needs `user_id`.", field="user_id")
    if new.role == "agent" and new.agent_id is None:
        raise Invalid("A key with the role `agent` needs `agent_id`.", field="agent_id")
    if new.role in ("admin", "user") and new.agent_id is not None:
        raise Invalid(f"A key with the role `{new.role}` has no `agent_id`.", field="agent_id")


def _check_ids(tx: keys.Transaction, principal: Principal, new: NewApiKey, user_id: str | None) -> None:
    if user_id is not None:
        own = principal.is_admin or user_id == principal.user_id
        if not own or identities.user(tx, user_id) is None:
            raise guard.no_user(user_id)
    if new.agent_id is not None:
        agent = agents.agent(tx, new.agent_id)
        if agent is None or agent.owner_user_id != user_id or agent.status != "active":
            raise guard.no_agent(new.agent_id)
    for workspace_id in new.workspace_ids:
        workspace = agents.workspace(tx, workspace_id)
        if workspace is None or not (workspace.has_member(user_id) or new.role == "admin"):
            raise guard.no_workspace(workspace_id)

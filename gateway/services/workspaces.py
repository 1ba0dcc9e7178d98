"""Workspaces: what several users and agents share. Its owner keeps it; members see it."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.errors import Invalid, NotAllowed
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, agents, audit, identities
from gateway.ledger.agents import Workspace
from gateway.services.agents import keeper
from gateway.services.requests import NewWorkspace, WorkspacePatch
from gateway.services.secrets import check_request


def create(principal: Principal, parts: Parts, new: NewWorkspace) -> Workspace:
    """Register a workspace and make its folder. Its owner is a member.

    Raises:
        AlreadyExists: the id is taken.
        Invalid: a member or agent is unknown.
        NotAllowed, NotFound: the role may not; the owner is unknown or not the key's user.
        SecretFound: the name holds a secret.
    """
    decision = keeper(principal)
    context = guard.identify(parts.ledger, principal, user_id=new.owner_user_id)
    owner = context.user_id or parts.settings.vault.owner
    check_request(parts, new)
    members = list(dict.fromkeys([owner, *new.member_user_ids]))
    with parts.ledger.write() as tx:
        _check_known(tx, members, list(new.allowed_agent_ids))
        added = agents.add_workspace(
            tx,
            new.workspace_id,
            name=new.name or new.workspace_id,
            owner=owner,
            members=members,
            allowed=list(new.allowed_agent_ids),
        )
        _audit(tx, principal, "create_workspace", added.id, decision)
    (parts.files.root / "Workspaces" / added.id / "Shared").mkdir(parents=True, exist_ok=True)
    return added


def get(principal: Principal, parts: Parts, workspace_id: str) -> Workspace:
    """A workspace that the key may use.

    Raises:
        NotFound: there is none, or the key's user is no member, or the key is for others.
    """
    with parts.ledger.read() as tx:
        found = agents.workspace(tx, workspace_id)
    if found is None or not _sees(principal, found):
        raise guard.no_workspace(workspace_id)
    return found


def listed(principal: Principal, parts: Parts) -> list[Workspace]:
    """The workspaces that the key may use; an administrator sees all."""
    with parts.ledger.read() as tx:
        return [one for one in agents.all_workspaces(tx) if _sees(principal, one)]


def change(principal: Principal, parts: Parts, workspace_id: str, patch: WorkspacePatch) -> Workspace:
    """Change a workspace; who is taken out stops seeing it at once.

    Raises:
        Invalid: a member or agent is unknown.
        SecretFound: the name holds a secret.
        NotAllowed: the key is not its owner's.
        NotFound: as for `get`.
    """
    decision = keeper(principal)
    present = kept(principal, parts, workspace_id)
    check_request(parts, patch)
    values = {name: value for name, value in patch.model_dump(exclude_unset=True).items() if value is not None}
    for name in ("member_user_ids", "allowed_agent_ids"):
        if name in values:
            values[name] = list(values[name])
    if "member_user_ids" in values and present.owner_user_id is not None:
        values["member_user_ids"] = list(dict.fromkeys([present.owner_user_id, *values["member_user_ids"]]))
    with parts.ledger.write() as tx:
        _check_known(tx, values.get("member_user_ids", []), values.get("allowed_agent_ids", []))
        agents.change_workspace(tx, workspace_id, **values)
        _audit(tx, principal, "change_workspace", workspace_id, decision)
    return get(principal, parts, workspace_id)


def remove(principal: Principal, parts: Parts, workspace_id: str) -> None:
    """Take a workspace out. Its notes stay in the vault, for administrators only.

    Raises:
        NotAllowed, NotFound: as for `change`.
    """
    decision = keeper(principal)
    kept(principal, parts, workspace_id)
    with parts.ledger.write() as tx:
        agents.remove_workspace(tx, workspace_id)
        _audit(tx, principal, "remove_workspace", workspace_id, decision)


def _sees(principal: Principal, found: Workspace) -> bool:
    if principal.is_admin:
        return True
    allowed = principal.agent_id is None or principal.agent_id in found.allowed_agent_ids
    keyed = not principal.workspace_ids or found.id in principal.workspace_ids
    return found.has_member(principal.user_id) and allowed and keyed


def kept(principal: Principal, parts: Parts, workspace_id: str) -> Workspace:
    """A workspace that the principal may change.

    Raises:
        NotFound: there is none, or none for this principal.
        NotAllowed: the key is not its owner's.
    """
    found = get(principal, parts, workspace_id)
    if not principal.is_admin and found.owner_user_id != principal.user_id:
        raise NotAllowed("Only its owner changes a workspace.", advice="Ask its owner.")
    return found


def _check_known(tx: Transaction, members: list[str], agent_ids: list[str]) -> None:
    for user_id in members:
        if identities.user(tx, user_id) is None:
            raise Invalid(f"There is no user {user_id!r}.", field="member_user_ids")
    for agent_id in agent_ids:
        if agents.agent(tx, agent_id) is None:
            raise Invalid(f"There is no agent {agent_id!r}.", field="allowed_agent_ids")


def _audit(tx: Transaction, principal: Principal, action: str, workspace_id: str, decision: Decision) -> None:
    audit.write(tx, guard.entry(principal, action, "workspace", target_id=workspace_id, decision=decision))

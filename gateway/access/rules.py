"""One pure function decides who may do what: four visibilities, seven namespaces (design section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.access.principal import Principal
from gateway.ledger.agents import Workspace
from gateway.notes.namespace import Namespace

Action = Literal["read", "write", "decide", "operate"]

# What an agent may write directly. The fixed notes of a user are the user's own; directives are never an agent's.
_AGENT_ROOMS = frozenset({"long_term", "memory", "experience", "shared", "episodic"})


@dataclass(frozen=True, slots=True)
class Resource:
    """What is asked for, and the facts about it that the decision needs.

    Attributes:
        namespace: where it stands; None: the gateway itself.
        visibility: the one in force, no wider than the namespace's own.
        owner_user_id: the user it belongs to: of a user's namespace, of the agent, of the session.
        agent_id: the agent it belongs to.
        workspace: the workspace it is shared in, if that is registered.
    """

    namespace: Namespace | None
    visibility: str | None = None
    owner_user_id: str | None = None
    agent_id: str | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow or deny, and why. `role`: the role may never do this; otherwise it is a question of whose it is."""

    allowed: bool
    reason: str
    role: bool = False


OPERATIONS = Resource(None)
# Stands for what does not exist: decided like another's memory, so that both cost and answer the same.
NOWHERE = Resource(Namespace("user", "nobody-at-all", "long_term"), "private", "nobody-at-all")


def decide(principal: Principal, action: Action, resource: Resource) -> Decision:
    """Whether a principal may do something with a resource. No rule means no.

    Whether the role may do such a thing at all is decided first and without a look at the resource, so that the answer
    says nothing about what exists.
    """
    if principal.is_admin:
        return Decision(True, "admin")
    namespace = resource.namespace
    if action == "operate" or namespace is None:
        return Decision(False, "only administrators operate the gateway", role=True)
    if action == "write" and principal.role == "reader":
        return Decision(False, "readers do not write", role=True)
    if action == "write" and namespace.kind == "global":
        return Decision(False, "only administrators write what everybody reads", role=True)
    if action == "decide":
        return _may_decide(principal, namespace, resource)
    inside = _in_namespace(principal, namespace, resource)
    if not inside.allowed:
        return inside
    if action == "write" and principal.agent_id is not None and namespace.room not in _AGENT_ROOMS:
        return Decision(False, f"agents do not write {namespace.room}", role=True)
    return _by_visibility(principal, inside, resource)


def _may_decide(principal: Principal, namespace: Namespace, resource: Resource) -> Decision:
    """Drafts are decided by people: the user whose memory it is, a member of the workspace, the owner of the agent."""
    if principal.agent_id is not None or principal.role in ("agent", "reader"):
        return Decision(False, "only people decide drafts", role=True)
    if namespace.kind == "global":  # answered like a missing one: what is proposed there is nobody else's business
        return Decision(False, "only administrators write what everybody reads")
    if namespace.kind == "agent":
        own = _same_user(principal, resource)
        return Decision(own, "owner of the agent" if own else "another's agent")
    return _in_namespace(principal, namespace, resource)


def _in_namespace(principal: Principal, namespace: Namespace, resource: Resource) -> Decision:
    match namespace.kind:
        case "global":
            return Decision(True, "global")
        case "user":
            own = principal.user_id is not None and principal.user_id == namespace.owner
            return Decision(own, "private owner" if own else "another user's")
        case "agent":
            own = _same_user(principal, resource) and principal.agent_id == namespace.owner
            return Decision(own, "own agent" if own else "another agent's")
        case "workspace":
            return _in_workspace(principal, namespace.owner, resource.workspace)
        case "session":
            own = _same_user(principal, resource) and resource.agent_id in (None, principal.agent_id)
            own = own or (_same_user(principal, resource) and principal.agent_id is None)
            return Decision(own, "own session" if own else "another's session")


def _in_workspace(principal: Principal, workspace_id: str, workspace: Workspace | None) -> Decision:
    if workspace is None or workspace.id != workspace_id or workspace.status != "active":
        return Decision(False, "no such workspace")
    if principal.workspace_ids and workspace_id not in principal.workspace_ids:
        return Decision(False, "the key is not for this workspace")
    if not workspace.has_member(principal.user_id):
        return Decision(False, "no member of the workspace")
    if principal.agent_id is not None and principal.agent_id not in workspace.allowed_agent_ids:
        return Decision(False, "the agent is not allowed in the workspace")
    return Decision(True, "member of the workspace")


def _by_visibility(principal: Principal, inside: Decision, resource: Resource) -> Decision:
    """A note may be narrower than its folder: private to its user, or to one agent."""
    match resource.visibility:
        case "private" if resource.owner_user_id is None or resource.owner_user_id != principal.user_id:
            return Decision(False, "private to another user")
        case "agent-only" if resource.agent_id != principal.agent_id or not _same_user(principal, resource):
            return Decision(False, "for another agent only")
        case "workspace-shared" if resource.workspace is None:
            return Decision(False, "shared in no known workspace")
        case _:
            return inside


def _same_user(principal: Principal, resource: Resource) -> bool:
    return principal.user_id is not None and principal.user_id == resource.owner_user_id

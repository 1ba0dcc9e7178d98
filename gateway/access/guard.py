"""The guard: gathers the facts, asks `decide`, audits, and raises. Services call it before anything else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.access.principal import Principal
from gateway.access.rules import OPERATIONS, Action, Decision, Resource, decide
from gateway.errors import NotAllowed, NotFound
from gateway.ledger import Ledger, Transaction, agents, audit, fences, identities
from gateway.ledger.agents import Workspace
from gateway.ledger.audit import AuditEntry
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import Namespace, parse_namespace
from gateway.notes.paths import check_id


@dataclass(frozen=True, slots=True)
class Context:
    """Whom a request is about, in agreement with its key.

    Attributes:
        principal: the key's principal, with the agent that its user named.
        user_id: None where an administrator named nobody.
        workspace: the named workspace; None when none was named, or an administrator named an unregistered one.
    """

    principal: Principal
    user_id: str | None
    agent_id: str | None
    workspace_id: str | None
    workspace: Workspace | None


def identify(
    ledger: Ledger,
    principal: Principal,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    workspace_id: str | None = None,
) -> Context:
    """Bring the ids of a request into agreement with its key. What is not given is the key's own.

    An administrator may name agents and workspaces that are not registered, but no unknown user.

    Raises:
        Invalid: an id is empty or malformed.
        NotFound: an id is unknown, or not the key's: both answer alike.
    """
    for value, field in ((user_id, "user_id"), (agent_id, "agent_id"), (workspace_id, "workspace_id")):
        if value is not None:
            check_id(value, field)
    try:
        with ledger.read() as tx:
            user = _user(tx, principal, user_id)
            agent = _agent(tx, principal, user, agent_id)
            acting = replace(principal, agent_id=agent) if not principal.is_admin else principal
            workspace = _workspace(tx, acting, workspace_id)
    except NotFound as error:
        refusal = Decision(False, f"{error.field} is not the key's, or unknown")
        with ledger.write() as tx:
            audit.write(tx, entry(principal, "identify", "id", decision=refusal))
        raise
    return Context(acting, user, agent, workspace_id, workspace)


def check(ledger: Ledger, principal: Principal, action: Action, resource: Resource, missing: NotFound) -> Decision:
    """The decision, where it allows. A denial is audited at once.

    Args:
        missing: raised where the resource is another's, so that it answers exactly like one that does not exist.

    Raises:
        NotAllowed: the role may never do this.
        NotFound: it is another's, or is being cleared.
        BeingCleared: a write where everything is being cleared.
    """
    decision = decide(principal, action, resource)
    if decision.allowed:
        _check_open(ledger, action, resource, missing)
        return decision
    namespace = str(resource.namespace) if resource.namespace else None
    with ledger.write() as tx:
        kind = "memory" if namespace else "gateway"
        audit.write(tx, entry(principal, action, kind, namespace=namespace, decision=decision))
    if decision.role:
        raise NotAllowed("This key may not do that.", advice="Use a key with the right role.")
    raise missing


def _check_open(ledger: Ledger, action: Action, resource: Resource, missing: NotFound) -> None:
    """What is being cleared is gone for readers, and closed for writers; for administrators too (seed 002)."""
    namespace = resource.namespace
    if namespace is None:
        return
    with ledger.read() as tx:
        closed = fences.active(tx)
    if not closed.closed:
        return
    if namespace.kind == "session":
        shut = closed.covers_session(resource.owner_user_id, namespace.owner, resource.agent_id)
    else:
        shut = closed.covers(str(namespace))
    if shut and action == "write":
        raise fences.being_cleared(str(namespace))
    if shut:
        raise missing


def operate(ledger: Ledger, principal: Principal) -> Decision:
    """For what concerns the gateway as a whole.

    Raises:
        NotAllowed: the principal is no administrator.
    """
    return check(ledger, principal, "operate", OPERATIONS, NotFound("There is nothing here."))


def resource_of(tx: Transaction, row: NoteRow) -> Resource:
    """What the decision needs to know of a memory."""
    namespace = parse_namespace(row.namespace)
    return replace(resource_at(tx, namespace), visibility=row.visibility)


def resource_at(tx: Transaction, namespace: Namespace) -> Resource:
    """What the decision needs to know of a namespace."""
    owner, workspace = namespace.user_id, None
    if namespace.agent_id is not None:
        agent = agents.agent(tx, namespace.agent_id)
        owner = agent.owner_user_id if agent else None
    elif namespace.workspace_id is not None:
        workspace = agents.workspace(tx, namespace.workspace_id)
    return Resource(namespace, namespace.default_visibility, owner, namespace.agent_id, workspace)


def entry(
    principal: Principal,
    action: str,
    target_type: str,
    *,
    decision: Decision,
    target_id: str | None = None,
    namespace: str | None = None,
) -> AuditEntry:
    """The audit's entry of a decision."""
    return AuditEntry(
        action=action,
        target_type=target_type,
        target_id=target_id,
        namespace=namespace,
        decision="allow" if decision.allowed else "deny",
        reason=decision.reason,
        request_id=principal.request_id,
        key_id=principal.key_id,
        actor_user_id=principal.user_id,
        actor_agent_id=principal.agent_id,
    )


def no_user(user_id: str) -> NotFound:
    """The answer for a user that does not exist, or is none of the key's business."""
    return NotFound(f"There is no user {user_id!r}.", field="user_id", advice="Make the user: POST /v1/users.")


def no_agent(agent_id: str) -> NotFound:
    """The answer for an agent that does not exist, or is another's."""
    return NotFound(f"There is no agent {agent_id!r}.", field="agent_id", advice="Make the agent: POST /v1/agents.")


def no_workspace(workspace_id: str) -> NotFound:
    """The answer for a workspace that does not exist, or has other members."""
    return NotFound(
        f"There is no workspace {workspace_id!r}.",
        field="workspace_id",
        advice="Make the workspace: POST /v1/workspaces.",
    )


def _user(tx: Transaction, principal: Principal, user_id: str | None) -> str | None:
    if user_id is None:
        return principal.user_id
    own = principal.is_admin or user_id == principal.user_id
    if not own or identities.user(tx, user_id) is None:
        raise no_user(user_id)
    return user_id


def _agent(tx: Transaction, principal: Principal, user_id: str | None, agent_id: str | None) -> str | None:
    if agent_id is None:
        return principal.agent_id
    if principal.is_admin or agent_id == principal.agent_id:
        return agent_id
    known = agents.agent(tx, agent_id)
    owned = known is not None and known.owner_user_id == user_id and user_id is not None
    if principal.agent_id is not None or not owned:
        raise no_agent(agent_id)
    return agent_id


def _workspace(tx: Transaction, acting: Principal, workspace_id: str | None) -> Workspace | None:
    if workspace_id is None:
        return None
    found = agents.workspace(tx, workspace_id)
    resource = Resource(Namespace("workspace", workspace_id, "shared"), None, None, None, found)
    if not decide(acting, "read", resource).allowed:
        raise no_workspace(workspace_id)
    return found

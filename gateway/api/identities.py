"""`/v1/users`, `/v1/agents`, `/v1/workspaces`, `/v1/keys`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar import Request, Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.ledger.agents import Agent, Workspace
from gateway.ledger.identities import User
from gateway.ledger.keys import ApiKey
from gateway.services import agents, clearing, keys, profiles, users, workspaces
from gateway.services.profiles import ProfileRecord
from gateway.services.records import text_time
from gateway.services.requests import AgentPatch, NewAgent, NewApiKey, NewUser, NewWorkspace, UserPatch, WorkspacePatch

Http = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class UserRecord:
    """A user as seed 004 section B has it."""

    id: str
    display_name: str
    status: str
    profile_namespace: str
    preferences: dict[str, Any]
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent and whose it is."""

    id: str
    name: str
    framework: str
    owner_user_id: str | None
    status: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """A workspace, its members and the agents allowed in it."""

    id: str
    name: str
    owner_user_id: str | None
    member_user_ids: list[str]
    allowed_agent_ids: list[str]
    status: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key without its secret; `prefix` tells which it is."""

    id: str
    prefix: str
    role: str
    user_id: str | None
    agent_id: str | None
    workspace_ids: list[str]
    label: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


@dataclass(frozen=True, slots=True)
class NewKeyRecord:
    """A new key with its secret, which is shown this once and kept nowhere."""

    id: str
    key: str
    prefix: str
    role: str
    user_id: str | None
    agent_id: str | None
    workspace_ids: list[str]
    expires_at: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed."""

    deleted: bool
    id: str


@post("/v1/users", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_user(request: Http, data: JSONBody[NewUser]) -> UserRecord:
    """Register a user."""
    return _user(users.create(principal_of(request), gateway_of(request).parts, data))


@get("/v1/users", responses=ERRORS, sync_to_thread=True)
def list_users(request: Http) -> list[UserRecord]:
    """All users for an administrator; oneself for everybody else."""
    return [_user(one) for one in users.listed(principal_of(request), gateway_of(request).parts)]


@get("/v1/users/{user_id:str}", responses=ERRORS, sync_to_thread=True)
def get_user(request: Http, user_id: FromPath[str]) -> UserRecord:
    """One user."""
    return _user(users.get(principal_of(request), gateway_of(request).parts, user_id))


@patch("/v1/users/{user_id:str}", responses=ERRORS, sync_to_thread=True)
def change_user(request: Http, user_id: FromPath[str], data: JSONBody[UserPatch]) -> UserRecord:
    """Change a user's name or preferences."""
    return _user(users.change(principal_of(request), gateway_of(request).parts, user_id, data))


@get("/v1/users/{user_id:str}/profile", responses=ERRORS, sync_to_thread=True)
def get_profile(request: Http, user_id: FromPath[str]) -> ProfileRecord:
    """What is stable about a user: from `Profile.md` and `Preferences.md`, which people edit."""
    return profiles.get(principal_of(request), gateway_of(request).parts, user_id)


@post("/v1/agents", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_agent(request: Http, data: JSONBody[NewAgent]) -> AgentRecord:
    """Register an agent of a user."""
    return _agent(agents.create(principal_of(request), gateway_of(request).parts, data))


@get("/v1/agents", responses=ERRORS, sync_to_thread=True)
def list_agents(request: Http) -> list[AgentRecord]:
    """One's own agents; all of them for an administrator."""
    return [_agent(one) for one in agents.listed(principal_of(request), gateway_of(request).parts)]


@get("/v1/agents/{agent_id:str}", responses=ERRORS, sync_to_thread=True)
def get_agent(request: Http, agent_id: FromPath[str]) -> AgentRecord:
    """One agent."""
    return _agent(agents.get(principal_of(request), gateway_of(request).parts, agent_id))


@patch("/v1/agents/{agent_id:str}", responses=ERRORS, sync_to_thread=True)
def change_agent(request: Http, agent_id: FromPath[str], data: JSONBody[AgentPatch]) -> AgentRecord:
    """Change an agent; disabling it ends its keys."""
    return _agent(agents.change(principal_of(request), gateway_of(request).parts, agent_id, data))


@delete("/v1/agents/{agent_id:str}", responses=ERRORS, status_code=200, sync_to_thread=True)
def remove_agent(request: Http, agent_id: FromPath[str]) -> Response[Removed]:
    """Take an agent out, end its keys, and clear all that it knew (the job is named in `Location`)."""
    job = clearing.retire(principal_of(request), gateway_of(request).parts, agent_id)
    return Response(Removed(True, agent_id), headers={"Location": f"/v1/jobs/{job.id}"})


@post("/v1/workspaces", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_workspace(request: Http, data: JSONBody[NewWorkspace]) -> WorkspaceRecord:
    """Register a workspace."""
    return _workspace(workspaces.create(principal_of(request), gateway_of(request).parts, data))


@get("/v1/workspaces", responses=ERRORS, sync_to_thread=True)
def list_workspaces(request: Http) -> list[WorkspaceRecord]:
    """The workspaces that the key may use; all of them for an administrator."""
    return [_workspace(one) for one in workspaces.listed(principal_of(request), gateway_of(request).parts)]


@get("/v1/workspaces/{workspace_id:str}", responses=ERRORS, sync_to_thread=True)
def get_workspace(request: Http, workspace_id: FromPath[str]) -> WorkspaceRecord:
    """One workspace."""
    return _workspace(workspaces.get(principal_of(request), gateway_of(request).parts, workspace_id))


@patch("/v1/workspaces/{workspace_id:str}", responses=ERRORS, sync_to_thread=True)
def change_workspace(request: Http, workspace_id: FromPath[str], data: JSONBody[WorkspacePatch]) -> WorkspaceRecord:
    """Change a workspace; who is taken out stops seeing it at once."""
    return _workspace(workspaces.change(principal_of(request), gateway_of(request).parts, workspace_id, data))


@delete("/v1/workspaces/{workspace_id:str}", responses=ERRORS, status_code=200, sync_to_thread=True)
def remove_workspace(request: Http, workspace_id: FromPath[str]) -> Removed:
    """Take a workspace out."""
    workspaces.remove(principal_of(request), gateway_of(request).parts, workspace_id)
    return Removed(True, workspace_id)


@post("/v1/keys", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_key(request: Http, data: JSONBody[NewApiKey]) -> NewKeyRecord:
    """Make a key. Its secret is in this answer and nowhere else."""
    made = keys.issue(principal_of(request), gateway_of(request).parts, data)
    key = made.key
    return NewKeyRecord(
        key.id,
        made.secret,
        key.prefix,
        key.role,
        key.user_id,
        key.agent_id,
        key.workspace_ids,
        text_time(key.expires_at),
    )


@get("/v1/keys", responses=ERRORS, sync_to_thread=True)
def list_keys(request: Http) -> list[KeyRecord]:
    """One's own keys, without secrets; all of them for an administrator."""
    return [_key(one) for one in keys.listed(principal_of(request), gateway_of(request).parts)]


@delete("/v1/keys/{key_id:str}", responses=ERRORS, status_code=200, sync_to_thread=True)
def revoke_key(request: Http, key_id: FromPath[str]) -> Removed:
    """End a key at once."""
    keys.revoke(principal_of(request), gateway_of(request).parts, key_id)
    return Removed(True, key_id)


def _user(user: User) -> UserRecord:
    return UserRecord(
        user.id,
        user.display_name,
        user.status,
        users.profile_namespace(user.id),
        user.preferences,
        text_time(user.created_at) or "",
        text_time(user.updated_at) or "",
    )


def _agent(agent: Agent) -> AgentRecord:
    return AgentRecord(
        agent.id,
        agent.name,
        agent.framework,
        agent.owner_user_id,
        agent.status,
        text_time(agent.created_at) or "",
        text_time(agent.updated_at) or "",
    )


def _workspace(workspace: Workspace) -> WorkspaceRecord:
    return WorkspaceRecord(
        workspace.id,
        workspace.name,
        workspace.owner_user_id,
        workspace.member_user_ids,
        workspace.allowed_agent_ids,
        workspace.status,
        text_time(workspace.created_at) or "",
        text_time(workspace.updated_at) or "",
    )


def _key(key: ApiKey) -> KeyRecord:
    return KeyRecord(
        key.id,
        key.prefix,
        key.role,
        key.user_id,
        key.agent_id,
        key.workspace_ids,
        key.label,
        text_time(key.created_at) or "",
        text_time(key.expires_at),
        text_time(key.revoked_at),
        text_time(key.last_used_at),
    )


ROUTES = [
    create_user,
    list_users,
    get_user,
    change_user,
    get_profile,
    create_agent,
    list_agents,
    get_agent,
    change_agent,
    remove_agent,
    create_workspace,
    list_workspaces,
    get_workspace,
    change_workspace,
    remove_workspace,
    create_key,
    list_keys,
    revoke_key,
]

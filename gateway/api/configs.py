"""`/api/config` and `/v1/sandboxes`: agent files, skills and sandboxes of a user (seed 000)."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.api.structured import ETAG, IN_REVIEW, IfMatch
from gateway.services import agent_files, sandboxes, skill_configs
from gateway.services.agent_files import AgentFile, NewText, WrittenFile
from gateway.services.records import InReview
from gateway.services.requests import Precondition
from gateway.services.sandboxes import SandboxAnswer, SandboxSync
from gateway.services.skill_configs import SkillList, SkillSwitch, Switched
from gateway.services.structured import ANY

Http = Request[Any, Any, Any]


@get("/api/config/agent-files/{name:str}", responses=ERRORS, response_headers=[ETAG], sync_to_thread=True)
def get_agent_file(request: Http, name: FromPath[str], user_id: FromQuery[str | None] = None) -> Response[AgentFile]:
    """An agent file: `user`, `soul` or `memory`."""
    found, etag = agent_files.get(principal_of(request), gateway_of(request).parts, name, user_id=user_id)
    return Response(found, headers={"ETag": f'"{etag}"'})


@put("/api/config/agent-files/{name:str}", responses=IN_REVIEW, response_headers=[ETAG], sync_to_thread=True)
def put_agent_file(
    request: Http,
    name: FromPath[str],
    data: JSONBody[NewText],
    *,
    user_id: FromQuery[str | None] = None,
    if_match: IfMatch = None,
) -> Response[WrittenFile]:
    """Replace the text of an agent file. 202 where an agent can only propose it."""
    given = if_match is not None or data.expected_version is not None
    done = agent_files.put(
        principal_of(request),
        gateway_of(request).parts,
        name,
        data,
        user_id=user_id,
        precondition=Precondition.of(if_match, data.expected_version) if given else ANY,
    )
    if isinstance(done, InReview):
        return Response[Any](done, status_code=202, headers={"Location": f"/v1/reviews/{done.review.id}"})
    written, etag = done
    return Response(written, headers={"ETag": f'"{etag}"'})


@get("/api/config/skills", responses=ERRORS, sync_to_thread=True)
def list_user_skills(request: Http, user_id: FromQuery[str | None] = None) -> SkillList:
    """All skills, and which of them are on for the key's user."""
    return skill_configs.listed(principal_of(request), gateway_of(request).parts, user_id=user_id)


@put("/api/config/skills/{skill_name:str}", responses=ERRORS, sync_to_thread=True)
def switch_skill(
    request: Http, skill_name: FromPath[str], data: JSONBody[SkillSwitch], user_id: FromQuery[str | None] = None
) -> Switched:
    """Switch a skill on or off for the key's user."""
    return skill_configs.switch(principal_of(request), gateway_of(request).parts, skill_name, data, user_id=user_id)


@post("/v1/sandboxes/{sandbox_id:str}/sync", responses=ERRORS, status_code=200, sync_to_thread=True)
def sync_sandbox(request: Http, sandbox_id: FromPath[str], data: JSONBody[SandboxSync]) -> SandboxAnswer:
    """Bring the agent files in a sandbox and those in the vault to the same text."""
    return sandboxes.sync(principal_of(request), gateway_of(request).parts, sandbox_id, data)


ROUTES = [sync_sandbox, get_agent_file, put_agent_file, list_user_skills, switch_skill]

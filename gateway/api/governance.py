"""`/v1/namespaces`, `/v1/audit`, `/v1/skills`, feedback"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Request, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.ledger.audit import AuditFilter
from gateway.services import auditing, feedback, namespaces, skills
from gateway.services.namespaces import NamespaceRecord
from gateway.services.records import text_time
from gateway.services.requests import Feedback
from gateway.services.skills import SkillRecord

Http = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One entry: who, what, on what, decided how and why. No content."""

    id: int
    at: str
    action: str
    target_type: str
    target_id: str | None
    namespace: str | None
    decision: str
    reason: str
    actor_user_id: str | None
    actor_agent_id: str | None
    key_id: str | None
    request_id: str | None


@dataclass(frozen=True, slots=True)
class ChainState:
    """Whether the audit's hash chain holds; `broken_at` is the first entry that does not fit."""

    intact: bool
    broken_at: int | None


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """The answer of seed 004 section D."""

    status: str
    memory_id: str
    feedback: str


@get("/v1/namespaces", responses=ERRORS, sync_to_thread=True)
def list_namespaces(
    request: Http,
    *,
    user_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    workspace_id: FromQuery[str | None] = None,
    session_id: FromQuery[str | None] = None,
) -> list[NamespaceRecord]:
    """The namespaces of a context."""
    return namespaces.listed(
        principal_of(request),
        gateway_of(request).parts,
        user_id=user_id,
        agent_id=agent_id,
        workspace_id=workspace_id,
        session_id=session_id,
    )


@get("/v1/audit", responses=ERRORS, sync_to_thread=True)
def list_audit(
    request: Http,
    *,
    user_id: FromQuery[str | None] = None,
    action: FromQuery[str | None] = None,
    target_id: FromQuery[str | None] = None,
    namespace: FromQuery[str | None] = None,
    decision: FromQuery[str | None] = None,
    before: Annotated[int | None, QueryParameter(ge=0, le=2**53)] = None,
    limit: Annotated[int, QueryParameter(ge=1)] = 50,
) -> list[AuditRecord]:
    """Audit entries, newest first: one's own, or everybody's for an administrator. `before` pages on."""
    wanted = AuditFilter(
        actor_user_id=user_id, action=action, target_id=target_id, namespace=namespace, decision=decision
    )
    found = auditing.page(principal_of(request), gateway_of(request).parts, wanted, limit=limit, before=before)
    return [
        AuditRecord(
            id=one.seq,
            at=text_time(one.at) or "",
            action=one.entry.action,
            target_type=one.entry.target_type,
            target_id=one.entry.target_id,
            namespace=one.entry.namespace,
            decision=one.entry.decision,
            reason=one.entry.reason,
            actor_user_id=one.entry.actor_user_id,
            actor_agent_id=one.entry.actor_agent_id,
            key_id=one.entry.key_id,
            request_id=one.entry.request_id,
        )
        for one in found
    ]


@get("/v1/audit/verify", responses=ERRORS, sync_to_thread=True)
def verify_audit(request: Http) -> ChainState:
    """Walk the audit's hash chain."""
    broken = auditing.verify(principal_of(request), gateway_of(request).parts)
    return ChainState(broken is None, broken)


@get("/v1/skills", responses=ERRORS, sync_to_thread=True)
def list_skills(request: Http) -> list[SkillRecord]:
    """The ten skills, and which of them write long-term memory."""
    return skills.listed(principal_of(request))


@post("/v1/memory/{memory_id:str}/feedback", responses=ERRORS, status_code=200, sync_to_thread=True)
def give_feedback(request: Http, memory_id: FromPath[str], data: JSONBody[Feedback]) -> FeedbackGiven:
    """Judge a memory; an `incorrect` one is no longer recalled."""
    feedback.give(principal_of(request), gateway_of(request).parts, memory_id, data)
    return FeedbackGiven("ok", memory_id, data.feedback)


ROUTES = [list_namespaces, list_audit, verify_audit, list_skills, give_feedback]

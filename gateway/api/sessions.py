"""`/v1/sessions` and `/v1/episodes`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Request, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.ledger.sessions import Episode, Session
from gateway.services import sessions
from gateway.services.records import text_time
from gateway.services.requests import CommitSession, NewEpisode, NewSession
from gateway.services.sessions import Committed

Http = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as seed 004 section B has it; `cursor` is the number of the last episode that was taken in."""

    id: str
    user_id: str
    agent_id: str | None
    workspace_id: str | None
    namespace: str
    kind: str
    status: str
    summary: str
    cursor: int
    created_at: str
    updated_at: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """An episode; `seq` orders the episodes of a session."""

    id: str
    seq: int
    session_id: str
    user_id: str
    agent_id: str | None
    workspace_id: str | None
    namespace: str
    content: str
    summary: str
    events: list[Any]
    tags: list[str]
    created_at: str


@dataclass(frozen=True, slots=True)
class Episodes:
    """Episodes in order; `next_after` goes on where the page ends, None at the end."""

    episodes: list[EpisodeRecord]
    next_after: int | None


@post("/v1/sessions", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_session(request: Http, data: JSONBody[NewSession]) -> SessionRecord:
    """Open a session; it ends by itself."""
    return _session(sessions.create(principal_of(request), gateway_of(request).parts, data))


@get("/v1/sessions/{session_id:str}", responses=ERRORS, sync_to_thread=True)
def get_session(
    request: Http,
    session_id: FromPath[str],
    *,
    user_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
) -> SessionRecord:
    """A live session."""
    asked = {"user_id": user_id, "agent_id": agent_id}
    return _session(sessions.get(principal_of(request), gateway_of(request).parts, session_id, **asked))


@get("/v1/sessions/{session_id:str}/episodes", responses=ERRORS, sync_to_thread=True)
def list_episodes(
    request: Http,
    session_id: FromPath[str],
    *,
    user_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    after: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1)] = 50,
) -> Episodes:
    """Episodes of a session after a number, in order."""
    found = sessions.episodes(
        principal_of(request),
        gateway_of(request).parts,
        session_id,
        user_id=user_id,
        agent_id=agent_id,
        after=after,
        limit=limit,
    )
    return Episodes([_episode(one) for one in found], found[-1].seq if len(found) == limit else None)


@post("/v1/episodes", responses=ERRORS, status_code=201, sync_to_thread=True)
def create_episode(request: Http, data: JSONBody[NewEpisode]) -> EpisodeRecord:
    """Append to a session; one that does not exist is opened."""
    return _episode(sessions.add_episode(principal_of(request), gateway_of(request).parts, data))


@post("/v1/sessions/{session_id:str}/commit", responses=ERRORS, status_code=200, sync_to_thread=True)
def commit_session(request: Http, session_id: FromPath[str], data: JSONBody[CommitSession]) -> Committed:
    """Summarise a session, take candidates from it, and let through what policy allows. Repeating it is safe."""
    gateway = gateway_of(request)
    return sessions.commit_session(principal_of(request), gateway.parts, session_id, data, gateway.model)


def _session(session: Session) -> SessionRecord:
    return SessionRecord(
        id=session.id,
        user_id=session.user_id,
        agent_id=session.agent_id,
        workspace_id=session.workspace_id,
        namespace=f"session/{session.id}/episodic",
        kind=session.kind,
        status=session.status,
        summary=session.summary,
        cursor=session.cursor,
        created_at=text_time(session.created_at) or "",
        updated_at=text_time(session.updated_at) or "",
        expires_at=text_time(session.expires_at) or "",
    )


def _episode(episode: Episode) -> EpisodeRecord:
    return EpisodeRecord(
        id=episode.id,
        seq=episode.seq,
        session_id=episode.session_id,
        user_id=episode.user_id,
        agent_id=episode.agent_id,
        workspace_id=episode.workspace_id,
        namespace=f"session/{episode.session_id}/episodic",
        content=episode.content,
        summary=episode.summary,
        events=episode.events,
        tags=episode.tags,
        created_at=text_time(episode.created_at) or "",
    )


ROUTES = [create_session, get_session, list_episodes, create_episode, commit_session]

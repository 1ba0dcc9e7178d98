"""Sessions: short-term memory with an end. Episodes never reach the vault; a commit lets through what is worth it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision, Resource
from gateway.clock import now_ms
from gateway.errors import AlreadyExists, GatewayError, Invalid, NotFound
from gateway.importer.parts import Parts
from gateway.ledger import audit, dirty, reviews, sessions
from gateway.ledger.sessions import Episode, Session
from gateway.llm import LanguageModel
from gateway.notes.namespace import Namespace
from gateway.services import candidates, paging
from gateway.services.candidates import SUBAGENT, LetThrough, Outcome, Promoted, Taking
from gateway.services.records import ReviewReference
from gateway.services.requests import CommitSession, NewEpisode, NewSession
from gateway.services.secrets import masked
from gateway.services.skills_enabled import require
from gateway.skills.ingest import RawMaterial, ingest
from gateway.skills.summarize import ToSummarize, summarize


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: `candidates` counts what stays one; `held` says why something could not be written.

    `reviews` are the drafts of what an agent inferred: a person decides whether they become memories.
    """

    session_id: str
    episodes: int
    promoted: list[Promoted]
    reviews: list[ReviewReference]
    candidates: int
    held: list[str]
    summary: str
    cursor: int


def create(principal: Principal, parts: Parts, new: NewSession) -> Session:
    """Open a session.

    Raises:
        AlreadyExists: the user has a live session of this id.
        Invalid: it would live too long, or has ended before it began.
    """
    context = _context(principal, parts, new.user_id, new.agent_id, new.workspace_id)
    session_id = new.session_id or f"sess_{uuid.uuid4().hex[:24]}"
    decision = _may_write(context, parts, session_id)
    at = now_ms()
    added = Session(
        user_id=_user_of(context, parts),
        id=session_id,
        agent_id=context.agent_id,
        workspace_id=new.workspace_id,
        kind=new.kind,
        status="open",
        summary="",
        cursor=0,
        created_at=at,
        updated_at=at,
        expires_at=_end(parts, new.expires_at, new.ttl_seconds, at),
    )
    with parts.ledger.write() as tx:
        if sessions.session(tx, added.user_id, session_id, at=at) is not None:
            raise AlreadyExists("There is a session of this id.", field="session_id", advice="Leave the id out.")
        sessions.add_session(tx, added)
        _audit(tx, context, "create_session", session_id, decision)
    return added


def get(principal: Principal, parts: Parts, session_id: str, *, user_id: str | None, agent_id: str | None) -> Session:
    """A live session.

    Raises:
        NotFound: there is none, it has expired, or it is another's.
    """
    return owned(_context(principal, parts, user_id, agent_id, None), parts, session_id)


def owned(context: Context, parts: Parts, session_id: str) -> Session:
    """A live session that the context may see.

    Raises:
        NotFound: there is none, it has expired, or it is another's.
    """
    with parts.ledger.read() as tx:
        if context.principal.is_admin and context.user_id is None:
            found = next(iter(sessions.sessions_named(tx, session_id, at=now_ms())), None)
        else:
            found = sessions.session(tx, _user_of(context, parts), session_id, at=now_ms())
    missing = NotFound(f"There is no session {session_id!r}.", field="session_id")
    if found is None:
        raise missing
    guard.check(parts.ledger, context.principal, "read", _resource(found), missing)
    return found


def add_episode(principal: Principal, parts: Parts, new: NewEpisode) -> Episode:
    """Append to a session; one that does not exist is opened with the default life. Secrets in it are masked.

    Raises:
        NotFound: an id is unknown or another's.
        Invalid: there is no text in it.
    """
    context = _context(principal, parts, new.user_id, new.agent_id, new.workspace_id)
    decision = _may_write(context, parts, new.session_id)
    require(parts, context.user_id, "ingest")
    raw = ingest(RawMaterial(masked(parts, new.content), masked(parts, new.events), tuple(masked(parts, new.tags))))
    try:
        session = owned(context, parts, new.session_id)
    except NotFound:
        session = _opened(principal, parts, new)
    episode = Episode(
        seq=0,
        id=f"epi_{uuid.uuid4().hex[:24]}",
        user_id=session.user_id,
        session_id=session.id,
        agent_id=context.agent_id,
        workspace_id=new.workspace_id or session.workspace_id,
        content=masked(parts, raw.content),
        summary=masked(parts, new.summary or ""),
        events=raw.events,
        tags=raw.tags,
        created_at=now_ms(),
    )
    with parts.ledger.write() as tx:
        number = sessions.add_episode(tx, episode)
        mark_session(tx, session)
        _audit(tx, context, "append_episode", session.id, decision)
    return replace(episode, seq=number)


def episodes(
    principal: Principal,
    parts: Parts,
    session_id: str,
    *,
    user_id: str | None,
    agent_id: str | None,
    after: int,
    limit: int,
) -> list[Episode]:
    """Episodes of a session after a number, in order.

    Raises:
        NotFound: there is no such session, it has expired, or it is another's.
        Invalid: the limit is out of range.
    """
    session = get(principal, parts, session_id, user_id=user_id, agent_id=agent_id)
    paging.check_limit(limit, parts.settings.policy.max_page)
    with parts.ledger.read() as tx:
        return sessions.episodes_of(tx, session.user_id, session.id, after=after, limit=limit)


def commit_session(
    principal: Principal, parts: Parts, session_id: str, wanted: CommitSession, model: LanguageModel | None
) -> Committed:
    """Summarise a session, take candidates from what is new in it, and let through what policy allows.

    Idempotent, and resumable: the cursor moves only when an episode's candidates have settled.

    Raises:
        NotFound: there is no such session, it has expired, or it is another's.
        SkillDisabled: its user has switched off a skill that this needs.
    """
    context = _context(principal, parts, wanted.user_id, wanted.agent_id, wanted.workspace_id)
    session = owned(context, parts, session_id)
    decision = _may_write(context, parts, session_id)
    require(parts, session.user_id, "extract", "classify", "summarize", *(("commit",) if wanted.promote else ()))
    refused: list[str] = []
    if session.kind != SUBAGENT:
        taking = Taking(context.agent_id, wanted.target_namespace)
        refused = candidates.take(parts, session, model, taking).refused
    outcome = _promote(context, parts, session, wanted, decision) if wanted.promote else Outcome()
    with parts.ledger.read() as tx:
        count = sessions.count_episodes(tx, session.user_id, session.id)
        texts = tuple(one.content for one in sessions.episodes_of(tx, session.user_id, session.id))
        waiting = [one for one in sessions.candidates_of(tx, session.user_id, session.id) if one.status == "candidate"]
        now = sessions.session(tx, session.user_id, session.id, at=0) or session
    summary = summarize(ToSummarize(texts), model).text
    with parts.ledger.write() as tx:
        said = tuple(one.content for one in sessions.episodes_of(tx, session.user_id, session.id))
        if said != texts:  # something of it was forgotten, or more was said, while the summary was made
            summary = summarize(ToSummarize(said), None).text
        sessions.change_session(tx, session.user_id, session.id, status="committed", summary=summary)
        mark_session(tx, session)
        _audit(tx, context, "commit_session", session.id, decision)
    return Committed(
        session.id,
        count,
        outcome.promoted,
        outcome.reviews,
        len(waiting),
        [*refused, *outcome.held],
        summary,
        now.cursor,
    )


def _promote(context: Context, parts: Parts, session: Session, wanted: CommitSession, decision: Decision) -> Outcome:
    """Write or propose what is important and sure enough. What a retry finds done already is told again, not done
    again. A candidate's confidence counts for as much as people accepted of its agent's earlier proposals."""
    settings = parts.settings.policy
    least = settings.promote_importance if wanted.min_importance is None else wanted.min_importance
    agent_id = context.agent_id or session.agent_id
    with parts.ledger.read() as tx:
        found = sessions.candidates_of(tx, session.user_id, session.id)
        drafts = reviews.of_candidates(tx, [one.id for one in found])
        trust = {one.namespace: reviews.trust(tx, f"agent:{agent_id}", one.namespace) for one in found}
    outcome = Outcome()
    acting = replace(context, agent_id=agent_id)
    for one in found:
        sure = one.confidence * trust[one.namespace] >= settings.promote_confidence
        if one.status == "promoted" and one.memory_id is not None:
            outcome.promoted.append(Promoted(one.memory_id, one.namespace))
        elif one.id in drafts:
            draft = drafts[one.id]
            outcome.reviews.append(ReviewReference(draft.id, draft.status, draft.path))
        elif one.status == "candidate" and one.importance >= least and sure:
            try:
                candidates.let_through(acting, parts, LetThrough(one, decision), outcome)
            except GatewayError as error:
                outcome.held.append(error.detail)
    parts.wake()
    return outcome


def mark_session(tx: audit.Transaction, session: Session) -> None:
    """Consolidation looks at a session anew; from a subagent's, in which another agent speaks, nothing is learned."""
    if session.kind != SUBAGENT:
        dirty.mark(tx, dirty.SESSION, f"{session.user_id}/{session.id}", f"session/{session.id}/episodic")


def _opened(principal: Principal, parts: Parts, new: NewEpisode) -> Session:
    asked = {"session_id": new.session_id, "user_id": new.user_id, "agent_id": new.agent_id}
    return create(principal, parts, NewSession.model_validate(asked | {"workspace_id": new.workspace_id}))


def _context(
    principal: Principal, parts: Parts, user_id: str | None, agent_id: str | None, workspace_id: str | None
) -> Context:
    return guard.identify(parts.ledger, principal, user_id=user_id, agent_id=agent_id, workspace_id=workspace_id)


def _user_of(context: Context, parts: Parts) -> str:
    return context.user_id or parts.settings.vault.owner


def _resource(session: Session) -> Resource:
    return Resource(Namespace("session", session.id, "episodic"), None, session.user_id, session.agent_id)


def _may_write(context: Context, parts: Parts, session_id: str) -> Decision:
    own = Resource(Namespace("session", session_id, "episodic"), None, _user_of(context, parts), context.agent_id)
    missing = NotFound(f"There is no session {session_id!r}.", field="session_id")
    return guard.check(parts.ledger, context.principal, "write", own, missing)


def _audit(tx: audit.Transaction, context: Context, action: str, session_id: str, decision: Decision) -> None:
    namespace = f"session/{session_id}/episodic"
    entry = guard.entry(
        context.principal, action, "session", target_id=session_id, namespace=namespace, decision=decision
    )
    audit.write(tx, entry)


def _end(parts: Parts, expires_at: datetime | None, ttl_seconds: int | None, at: int) -> int:
    policy = parts.settings.policy
    if expires_at is not None and ttl_seconds is not None:
        raise Invalid("Give `expires_at` or `ttl_seconds`, not both.", field="ttl_seconds")
    seconds = ttl_seconds if ttl_seconds is not None else policy.session_ttl_seconds
    end = int(expires_at.timestamp() * 1000) if expires_at is not None else at + seconds * 1000
    if end <= at:
        raise Invalid("The session would have ended already.", field="expires_at")
    if end - at > policy.max_session_ttl_seconds * 1000:
        raise Invalid(f"A session lives at most {policy.max_session_ttl_seconds:,} seconds.", field="ttl_seconds")
    return end

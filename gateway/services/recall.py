"""Recall inside one session: what was said in it, by the share of the query's words that an episode has."""

from __future__ import annotations

from gateway.access.guard import Context
from gateway.importer.parts import Parts
from gateway.index.tokens import query_tokens, search_tokens
from gateway.ledger import sessions
from gateway.ledger.sessions import Episode
from gateway.services.records import Found, MemoryRecord, text_time
from gateway.services.requests import Search
from gateway.services.sessions import owned

_LOOKED_AT = 500
_LEAST_SHARE = 0.3


def episodes(context: Context, parts: Parts, wanted: Search) -> list[Found]:
    """Episodes of the session that share words with the query, best first, at most `limit`.

    Raises:
        NotFound: there is no such session, it has expired, or it is another's.
    """
    session = owned(context, parts, wanted.session_id or "")
    asked = set(query_tokens(wanted.query).split())
    with parts.ledger.read() as tx:
        said = sessions.episodes_of(tx, session.user_id, session.id, limit=_LOOKED_AT, newest=True)
    scored = [(_share(asked, episode), episode) for episode in said]
    best = sorted((one for one in scored if one[0] >= _LEAST_SHARE), key=lambda one: (-one[0], -one[1].seq))
    expires = text_time(session.expires_at)
    return [_found(share, episode, expires) for share, episode in best[: wanted.limit]]


def _share(asked: set[str], episode: Episode) -> float:
    if not asked:
        return 0.0
    return len(asked & set(search_tokens(episode.content).split())) / len(asked)


def _found(share: float, episode: Episode, expires: str | None) -> Found:
    at = text_time(episode.created_at) or ""
    namespace = f"session/{episode.session_id}/episodic"
    memory = MemoryRecord(
        id=episode.id,
        user_id=episode.user_id,
        agent_id=episode.agent_id,
        workspace_id=episode.workspace_id,
        session_id=episode.session_id,
        namespace=namespace,
        memory_type="episode",
        title="",
        content=episode.content,
        summary=episode.summary,
        tags=episode.tags,
        importance=0.0,
        confidence=1.0,
        visibility="private",
        status="active",
        source="session",
        source_ref=None,
        created_at=at,
        updated_at=at,
        expires_at=expires,
        version=1,
        etag="",
        path="",
        uri=f"viking://memory/{namespace}/{episode.id}",
        read_only=True,
    )
    return Found(memory, round(share, 6), "", episode.content[:500])

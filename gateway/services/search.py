"""Search: whose memories a request may see, the `retrieve_context` skill, and an answer within its byte limit."""

from __future__ import annotations

from dataclasses import replace

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.errors import GatewayError, Invalid
from gateway.importer.parts import Parts
from gateway.index.search import Hit
from gateway.ledger.database import now_ms
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.services import recall
from gateway.services.namespaces import readable_namespaces
from gateway.services.records import Found, SearchAnswer, content_of, record
from gateway.services.requests import Search
from gateway.skills.retrieve_context import QueryVectors, Retrieved, ToRetrieve, retrieve_context


def search(principal: Principal, parts: Parts, vectors: QueryVectors, wanted: Search) -> SearchAnswer:
    """Find memories; with a session, also what was said in it.

    Raises:
        Invalid: a wrong field; a namespace outside the given ids.
        NotFound: an id is unknown, or not the key's.
    """
    policy = parts.settings.policy
    if wanted.limit > policy.max_page:
        raise Invalid(f"`limit` lies between 1 and {policy.max_page}.", field="limit")
    if len(wanted.query) > policy.max_query_chars:
        raise Invalid(f"A query may have {policy.max_query_chars:,} characters.", field="query")
    context = _context(principal, parts, wanted)
    namespaces, with_session = _namespaces(context, wanted)
    asked = ToRetrieve(
        query=wanted.query,
        namespaces=namespaces,
        user_id=context.user_id,
        agent_id=context.agent_id,
        at=now_ms(),
        limit=wanted.limit,
        offset=wanted.offset,
        mode=wanted.mode,
        kinds=wanted.kinds,
        tags=wanted.tags,
        min_confidence=wanted.min_confidence,
    )
    said = recall.episodes(context, parts, wanted) if with_session else []
    got = retrieve_context(parts, vectors, asked) if namespaces else Retrieved([], {}, [], False)
    _audit(context, parts, got, namespaces)
    found, truncated = _within(policy.max_answer_bytes, parts, got.hits, got.rows, explain=wanted.explain)
    both = sorted([*found, *said], key=lambda one: (-one.score, one.memory.id))[: wanted.limit]
    return SearchAnswer(both, len(both), got.degraded, truncated, got.candidate_budget_exhausted)


def _audit(context: guard.Context, parts: Parts, got: Retrieved, namespaces: tuple[str, ...]) -> None:
    """One entry for each namespace that something was shown from; one in all where nothing was."""
    decision = Decision(True, "admin" if context.principal.is_admin else "namespaces of the key")
    shown = {got.rows[hit.note_id].namespace for hit in got.hits} or set(namespaces[:1])
    parts.reads.add(
        *(
            guard.entry(context.principal, "search", "namespace", namespace=name, decision=decision)
            for name in sorted(shown)
        )
    )


def _context(principal: Principal, parts: Parts, wanted: Search) -> guard.Context:
    """The context of a search; an administrator who names nobody searches for the vault's owner. Never "all"."""
    user_id = wanted.user_id
    named = (user_id, wanted.namespaces, wanted.agent_id, wanted.workspace_id)
    if principal.is_admin and all(value is None for value in named):
        user_id = parts.settings.vault.owner
    asked = {"user_id": user_id, "agent_id": wanted.agent_id, "workspace_id": wanted.workspace_id}
    return guard.identify(parts.ledger, principal, **asked)


def _namespaces(context: guard.Context, wanted: Search) -> tuple[tuple[str, ...], bool]:
    """The namespaces a search covers: those of the given ids, narrowed to those asked for; and if the session is."""
    readable = readable_namespaces(context)
    if wanted.namespaces is None:
        return tuple(readable), wanted.session_id is not None
    session = f"session/{wanted.session_id}/episodic"
    with_session = wanted.session_id is not None and session in wanted.namespaces
    names = [str(parse_namespace(name)) for name in wanted.namespaces if name != session or not with_session]
    free = context.principal.is_admin and context.user_id is None
    outside = [name for name in names if not free and name not in readable]
    if outside:
        raise Invalid(
            f"The namespace {outside[0]} does not belong to the given ids.",
            field="namespaces",
            advice="Name its agent or workspace too, or leave the namespace out.",
        )
    return tuple(names), with_session


def _within(
    limit: int, parts: Parts, hits: list[Hit], rows: dict[str, NoteRow], *, explain: bool
) -> tuple[list[Found], bool]:
    """Results with their text as it is in the vault now, within the byte limit, the first included."""
    found: list[Found] = []
    left, truncated = limit, False
    for hit in hits:
        content = _text(parts, rows[hit.note_id])
        if content is None:
            continue
        data = content.encode("utf-8", "replace")
        if len(data) > left:
            truncated = True
            if left <= 0:
                break
            content = data[:left].decode("utf-8", "ignore")
        left -= len(data) + len(hit.text.encode("utf-8", "replace"))
        found.append(_found(hit, rows[hit.note_id], content, explain=explain))
    return found, truncated


def _text(parts: Parts, row: NoteRow) -> str | None:
    """A stale row can never show text that the file no longer has: no file, no result."""
    try:
        read = parts.files.read(row.path)
    except GatewayError:
        return None
    return content_of(read.data) if read is not None else None


def _found(hit: Hit, row: NoteRow, content: str, *, explain: bool) -> Found:
    found = Found(record(row, content), round(hit.score, 6), hit.heading, hit.text[:500])
    if not explain:
        return found
    return replace(
        found,
        explain={
            "fts_rank": hit.fts_rank,
            "fts_score": hit.fts_score,
            "vector_rank": hit.vector_rank,
            "vector_distance": hit.vector_distance,
        },
    )

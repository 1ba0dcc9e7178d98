"""Search: readable namespaces, filter before ranking, and an authoritative re-check of every hit after it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.errors import EmbeddingFailed, GatewayError, Invalid
from gateway.importer.parts import Parts
from gateway.index.embed import Embedder, Vector, embed_query_within
from gateway.index.scope import Scope
from gateway.index.search import Hit, SearchRequest, SearchResult
from gateway.index.search import search as search_index
from gateway.ledger import feedback, registry
from gateway.ledger.database import now_ms
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.services.namespaces import readable_namespaces
from gateway.services.records import Found, SearchAnswer, content_of, record
from gateway.services.requests import Search

_CACHED_QUERIES = 512
_COOL_DOWN_SECONDS = 5.0
_MAX_ASKED = 800


class QueryVectors:
    """Vectors of recent queries, and a short rest after the provider failed, so that keywords answer at once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = threading.Lock()
        self._resting_until = 0.0

    def of(self, query: str, embedder: Embedder | None, timeout: float) -> tuple[Vector | None, list[str]]:
        """The vector of a query, or None and why (`embedding_timeout`, `embedding_resting`)."""
        if embedder is None:
            return None, []
        key = (embedder.identity.slug, query)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key], []
            if time.monotonic() < self._resting_until:
                return None, ["embedding_resting"]
        try:
            vector = embed_query_within(embedder, query, timeout)
        except EmbeddingFailed:
            with self._lock:
                self._resting_until = time.monotonic() + _COOL_DOWN_SECONDS
            return None, ["embedding_timeout"]
        with self._lock:
            self._kept[key] = vector
            while len(self._kept) > _CACHED_QUERIES:
                self._kept.popitem(last=False)
        return vector, []


@dataclass(frozen=True, slots=True)
class _Context:
    """Whose memories a search may see."""

    namespaces: tuple[str, ...]
    user_id: str | None
    agent_id: str | None
    at: int


def search(principal: Principal, parts: Parts, vectors: QueryVectors, wanted: Search) -> SearchAnswer:
    """Find memories.

    Raises:
        Invalid: a wrong field; a namespace outside the given ids.
        NotFound: the user is not registered.
    """
    policy = parts.settings.policy
    if wanted.limit > policy.max_page:
        raise Invalid(f"`limit` lies between 1 and {policy.max_page}.", field="limit")
    if len(wanted.query) > policy.max_query_chars:
        raise Invalid(f"A query may have {policy.max_query_chars:,} characters.", field="query")
    identified = _context(principal, parts, wanted)
    context = _Context(_namespaces(identified, wanted), identified.user_id, identified.agent_id, now_ms())
    vector, degraded = None, list[str]()
    if wanted.mode != "fts":
        timeout = parts.settings.embedding.query_timeout_seconds
        vector, degraded = vectors.of(wanted.query, parts.feed.embedder, timeout)
    rows, hits, result = _checked(parts, wanted, context, vector)
    shown = hits[wanted.offset : wanted.offset + wanted.limit]
    seen = Decision(True, "admin" if principal.is_admin else "namespaces of the key")
    parts.reads.add(
        *(
            guard.entry(principal, "search", "namespace", namespace=name, decision=seen)
            for name in sorted({rows[hit.note_id].namespace for hit in shown} or {context.namespaces[0]})
        )
    )
    found, truncated = _within(policy.max_answer_bytes, parts, shown, rows, explain=wanted.explain)
    reasons = [*degraded, *(reason for reason in result.degraded if not degraded and reason != "no_embeddings")]
    return SearchAnswer(found, len(found), reasons, truncated, result.candidate_budget_exhausted)


def _checked(
    parts: Parts, wanted: Search, context: _Context, vector: Vector | None
) -> tuple[dict[str, NoteRow], list[Hit], SearchResult]:
    """Ask the index, drop every hit that the ledger does not confirm, and ask for more while too few are left."""
    enough = wanted.offset + wanted.limit
    asked = enough + 2
    while True:
        result = _ask(parts, wanted, context, vector, asked)
        with parts.ledger.read() as tx:
            rows = registry.notes_by_id(tx, [hit.note_id for hit in result.hits])
            wrong = feedback.hidden(tx, [(row.note_id, row.content_hash) for row in rows.values()])
        hits = [
            hit for hit in result.hits if hit.note_id not in wrong and _confirmed(hit, rows.get(hit.note_id), context)
        ]
        if len(hits) >= enough or len(result.hits) < asked or asked >= _MAX_ASKED:
            return rows, hits, result
        asked = min(asked * 2, _MAX_ASKED)


def _ask(parts: Parts, wanted: Search, context: _Context, vector: Vector | None, limit: int) -> SearchResult:
    scope = Scope(
        namespaces=context.namespaces,
        memory_types=wanted.kinds,
        tags_all=tuple(tag.lstrip("#") for tag in wanted.tags),
        min_confidence=wanted.min_confidence,
    )
    mode = wanted.mode if vector is not None or wanted.mode == "fts" else "fts"
    request = SearchRequest(
        query=wanted.query,
        scope=scope,
        limit=limit,
        mode=mode,
        fusion=parts.settings.index.fusion,
        query_vector=vector,
        now_ms=context.at,
    )
    return search_index(parts.feed.index, request)


def _confirmed(hit: Hit, row: NoteRow | None, context: _Context) -> bool:
    """Whether the ledger says the same as the index row: owner, visibility, lifecycle and revision."""
    if row is None or row.etag != hit.etag or row.namespace not in context.namespaces:
        return False
    if row.visibility == "agent-only" and row.agent_id != context.agent_id:
        return False
    if row.visibility == "private" and row.user_id != context.user_id and context.user_id is not None:
        return False
    return row.status == "active" and (row.expires_at is None or row.expires_at > context.at)


def _context(principal: Principal, parts: Parts, wanted: Search) -> guard.Context:
    """The context of a search; an administrator who names nobody searches for the vault's owner. Never "all"."""
    user_id = wanted.user_id
    named = (user_id, wanted.namespaces, wanted.agent_id, wanted.workspace_id)
    if principal.is_admin and all(value is None for value in named):
        user_id = parts.settings.vault.owner
    asked = {"user_id": user_id, "agent_id": wanted.agent_id, "workspace_id": wanted.workspace_id}
    return guard.identify(parts.ledger, principal, **asked)


def _namespaces(context: guard.Context, wanted: Search) -> tuple[str, ...]:
    """The namespaces a search covers: those of the given ids, narrowed to those asked for."""
    readable = readable_namespaces(context)
    if wanted.namespaces is None:
        return tuple(readable)
    names = [str(parse_namespace(name)) for name in wanted.namespaces]
    free = context.principal.is_admin and context.user_id is None
    outside = [name for name in names if not free and name not in readable]
    if outside:
        raise Invalid(
            f"The namespace {outside[0]} does not belong to the given ids.",
            field="namespaces",
            advice="Name its agent or workspace too, or leave the namespace out.",
        )
    return tuple(names)


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

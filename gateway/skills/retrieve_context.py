"""retrieve_context: filter before ranking, rank, and re-check every hit against the ledger. Writes nothing."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from gateway.errors import EmbeddingFailed
from gateway.importer.parts import Parts
from gateway.index.embed import Embedder, Vector, embed_query_within
from gateway.index.scope import Scope
from gateway.index.search import Hit, SearchRequest, SearchResult
from gateway.index.search import search as search_index
from gateway.ledger import feedback, registry
from gateway.ledger.registry import NoteRow
from gateway.skills.contract import Skill

_CACHED_QUERIES = 512
_COOL_DOWN_SECONDS = 5.0
_MAX_ASKED = 800


@dataclass(frozen=True, slots=True)
class ToRetrieve:
    """A query, and whose memories may be seen: `namespaces` are those the principal may read, and no others.

    Attributes:
        user_id: whose private notes may be seen; None: an administrator, who may see all.
        agent_id: whose agent-only notes may be seen.
        at: now, in ms since 1970 UTC.
    """

    query: str
    namespaces: tuple[str, ...]
    user_id: str | None
    agent_id: str | None
    at: int
    limit: int = 10
    offset: int = 0
    mode: Literal["hybrid", "fts", "vector"] = "hybrid"
    kinds: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    min_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Confirmed hits, best first, and their registry rows; `degraded` says what did not take part."""

    hits: list[Hit]
    rows: dict[str, NoteRow]
    degraded: list[str]
    candidate_budget_exhausted: bool


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


def retrieve_context(parts: Parts, vectors: QueryVectors, wanted: ToRetrieve) -> Retrieved:
    """Find the memories that answer a query best."""
    vector, degraded = None, list[str]()
    if wanted.mode != "fts":
        timeout = parts.settings.embedding.query_timeout_seconds
        vector, degraded = vectors.of(wanted.query, parts.feed.embedder, timeout)
    rows, hits, result = _checked(parts, wanted, vector)
    shown = hits[wanted.offset : wanted.offset + wanted.limit]
    reasons = [*degraded, *(reason for reason in result.degraded if not degraded and reason != "no_embeddings")]
    return Retrieved(shown, rows, reasons, result.candidate_budget_exhausted)


def _checked(
    parts: Parts, wanted: ToRetrieve, vector: Vector | None
) -> tuple[dict[str, NoteRow], list[Hit], SearchResult]:
    """Ask the index, drop every hit that the ledger does not confirm, and ask for more while too few are left."""
    enough = wanted.offset + wanted.limit
    asked = enough + 2
    while True:
        result = _ask(parts, wanted, vector, asked)
        with parts.ledger.read() as tx:
            rows = registry.notes_by_id(tx, [hit.note_id for hit in result.hits])
            wrong = feedback.hidden(tx, [(row.note_id, row.content_hash) for row in rows.values()])
        hits = [
            hit for hit in result.hits if hit.note_id not in wrong and _confirmed(hit, rows.get(hit.note_id), wanted)
        ]
        if len(hits) >= enough or len(result.hits) < asked or asked >= _MAX_ASKED:
            return rows, hits, result
        asked = min(asked * 2, _MAX_ASKED)


def _ask(parts: Parts, wanted: ToRetrieve, vector: Vector | None, limit: int) -> SearchResult:
    scope = Scope(
        namespaces=wanted.namespaces,
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
        now_ms=wanted.at,
    )
    return search_index(parts.feed.index, request)


def _confirmed(hit: Hit, row: NoteRow | None, wanted: ToRetrieve) -> bool:
    """Whether the ledger says the same as the index row: owner, visibility, lifecycle and revision."""
    if row is None or row.etag != hit.etag or row.namespace not in wanted.namespaces:
        return False
    if row.visibility == "agent-only" and row.agent_id != wanted.agent_id:
        return False
    if row.visibility == "private" and row.user_id != wanted.user_id and wanted.user_id is not None:
        return False
    return row.status == "active" and (row.expires_at is None or row.expires_at > wanted.at)


SKILL = Skill(
    name="retrieve_context",
    does="Finds the memories of a user, agent and workspace that answer a query best.",
    takes=ToRetrieve,
    gives=Retrieved,
    when="before an agent's turn",
    writes_long_term=False,
)

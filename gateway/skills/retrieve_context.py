"""retrieve_context: filter before ranking, rank, re-check every hit against the ledger, weigh it. Writes nothing.

One pipeline for REST, MCP, prompts and the page (design section 6): candidates of both sources under one filter →
fusion → authoritative re-check → temporal rules → suppression → decay → near-duplicates folded → page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.importer.parts import Parts
from gateway.index.embed import Vector
from gateway.index.scope import Scope
from gateway.index.search import MAX_CANDIDATES, Hit, SearchRequest, SearchResult
from gateway.index.search import search as search_index
from gateway.index.store import Index
from gateway.ledger import feedback, registry
from gateway.ledger.registry import NoteRow
from gateway.notes.topics import Topic
from gateway.skills.contract import Skill
from gateway.skills.query_vectors import QueryVectors
from gateway.skills.ranking import Ranked, collapsed, ranked

__all__ = ["SKILL", "QueryVectors", "Retrieved", "ToRetrieve", "retrieve_context"]


@dataclass(frozen=True, slots=True)
class ToRetrieve:
    """A query, and whose memories may be seen: `namespaces` are those the principal may read, and no others.

    Attributes:
        user_id: whose private notes may be seen; None: an administrator, who may see all.
        agent_id: whose agent-only notes may be seen.
        at: the moment asked about, in ms since 1970 UTC: what held then is recalled.
        suppressed: topics that the user wants left out.
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
    suppressed: tuple[Topic, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Confirmed hits, best first; `degraded` says what did not take part.

    Attributes:
        more: there are further hits behind this page.
        dropped: how many candidates were left out, by reason: `not_confirmed`, `judged_incorrect`, `time`,
            `suppressed`, `duplicate`.
    """

    hits: list[Ranked]
    degraded: list[str]
    candidate_budget_exhausted: bool
    more: bool
    dropped: Mapping[str, int]


@dataclass(slots=True)
class _Sifted:
    kept: list[Ranked]
    dropped: dict[str, int]


def retrieve_context(parts: Parts, vectors: QueryVectors, wanted: ToRetrieve) -> Retrieved:
    """Find the memories that answer a query best."""
    vector, degraded = None, list[str]()
    feed = parts.feed  # another one may take over at any moment; a vector is of one model only
    if wanted.mode != "fts":
        vector, degraded = vectors.of(wanted.query, feed.embedder)
        if feed.embedder is None and feed.index.identity is not None:
            degraded = ["embedding_migration"]  # the index of a model that cannot be asked any more serves on
    sifted, result = _sifted(parts, feed.index, wanted, vector)
    end = wanted.offset + wanted.limit
    reasons = [*degraded, *(reason for reason in result.degraded if not degraded and reason != "no_embeddings")]
    more = len(sifted.kept) > end
    exhausted = result.candidate_budget_exhausted and not more
    return Retrieved(sifted.kept[wanted.offset : end], reasons, exhausted, more, sifted.dropped)


def _sifted(parts: Parts, index: Index, wanted: ToRetrieve, vector: Vector | None) -> tuple[_Sifted, SearchResult]:
    """Ask the index and drop what may not or need not be shown; ask for more while too few are left."""
    enough = wanted.offset + wanted.limit + 1
    asked = enough + 2
    while True:
        result = _ask(parts, index, wanted, vector, asked)
        sifted = _sift(parts, wanted, result.hits)
        if len(sifted.kept) >= enough or len(result.hits) < asked or asked >= MAX_CANDIDATES:
            return sifted, result
        asked = min(asked * 2, MAX_CANDIDATES)


def _ask(parts: Parts, index: Index, wanted: ToRetrieve, vector: Vector | None, limit: int) -> SearchResult:
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
    return search_index(index, request)


def _sift(parts: Parts, wanted: ToRetrieve, hits: Sequence[Hit]) -> _Sifted:
    with parts.ledger.read() as tx:
        rows = registry.notes_by_id(tx, [hit.note_id for hit in hits])
        judged = feedback.of_texts(tx, [(row.note_id, row.content_hash) for row in rows.values()])
    confirmed = [hit for hit in hits if _confirmed(hit, rows.get(hit.note_id), wanted)]
    right = [hit for hit in confirmed if not feedback.hides(judged.get(hit.note_id, ()))]
    settings = parts.settings.index
    timely = ranked(right, rows, judged, wanted.at, decay=settings.decay)
    allowed = [one for one in timely if not _suppressed(one, wanted.suppressed)]
    kept = collapsed(allowed) if settings.fold_duplicates else allowed
    counts = (len(hits), len(confirmed), len(right), len(timely), len(allowed), len(kept))
    reasons = ("not_confirmed", "judged_incorrect", "time", "suppressed", "duplicate")
    dropped = {reason: before - after for reason, before, after in zip(reasons, counts, counts[1:], strict=False)}
    return _Sifted(kept, {reason: number for reason, number in dropped.items() if number})


def _suppressed(one: Ranked, topics: Sequence[Topic]) -> bool:
    return any(topic.covers(f"{one.row.title}\n{one.row.summary}\n{one.hit.text}", one.row.tags) for topic in topics)


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

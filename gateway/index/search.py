"""Searches an index: keyword and meaning candidates under one filter, fused, one hit a note.

The caller embeds the query (`embed.embed_query_within`) and re-checks every hit against the ledger.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gateway.errors import Invalid
from gateway.index.embed import Vector
from gateway.index.fusion import Candidate, Fusion, coverage, fused
from gateway.index.schema import Row
from gateway.index.scope import Scope
from gateway.index.store import Index
from gateway.index.tokens import query_tokens

Mode = Literal["hybrid", "fts", "vector"]

CANDIDATES_PER_HIT = 3
MIN_CANDIDATES = 30
MAX_CANDIDATES = 800
_COLUMNS = ("chunk_id", "note_id", "etag", "namespace", "heading", "text", "tokens")

# Keyword search runs here while the caller's thread searches by meaning.
_keyword_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="keyword-search")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched, where, and which page of the answer is wanted.

    Args:
        limit, offset: in notes.
        query_vector: the embedded query; without it `hybrid` answers by keyword alone and says so.
        now_ms: leaves out what has expired at this moment (epoch milliseconds); None keeps it.
    """

    query: str
    scope: Scope
    limit: int = 10
    offset: int = 0
    mode: Mode = "hybrid"
    fusion: Fusion = "adaptive"
    query_vector: Vector | None = None
    now_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A note and its best chunk.

    Args:
        score: 0 to 1, how good a match it is; comparable within one answer only.
        fts_rank, vector_rank: place among the candidates of that source, from 1; None where it was not among them.
        fts_score: BM25.
        vector_distance: cosine distance, 0 to 2, to the query without what all passages have in common.
    """

    note_id: str
    etag: str
    namespace: str
    chunk_id: str
    heading: str
    text: str
    score: float
    fts_rank: int | None
    fts_score: float | None
    vector_rank: int | None
    vector_distance: float | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page of hits, best first.

    Args:
        degraded: why the answer may be worse than asked for: `no_query_vector`, `no_embeddings`.
        candidate_budget_exhausted: a source gave all it may, and there are still fewer notes than asked for.
    """

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    candidate_budget_exhausted: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    keyword: list[Row]
    meaning: list[Row]

    def may_have_more(self, asked: int) -> bool:
        return len(self.keyword) >= asked or len(self.meaning) >= asked


def search(index: Index, request: SearchRequest) -> SearchResult:
    """Answer a search.

    Raises:
        Invalid: limit or offset out of range.
        Unavailable: the index cannot be read.
    """
    if request.limit < 1 or request.offset < 0:
        raise Invalid("A search needs a limit of at least 1 and no negative offset.", field="limit")
    vector, degraded = _usable_vector(index, request)
    tokens = "" if request.mode == "vector" else query_tokens(request.query)
    where = _filter(request)
    wanted = request.offset + request.limit
    asked = min(MAX_CANDIDATES, max(MIN_CANDIDATES, CANDIDATES_PER_HIT * wanted))
    while True:
        found = _find(index, tokens, vector, where, asked)
        hits = _hits(index, request, found, tokens, vector)
        if len(hits) >= wanted or not found.may_have_more(asked) or asked >= MAX_CANDIDATES:
            break
        asked = min(MAX_CANDIDATES, asked * 2)
    exhausted = len(hits) < wanted and found.may_have_more(asked)
    return SearchResult(tuple(hits[request.offset : wanted]), degraded, exhausted)


def _usable_vector(index: Index, request: SearchRequest) -> tuple[Vector | None, tuple[str, ...]]:
    if request.mode == "fts":
        return None, ()
    if index.identity is None:
        return None, ("no_embeddings",)
    if request.query_vector is None:
        return None, ("no_query_vector",)
    if request.query_vector.shape != (index.identity.dimension,):
        raise Invalid("The query's vector is not of this index's embedding model.", field="query_vector")
    common = index.direction
    return request.query_vector if common is None else common.taken_out_of(request.query_vector), ()


def _filter(request: SearchRequest) -> str:
    condition = request.scope.sql()
    return condition if request.now_ms is None else f"{condition} AND expires_at > {int(request.now_ms)}"


def _find(index: Index, tokens: str, vector: Vector | None, where: str, limit: int) -> _Found:
    if vector is None:
        return _Found(index.table.match(tokens, where, _COLUMNS, limit) if tokens else [], [])
    # The vectors of keyword candidates give them an exact similarity too.
    keyword: Future[list[Row]] | None = None
    if tokens:
        keyword = _keyword_threads.submit(index.table.match, tokens, where, (*_COLUMNS, "vector"), limit)
    meaning = index.table.nearest(vector, where, _COLUMNS, limit)
    return _Found(keyword.result() if keyword else [], meaning)


def _hits(index: Index, request: SearchRequest, found: _Found, tokens: str, vector: Vector | None) -> list[Hit]:
    candidates = _candidates(index, found, tokens, vector)
    best: dict[str, Hit] = {}
    for score, candidate in fused(candidates, request.fusion):
        if candidate.row["note_id"] not in best:
            best[candidate.row["note_id"]] = _hit(candidate, score)
    return list(best.values())


def _candidates(index: Index, found: _Found, tokens: str, vector: Vector | None) -> list[Candidate]:
    weights = index.rarity.weights(tokens.split())
    candidates: dict[str, Candidate] = {}
    for rank, row in enumerate(found.meaning, 1):
        candidates[row["chunk_id"]] = Candidate(
            row, coverage(row["tokens"], weights), vector_rank=rank, vector_distance=row["_distance"]
        )
    for rank, row in enumerate(found.keyword, 1):
        candidate = candidates.get(row["chunk_id"])
        if candidate is None:
            candidate = Candidate(row, coverage(row["tokens"], weights), vector_distance=_distance(row, vector))
            candidates[row["chunk_id"]] = candidate
        candidate.fts_rank, candidate.fts_score = rank, row["_score"]
    return list(candidates.values())


def _distance(row: Row, vector: Vector | None) -> float | None:
    """Cosine distance of a keyword candidate; both vectors have length one."""
    stored = row.get("vector")
    if vector is None or stored is None:
        return None
    return 1.0 - float(np.dot(stored, vector))


def _hit(candidate: Candidate, score: float) -> Hit:
    row = candidate.row
    return Hit(
        note_id=row["note_id"],
        etag=row["etag"],
        namespace=row["namespace"],
        chunk_id=row["chunk_id"],
        heading=row["heading"],
        text=row["text"],
        score=score,
        fts_rank=candidate.fts_rank,
        fts_score=candidate.fts_score,
        vector_rank=candidate.vector_rank,
        vector_distance=candidate.vector_distance,
    )

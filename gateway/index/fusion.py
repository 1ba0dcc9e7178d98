"""Orders keyword and meaning candidates into one list. Pure: numbers in, numbers out.

`adaptive` adds to the nearness of a passage the square of how much of the query's rare terms it covers: half of them
counts a quarter. So a list of weak keyword hits cannot drown good vectors, which reciprocal rank fusion allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Fusion = Literal["adaptive", "rrf"]

# The middle of a plateau (0.5-1.0) on which no set falls below the better of its two sources (ADR 6).
KEYWORD_WEIGHT = 0.8
# Cosines of candidates that differ by less than this in all are noise, not a ranking from best to worst.
MIN_SPREAD = 0.05
RRF_K = 60


@dataclass(slots=True)
class Candidate:
    """A chunk that a source proposed, with what is known of it.

    Args:
        coverage: share of the query's terms it holds, weighted by their rarity; 0 to 1.
        vector_distance: cosine distance, None where it has no vector yet or none is asked for.
    """

    row: Mapping[str, Any]
    coverage: float
    fts_rank: int | None = None
    fts_score: float | None = None
    vector_rank: int | None = None
    vector_distance: float | None = None


def coverage(tokens: str, weights: Mapping[str, float]) -> float:
    """Share of the query's weight that a text's tokens hold, 0 to 1."""
    total = sum(weights.values())
    if not total:
        return 0.0
    present = set(tokens.split())
    return min(1.0, sum(weight for token, weight in weights.items() if token in present) / total)


def fused(candidates: Sequence[Candidate], how: Fusion) -> list[tuple[float, Candidate]]:
    """The candidates with scores of 0 to 1, best first; equal scores are ordered by note id.

    One source alone keeps its own order: BM25 with a score relative to the coverage of the best hit, or nearness
    between the nearest and the farthest candidate.
    """
    both = any(candidate.fts_rank is not None for candidate in candidates)
    if all(candidate.vector_distance is None for candidate in candidates):
        scores = _keyword_scores(candidates)
    elif how == "rrf" and both:
        scores = _reciprocal_rank_scores(candidates)
    else:
        scores = _adaptive_scores(candidates)
    scored = [(min(1.0, max(0.0, score)), candidate) for score, candidate in zip(scores, candidates, strict=True)]
    return sorted(scored, key=lambda item: (-item[0], item[1].row["note_id"], item[1].row["chunk_id"]))


def _keyword_scores(candidates: Sequence[Candidate]) -> list[float]:
    """BM25 scaled so that the best hit scores its coverage: half of the query's terms found is about a half."""
    best = max((candidate.fts_score or 0.0 for candidate in candidates), default=0.0)
    if not best:
        return [0.0] * len(candidates)
    covered = max(candidate.coverage for candidate in candidates if candidate.fts_score == best)
    return [(candidate.fts_score or 0.0) / best * (covered or 1.0) for candidate in candidates]


def _reciprocal_rank_scores(candidates: Sequence[Candidate]) -> list[float]:
    """Reciprocal rank fusion with k = 60, scaled so that first in both lists scores 1."""
    ranks = [(candidate.fts_rank, candidate.vector_rank) for candidate in candidates]
    return [sum((RRF_K + 1) / (RRF_K + rank) for rank in pair if rank is not None) / 2 for pair in ranks]


def _adaptive_scores(candidates: Sequence[Candidate]) -> list[float]:
    distances = [candidate.vector_distance for candidate in candidates if candidate.vector_distance is not None]
    nearest, farthest = min(distances), max(distances)
    spread = max(farthest - nearest, MIN_SPREAD)

    def score(candidate: Candidate) -> float:
        distance = candidate.vector_distance
        # A chunk whose vector is still to come is judged by its keywords alone.
        meaning = candidate.coverage if distance is None else 1.0 - (distance - nearest) / spread
        return (meaning + KEYWORD_WEIGHT * candidate.coverage**2) / (1.0 + KEYWORD_WEIGHT)

    return [score(candidate) for candidate in candidates]

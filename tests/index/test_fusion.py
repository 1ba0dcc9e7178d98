"""The order that comes out of keyword and meaning candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.fusion import Candidate, coverage, fused


def candidate(
    name: str,
    covered: float = 0.0,
    *,
    fts: tuple[int, float] | None = None,
    vector: tuple[int | None, float | None] = (None, None),
) -> Candidate:
    """A candidate by its numbers."""
    rank, score = fts or (None, None)
    return Candidate({"note_id": name, "chunk_id": name}, covered, rank, score, *vector)


def order(candidates: list[Candidate], how: str = "adaptive") -> list[str]:
    """Names, best first."""
    return [item.row["note_id"] for _, item in fused(candidates, how)]


def test_weak_keyword_hits_do_not_drown_a_good_vector() -> None:
    """What plain reciprocal rank fusion gets wrong."""
    weak = [candidate(f"w{n}", 0.05, fts=(n, 9.0 - n), vector=(n + 5, 0.30)) for n in range(1, 4)]
    good = candidate("good", 0.0, vector=(1, 0.10))
    assert order([*weak, good])[0] == "good"
    assert order([*weak, good], "rrf")[0] != "good"


def test_a_hit_that_holds_all_rare_terms_beats_a_slightly_nearer_vector() -> None:
    """An identifier that was asked for by name."""
    exact = candidate("exact", 1.0, fts=(1, 20.0), vector=(2, 0.15))
    near = candidate("near", 0.1, fts=(2, 2.0), vector=(1, 0.13))
    assert order([exact, near]) == ["exact", "near"]


def test_a_chunk_without_a_vector_is_judged_by_its_keywords() -> None:
    """Just saved, not yet embedded, fully matching."""
    fresh = candidate("fresh", 1.0, fts=(1, 20.0))
    others = [candidate(f"o{n}", 0.0, vector=(n, 0.1 * n)) for n in range(1, 4)]
    assert order([fresh, *others])[0] == "fresh"


def test_one_source_alone_keeps_its_order() -> None:
    """BM25, or cosine."""
    keyword = [candidate("a", 0.2, fts=(2, 3.0)), candidate("b", 0.5, fts=(1, 5.0))]
    meaning = [candidate("a", vector=(2, 0.4)), candidate("b", vector=(1, 0.2))]
    assert order(keyword) == order(meaning) == ["b", "a"]
    assert [score for score, _ in fused(keyword, "adaptive")] == pytest.approx([0.5, 0.3])


def test_ties_are_ordered_by_note_id() -> None:
    """Whatever order they come in."""
    same = [candidate(name, 0.5, fts=(1, 3.0), vector=(1, 0.2)) for name in "cab"]
    assert order(same) == ["a", "b", "c"]
    assert order([]) == []


def test_coverage_is_the_share_of_weight() -> None:
    """Absent rare terms count."""
    assert coverage("a b", {"a": 1.0, "x": 3.0}) == 0.25
    assert coverage("a b", {}) == 0.0


unit = st.floats(0, 1)
anything = st.builds(
    candidate,
    st.text("abc", min_size=1, max_size=3),
    unit,
    fts=st.none() | st.tuples(st.integers(1, 800), st.floats(0, 100)),
    vector=st.tuples(st.none() | st.integers(1, 800), st.none() | st.floats(0, 2)),
)


@given(st.lists(anything, max_size=20), st.sampled_from(["adaptive", "rrf"]))
def test_scores_are_always_within_zero_and_one(candidates: list[Candidate], how: str) -> None:
    """Callers are promised that."""
    scores = [score for score, _ in fused(candidates, how)]
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores == sorted(scores, reverse=True)

"""The order that comes out of keyword and meaning candidates."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.index.fusion import MIN_SPREAD, Candidate, coverage, fused


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
placed = st.lists(st.tuples(unit, st.floats(0.2, 1.2)), min_size=2, max_size=12)


def both(numbers: list[tuple[float, float]]) -> list[Candidate]:
    """Candidates that both sources know, of coverage and distance."""
    return [
        candidate(f"c{place:02}", covered, fts=(1, 1.0), vector=(1, distance))
        for place, (covered, distance) in enumerate(numbers)
    ]


def scores(candidates: list[Candidate]) -> dict[str, float]:
    """Score by name."""
    return {item.row["note_id"]: score for score, item in fused(candidates, "adaptive")}


@given(st.lists(anything, max_size=20), st.sampled_from(["adaptive", "rrf"]))
def test_scores_are_always_within_zero_and_one(candidates: list[Candidate], how: str) -> None:
    """Callers are promised that."""
    found = [score for score, _ in fused(candidates, how)]
    assert all(0.0 <= score <= 1.0 for score in found)
    assert found == sorted(found, reverse=True)


@given(st.lists(anything, max_size=12, unique_by=lambda one: one.row["chunk_id"]), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(candidates: list[Candidate], random: Random) -> None:
    """The same answer every time."""
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert order(shuffled) == order(candidates)


@given(placed, st.integers(0, 11), unit, unit)
def test_a_passage_that_gets_better_is_overtaken_by_none(
    numbers: list[tuple[float, float]], which: int, covered: float, nearer: float
) -> None:
    """More of the words, or nearer in meaning."""
    which %= len(numbers)
    before = scores(both(numbers))
    old_covered, old_distance = numbers[which]
    numbers[which] = (old_covered + (1 - old_covered) * covered, old_distance * (1 - nearer))
    after = scores(both(numbers))
    mine = f"c{which:02}"
    for other in before:
        if before[mine] > before[other] + 1e-9:
            assert after[mine] >= after[other] - 1e-9


@given(placed, st.floats(1, 2), st.floats(-0.2, 0.8))
def test_only_differences_of_distances_count(numbers: list[tuple[float, float]], scale: float, shift: float) -> None:
    """A model whose cosines lie elsewhere gives the same answer."""
    distances = [distance for _, distance in numbers]
    assume(max(distances) - min(distances) >= MIN_SPREAD)
    moved = [(covered, distance * scale + shift) for covered, distance in numbers]
    assert scores(both(moved)) == pytest.approx(scores(both(numbers)))


@given(st.lists(st.tuples(st.floats(0, 0.3), st.floats(0.3, 1.2)), min_size=1, max_size=60))
def test_no_list_of_weak_keyword_hits_drowns_the_best_vector(weak: list[tuple[float, float]]) -> None:
    """However many, and whatever their places: a third of the rare words is no reason to pass over the nearest."""
    far = candidate("far", 0.0, vector=(99, 1.3))
    assert order([candidate("near", 0.0, vector=(1, 0.1)), *both(weak), far])[0] == "near"


@given(st.floats(0, 0.7), st.floats(0, 0.4))
def test_all_words_of_the_query_beat_none_of_them(distance: float, covered: float) -> None:
    """Unless the passage is among the farthest of all."""
    exact = candidate("exact", 1.0, fts=(1, 9.0), vector=(None, distance))
    assert order([exact, candidate("near", 0.0, vector=(1, 0.0)), candidate("far", covered, vector=(2, 1.0))])[0] == (
        "exact"
    )

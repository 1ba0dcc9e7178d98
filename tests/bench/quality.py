"""Search quality on public sets: recall@1/5/10 and MRR by keyword, by meaning and by both, and without each stage.

    python tests/bench/quality.py [--data DIR] [--cache DIR] [--halves] [--paraphrases]

A question goes the way of a search: index, then time, age and likeness; a memory that was folded into another counts
at the place of that other. Embedding runs at some 13 texts/s the first time; vectors are kept in --cache. Questions
without a labelled answer are left out. `a>b` asks the questions of set a against the memories of set b (parallel
texts): a cross-language check that nothing was tuned on. `leaks` counts hits of somebody else's memory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from quality_sets import PARAPHRASES, SETS, Case, Opened, open_set  # noqa: E402

from gateway.index.embed import EmbeddingConfig, open_embedder  # noqa: E402
from gateway.index.fusion import Fusion  # noqa: E402
from gateway.index.search import MAX_CANDIDATES, Mode, SearchRequest, search  # noqa: E402
from gateway.skills.ranking import Ranked, collapsed, ranked  # noqa: E402

DEPTHS = (1, 5, 10)
SHOWN = max(DEPTHS)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to search; `hybrid` is what a search does by default, the others leave one stage out."""

    name: str
    mode: Mode = "hybrid"
    fusion: Fusion = "adaptive"
    common_direction: bool = True
    decay: bool = True
    fold: bool = True


WAYS = (
    Way("fts", mode="fts"),
    Way("vector", mode="vector"),
    Way("hybrid"),
    Way("rrf", fusion="rrf"),
    Way("plain vector", mode="vector", common_direction=False),
    Way("plain cosine", common_direction=False),
    Way("no decay", decay=False),
    Way("no folding", fold=False),
)


def main() -> None:
    """Print the table."""
    arguments = _arguments()
    opened = open_embedder(EmbeddingConfig(provider="local", threads=2, batch_size=8))
    if opened.embedder is None:
        sys.exit(opened.note)
    print(
        f"{'set':<16}{'part':<10}{'way':<14}{'n':>4}  " + "".join(f"r@{depth:<6}" for depth in DEPTHS) + "MRR    leaks"
    )
    for name, memories, questions in PARAPHRASES if arguments.paraphrases else SETS:
        asked = open_set(arguments.data, memories, questions, arguments.cache, opened.embedder)
        for part, cases in _parts(asked.cases, halves=arguments.halves):
            for way in WAYS:
                row = _row(asked, cases, way)
                numbers = "  ".join(f"{value:.3f}" for value in row[:-1])
                print(f"{name:<16}{part:<10}{way.name:<14}{len(cases):>4}  {numbers}  {row[-1]:>5.0f}", flush=True)
    opened.embedder.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search quality on public sets.")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2].parent / "shared" / "data")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "memory-gateway-quality")
    parser.add_argument("--halves", action="store_true", help="also every other question, as a check of stability")
    parser.add_argument("--paraphrases", action="store_true", help="only questions without a word of their answer")
    return parser.parse_args()


def _parts(cases: Sequence[Case], *, halves: bool) -> Iterator[tuple[str, Sequence[Case]]]:
    yield "all", cases
    if halves:
        yield "even", cases[::2]
        yield "odd", cases[1::2]
    kinds = dict.fromkeys(case.kind for case in cases)
    if len(kinds) > 1:
        yield from ((kind, [case for case in cases if case.kind == kind]) for kind in kinds)


def _row(asked: Opened, cases: Sequence[Case], way: Way) -> list[float]:
    """Recall at each depth, MRR, and how many hits leaked."""
    direction = asked.index.direction
    asked.index.direction = direction if way.common_direction else None
    answers = [(_answer(asked, case, way), case) for case in cases]
    asked.index.direction = direction
    found = [([{hit.row.note_id, *hit.like} for hit in hits], case.relevant) for hits, case in answers]
    recalls = [
        sum(len(relevant.intersection(set[str]().union(*places[:depth]))) / len(relevant) for places, relevant in found)
        / len(found)
        for depth in DEPTHS
    ]
    leaks = sum(hit.hit.namespace not in case.scope.namespaces for hits, case in answers for hit in hits)
    return [*recalls, sum(_reciprocal_rank(places, relevant) for places, relevant in found) / len(found), leaks]


def _answer(asked: Opened, case: Case, way: Way) -> list[Ranked]:
    """The first hits, as `retrieve_context` makes them: more is asked for while too few are left."""
    limit = SHOWN + 3
    while True:
        vector = None if way.mode == "fts" else case.vector
        request = SearchRequest(
            case.text, case.scope, limit=limit, mode=way.mode, fusion=way.fusion, query_vector=vector
        )
        hits = search(asked.index, request).hits
        kept = ranked(hits, asked.rows, {}, asked.at, decay=way.decay)
        kept = collapsed(kept) if way.fold else kept
        if len(kept) > SHOWN or len(hits) < limit or limit >= MAX_CANDIDATES:
            return kept[:SHOWN]
        limit = min(limit * 2, MAX_CANDIDATES)


def _reciprocal_rank(places: Sequence[set[str]], relevant: frozenset[str]) -> float:
    return next((1 / place for place, ids in enumerate(places, 1) if ids & relevant), 0.0)


if __name__ == "__main__":
    main()

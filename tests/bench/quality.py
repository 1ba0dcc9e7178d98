"""Search quality on public sets: recall@1/5/10 and MRR by keyword, by meaning and by both.

    python tests/bench/quality.py [--data DIR] [--cache DIR] [--halves]

Embedding runs at some 13 texts/s the first time; vectors are kept in --cache. Questions without a labelled answer
are left out. `a>b` asks the questions of set a against the memories of set b (parallel texts): a cross-language
check that nothing was tuned on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from quality_sets import SETS, Case, open_set  # noqa: E402

from gateway.index.embed import EmbeddingConfig, open_embedder  # noqa: E402
from gateway.index.search import SearchRequest, search  # noqa: E402
from gateway.index.store import Index  # noqa: E402

WAYS = (
    ("fts", "fts", "adaptive"),
    ("vector", "vector", "adaptive"),
    ("hybrid", "hybrid", "adaptive"),
    ("rrf", "hybrid", "rrf"),
)
DEPTHS = (1, 5, 10)


def main() -> None:
    """Print the table."""
    arguments = _arguments()
    opened = open_embedder(EmbeddingConfig(provider="local", threads=2, batch_size=8))
    if opened.embedder is None:
        sys.exit(opened.note)
    print(f"{'set':<16}{'part':<8}{'way':<8}{'n':>4}  " + "".join(f"r@{depth:<6}" for depth in DEPTHS) + "MRR")
    for name, memories, questions in SETS:
        index, cases = open_set(arguments.data, memories, questions, arguments.cache, opened.embedder)
        parts = {"all": cases}
        if arguments.halves:
            parts |= {"even": cases[::2], "odd": cases[1::2]}
        for part, chosen in parts.items():
            for way, mode, fusion in WAYS:
                row = _row(index, chosen, mode, fusion)
                print(f"{name:<16}{part:<8}{way:<8}{len(chosen):>4}  " + "  ".join(f"{value:.3f}" for value in row))
    opened.embedder.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search quality on public sets.")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2].parent / "shared" / "data")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "memory-gateway-quality")
    parser.add_argument("--halves", action="store_true", help="also every other question, as a check of stability")
    return parser.parse_args()


def _row(index: Index, cases: Sequence[Case], mode: str, fusion: str) -> list[float]:
    answers = [(_answer(index, case, mode, fusion), case.relevant) for case in cases]
    recalls = [
        sum(len(relevant.intersection(ids[:depth])) / len(relevant) for ids, relevant in answers) / len(answers)
        for depth in DEPTHS
    ]
    return [*recalls, sum(_reciprocal_rank(ids, relevant) for ids, relevant in answers) / len(answers)]


def _answer(index: Index, case: Case, mode: str, fusion: str) -> list[str]:
    request = SearchRequest(
        case.text, case.scope, mode=mode, fusion=fusion, query_vector=None if mode == "fts" else case.vector
    )
    return [hit.note_id for hit in search(index, request).hits]


def _reciprocal_rank(ids: Sequence[str], relevant: frozenset[str]) -> float:
    return next((1 / place for place, note_id in enumerate(ids, 1) if note_id in relevant), 0.0)


if __name__ == "__main__":
    main()

"""What putting a context or a system prompt together costs beyond the search itself, for a user with many memories.

    python tests/bench/context.py [--memories 5000] [--rounds 40]

The goal is at most 50 ms more than the search (p50). Keywords only, no embedding.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.access.principal import Principal
from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from gateway.services import context, prompts, search
from gateway.services.context_requests import ContextRequest
from gateway.services.requests import Search

OWNER = Principal("bench", "user", "owner")
_SAID = "garden river tea train winter letter bread music window friend lamp stone market song bridge coat"
WORDS = _SAID.split()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The cost of a context.")
    parser.add_argument("--memories", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-gateway-bench-") as folder:
        gateway = _filled(Path(folder) / "data", arguments.memories)
        try:
            _measure(gateway, arguments.rounds)
        finally:
            gateway.close()


def _filled(data: Path, memories: int) -> Gateway:
    settings = load_settings(data_dir=data, embedding={"provider": "none"}, watch={"settle_seconds": 0})
    gateway = open_gateway(settings)
    folder = gateway.parts.files.root / "Memories/LongTerm"
    for number in range(memories):
        said = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 12))
        importance = 0.9 if number % 50 == 0 else 0.5
        text = f"---\nimportance: {importance}\n---\nMemory {number}: {said}.\n"
        (folder / f"{number}.md").write_text(text, "utf-8")
    (gateway.parts.files.root / "Users/owner").mkdir(parents=True, exist_ok=True)
    gateway.parts.importer.scan(settled=True)
    gateway.parts.scanned.set()
    gateway.parts.feed.feed()
    gateway.parts.feed.optimise()
    return gateway


def _measure(gateway: Gateway, rounds: int) -> None:
    parts, vectors = gateway.parts, gateway.query_vectors

    def searched(query: str) -> None:
        search.search(OWNER, parts, vectors, Search.model_validate({"query": query, "limit": 20}))

    def asked(query: str) -> None:
        wanted = ContextRequest.model_validate({"query": query, "token_budget": 2_000})
        context.context(OWNER, parts, vectors, gateway.turns, wanted)

    def prompted(query: str) -> None:
        prompts.system(OWNER, parts, vectors, user_id=None, token_limit=32_000, query=query)

    base = _times(searched, rounds)
    print(f"{'what':<40}{'p50 ms':>10}{'p95 ms':>10}{'beyond the search, ms':>24}")
    for name, work in (("search, 20 hits", searched), ("POST /v1/context", asked), ("the system prompt", prompted)):
        times = _times(work, rounds)
        p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95) - 1]
        print(f"{name:<40}{p50:>10.1f}{p95:>10.1f}{p50 - statistics.median(base):>24.1f}")


def _times(work: Callable[[str], None], rounds: int) -> list[float]:
    times: list[float] = []
    for number in range(rounds + 3):
        query = f"{WORDS[number % len(WORDS)]} {WORDS[(number * 5 + 1) % len(WORDS)]} {number}"
        started = time.perf_counter()
        work(query)
        times.append((time.perf_counter() - started) * 1000)
    return times[3:]


if __name__ == "__main__":
    main()

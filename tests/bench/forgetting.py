"""What forgetting costs: one delete, a clear of many memories, a purge; against the delete alone and `git gc` alone.

    python -m tests.bench.forgetting [--memories 20000]

Prints medians and totals of one run; nothing is asserted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from gateway.services import clearing, forgetting, purging, search
from gateway.services.clearing import ClearRequest
from gateway.services.purging import PurgeRequest
from gateway.services.requests import Search
from gateway.workers import jobs
from tests.conftest import IMPATIENT
from tests.forgetting.world import ANY
from tests.reviews.world import know

DELETES = 50


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memories", type=int, default=20_000)
    count = arguments.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        gateway = open_gateway(load_settings(data_dir=Path(folder) / "data", **IMPATIENT))
        _fill(gateway, count)
        _deletes(gateway)
        _purge(gateway)
        _clear(gateway, count)
        gateway.close()


def _fill(gateway: Gateway, count: int) -> None:
    root = gateway.parts.files.root / "Memories/LongTerm"
    for number in range(count):
        note = root / f"{number % 100}/otter {number}.md"
        note.parent.mkdir(exist_ok=True)
        note.write_text(f"Otter number {number} swims in river {number % 97}.\n", "utf-8")
    started = time.perf_counter()
    gateway.settle()
    print(f"{count:,} memories taken in, indexed and committed in {time.perf_counter() - started:.1f} s")


def _deletes(gateway: Gateway) -> None:
    ids = [know(gateway, f"Canary number {number} sings.") for number in range(DELETES)]
    gateway.settle()
    taken = []
    for note_id in ids:
        started = time.perf_counter()
        forgetting.forget(LOCAL_OPERATOR, gateway.parts, note_id, ANY)
        taken.append((time.perf_counter() - started) * 1000)
    print(f"one delete with its erasure: median {statistics.median(taken):.1f} ms, worst {max(taken):.1f} ms")


def _purge(gateway: Gateway) -> None:
    gateway.settle()
    root = gateway.parts.files.root
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=root, capture_output=True, check=True).stdout
    started = time.perf_counter()
    subprocess.run(["git", "gc", "--quiet"], cwd=root, check=True)
    alone = time.perf_counter() - started
    purging.order(LOCAL_OPERATOR, gateway.parts, PurgeRequest.model_validate({}))
    started = time.perf_counter()
    jobs.run(gateway.parts)
    took = time.perf_counter() - started
    print(
        f"purge of {DELETES} memories, {int(commits):,} commits: {took:.1f} s with the index rebuilt; "
        f"git gc alone {alone:.1f} s, ratio {took / alone:.1f}"
    )


def _clear(gateway: Gateway, count: int) -> None:
    started = time.perf_counter()
    clearing.order(LOCAL_OPERATOR, gateway.parts, ClearRequest.model_validate({"scope": "user", "id": "owner"}))
    ordered = time.perf_counter() - started
    asked = Search.model_validate({"query": "otter swims", "limit": 10})
    left = search.search(LOCAL_OPERATOR, gateway.parts, gateway.query_vectors, asked).results
    started = time.perf_counter()
    jobs.run(gateway.parts)
    took = time.perf_counter() - started
    print(
        f"clear of {count:,} memories: closed after {ordered * 1000:.0f} ms ({len(left)} found from then on), "
        f"done in {took:.1f} s, {count / took:.0f} a second"
    )


if __name__ == "__main__":
    main()

"""A clear that is killed again and again: it always finishes, and nothing of its scope is readable meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.ledger import Ledger, jobs, registry
from gateway.ledger.registry import NoteFilter
from gateway.services import clearing, search
from gateway.services.check import check
from gateway.services.clearing import ClearRequest
from gateway.services.requests import Search
from tests.forgetting.dying import DIED
from tests.forgetting.world import ANN, TOM, users
from tests.nightly import NIGHTLY

MEMORIES, KILLS = (20_000, 20) if NIGHTLY else (600, 5)


def shown(data: Path) -> dict[str, int]:
    """How many memories of each user the ledger would let anybody see right now."""
    ledger = Ledger(f"sqlite:///{data / 'ledger.db'}", read_only=True)
    try:
        with ledger.read() as tx:
            rows, _ = registry.page(tx, NoteFilter(status=None), limit=100_000, after=None)
    finally:
        ledger.close()
    counts = {"tom": 0, "ann": 0}
    for row in rows:
        if row.user_id in counts and row.namespace.endswith("/long_term"):
            counts[row.user_id] += 1
    return counts


def carry_on(data: Path, when: str, milliseconds: int = 0) -> int:
    command = [sys.executable, "-m", "tests.forgetting.dying", str(data), when, str(milliseconds)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode in (0, DIED), done.stderr[-2_000:]
    return done.returncode


@pytest.mark.timeout(3_600 if NIGHTLY else 300)
def test_a_clear_killed_at_random_points_always_finishes(opened, tmp_path):
    gateway = opened()
    users(gateway)
    root = gateway.parts.files.root
    for number in range(MEMORIES):
        user_id = "ann" if number % 20 == 0 else "tom"
        note = root / f"Users/{user_id}/LongTerm/{number % 50}/otter {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"Otter number {number} of {user_id} swims in river {number % 97}.\n", "utf-8")
    gateway.settle()
    assert shown(tmp_path / "data") == {"tom": MEMORIES * 19 // 20, "ann": MEMORIES // 20}
    job = clearing.order(TOM, gateway.parts, ClearRequest.model_validate({"scope": "user", "id": "tom"}))
    query = {"query": "otter swims river", "limit": 20}
    assert search.search(TOM, gateway.parts, gateway.query_vectors, Search.model_validate(query)).results == []
    gateway.close()
    chance = random.Random(20)
    kills = 0
    while kills < KILLS:
        assert shown(tmp_path / "data")["tom"] == 0
        when = chance.choice(["opening", "clearing", "clearing", "clearing"])
        if carry_on(tmp_path / "data", when, chance.randint(0, 5_000 if NIGHTLY else 250)) == 0:
            break
        kills += 1
    assert carry_on(tmp_path / "data", "never") == 0
    assert kills >= (10 if NIGHTLY else 2), "the kills came too late to show anything"
    again = opened("data")
    again.settle()
    assert shown(tmp_path / "data") == {"tom": 0, "ann": MEMORIES // 20}
    assert not list((root / "Users/tom/LongTerm").rglob("*.md"))
    assert len(list((root / "Users/ann/LongTerm").rglob("*.md"))) == MEMORIES // 20
    with again.parts.ledger.read() as tx:
        done = jobs.job(tx, job.id)
    assert done is not None
    assert done.status == "done"
    assert (
        search.search(
            LOCAL_OPERATOR, again.parts, again.query_vectors, Search.model_validate(query | {"user_id": "tom"})
        ).results
        == []
    )
    assert search.search(ANN, again.parts, again.query_vectors, Search.model_validate(query)).results
    assert check(again.parts.settings, patient=True).findings == []

"""A small day in fast-forward: what is kept is bounded by what is alive and what was written."""

from __future__ import annotations

from tests.bench.a_day import live, verdict


def test_a_day_leaves_bounded_sizes(tmp_path):
    """600 writes and 60 deletions; `tests/bench/a_day.py` has the whole day."""
    said: list[str] = []
    day, end, fresh = live(tmp_path / "data", 600, 60, quarters=24, tell=said.append)
    assert (day.writes, day.deletes > 40) == (600, True)
    assert day.upkeep.get("index", 0) > 0
    verdict(day, end, fresh, said.append)
    print("\n".join(said))

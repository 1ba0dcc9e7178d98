"""Each step of maintenance does its work, within its budget, shows as a job, and fails alone."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gateway.bootstrap import Gateway
from gateway.clock import clock_set, now_ms
from gateway.errors import GitTrouble, Unavailable
from gateway.ledger import audit, events, idempotency, jobs, orphans, reviews, sessions, usage
from gateway.ledger.audit import AuditEntry
from gateway.ledger.events import Event
from gateway.ledger.idempotency import Claim
from gateway.ledger.sessions import Session
from gateway.workers import upkeep
from gateway.workers.maintenance import Maintenance, Step
from tests.index.conftest import IDENTITY, FakeEmbedder

DAY = 86_400_000


@pytest.fixture
def gateway(opened) -> Gateway:
    return opened(index={"keep_versions_seconds": 0})


def run(gateway: Gateway, *names: str, **_ignored) -> dict[str, int]:
    """The named steps, whatever their time."""
    steps = [one for one in upkeep.maintenance(gateway.parts).steps if one.name in names]
    return Maintenance(gateway.parts, steps).run()


def listed(gateway: Gateway, phase: str | None = None) -> list[jobs.Job]:
    with gateway.parts.ledger.read() as tx:
        found = jobs.page(tx, user_id=None, limit=100, before=None)
    return [one for one in found if phase in (None, one.phase)]


def later(days: float) -> Callable[[], int]:
    at = now_ms() + int(days * DAY)
    return lambda: at


def notes(gateway: Gateway, first: int, last: int) -> None:
    folder = gateway.parts.files.root / "Memories" / "LongTerm"
    for number in range(first, last):
        (folder / f"n{number}.md").write_text(f"Note number {number} about kites.\n", "utf-8")


def test_nothing_to_do_is_no_job(gateway):
    gateway.settle()
    run(gateway, "index", "git")
    before = len(listed(gateway))
    assert run(gateway, *(one.name for one in upkeep.maintenance(gateway.parts).steps if one.name != "index")) == {}
    assert len(listed(gateway)) == before


def test_the_index_is_folded_and_old_versions_go(gateway):
    for number in range(0, 60, 2):
        notes(gateway, number, number + 2)
        gateway.settle()
    table = gateway.parts.feed.index.table
    assert table.state().fragments > 5
    time.sleep(0.01)
    assert gateway.parts.feed.needs_cleaning()
    assert run(gateway, "index") == {"index": 1}
    assert table.state().fragments <= 2
    assert table.state().unindexed_rows == 0
    (job,) = listed(gateway, "index")
    assert (job.kind, job.status, job.done) == ("maintain", "done", 1)
    assert gateway.parts.feed.index.note_etags()


def commits(gateway: Gateway, count: int) -> None:
    folder = gateway.parts.files.root / "Memories" / "LongTerm"
    for number in range(count):
        (folder / "often.md").write_text(f"Version {number}.\n", "utf-8")
        gateway.settle()


def git(gateway: Gateway, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=gateway.parts.files.root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def packs(gateway: Gateway) -> int:
    return len(list((gateway.parts.history.git_dir / "objects" / "pack").glob("*.pack")))


def test_git_is_folded_and_loses_nothing(opened):
    """Neither history, nor what only a reflog or nothing at all points at."""
    gateway = opened(maintenance={"repack_packs": 5})
    commits(gateway, 12)
    unreachable = git(gateway, "hash-object", "-w", "-t", "blob", "--", str(_file(gateway, "lost text\n")))
    assert packs(gateway) > 5
    before = git(gateway, "log", "--format=%H")
    reflog = git(gateway, "reflog", "--all")
    assert run(gateway, "git") == {"git": 1}
    assert packs(gateway) <= 5
    assert git(gateway, "log", "--format=%H") == before
    assert git(gateway, "reflog", "--all") == reflog
    assert git(gateway, "cat-file", "blob", unreachable) == "lost text"
    assert (gateway.parts.history.git_dir / "objects" / "info" / "commit-graphs").exists()
    git(gateway, "fsck", "--strict")
    assert run(gateway, "git") == {}


def test_git_is_folded_when_small_packs_hold_much(opened, monkeypatch):
    gateway = opened()
    folder = gateway.parts.files.root / "Memories" / "LongTerm"
    for number in range(4):
        (folder / "big.md").write_text(np.random.default_rng(number).bytes(100_000).hex() + "\n", "utf-8")
        gateway.settle()
    history = gateway.parts.history
    assert not history.needs_upkeep(50)
    monkeypatch.setattr("gateway.vault.history._UNFOLDED_BYTES", 100)
    assert history.needs_upkeep(50)
    assert run(gateway, "git") == {"git": 1}
    assert not history.needs_upkeep(50)


def _file(gateway: Gateway, text: str) -> Path:
    path = gateway.parts.settings.data_dir / "lost.txt"
    path.write_text(text, "utf-8")
    return path


def test_git_is_left_alone_while_a_person_merges_and_during_a_purge(opened):
    gateway = opened(maintenance={"repack_packs": 2})
    commits(gateway, 5)
    state = gateway.parts.history.git_dir / "MERGE_HEAD"
    state.write_text(git(gateway, "rev-parse", "HEAD") + "\n", "ascii")
    assert run(gateway, "git") == {}
    state.unlink()
    with gateway.parts.ledger.write() as tx:
        purge = jobs.new("purge", requested_by="key")
        jobs.add(tx, purge)
    assert run(gateway, "git") == {}
    with gateway.parts.ledger.write() as tx:
        jobs.finish(tx, purge.id)
    assert run(gateway, "git") == {"git": 1}


def session(number: int, expires_at: int) -> Session:
    return Session("owner", f"s{number}", None, None, "main", "open", "", 0, 0, 0, expires_at)


def test_what_is_old_goes_in_batches_and_the_young_stays(opened):
    gateway = opened(maintenance={"batch_rows": 10})
    ledger = gateway.parts.ledger
    entry = AuditEntry("read", "memory", "m", None, "allow", "test")
    with ledger.write() as tx:
        for number in range(25):
            sessions.add_session(tx, session(number, now_ms() + DAY))
            idempotency.reserve(tx, Claim("key", f"k{number}", "h"), f"int_{number}")
            jobs.add(tx, old := jobs.new("clear", requested_by="key"))
            jobs.finish(tx, old.id)
        audit.write(tx, *[entry] * 25)
        events.write(tx, *[Event("memory", "create", "m")] * 25)
        usage._first_time(tx, {(f"t{number}", "m") for number in range(25)})
        reviews.add_edges(tx, [("child", "parent", "merged")])
    with clock_set(later(400)):
        with ledger.write() as tx:
            sessions.add_session(tx, session(99, now_ms() + DAY))
            audit.write(tx, entry)
            events.write(tx, Event("memory", "create", "young"))
        done = run(gateway, "sessions", "audit", "idempotency", "events", "turns", "jobs")
        assert {name: number >= 25 for name, number in done.items()} == dict.fromkeys(done, True)
        assert set(done) == {"sessions", "audit", "idempotency", "events", "turns", "jobs"}
        assert run(gateway, "sessions", "audit", "idempotency", "turns") == {}
        with ledger.read() as tx:
            assert sessions.session(tx, "owner", "s99", at=now_ms()) is not None
            assert audit.verify(tx) is None
            assert [one.target_id for one in events.after(tx, 0, 100) if one.kind == "memory"] == ["young"]
            assert len(reviews.edges_of(tx, "child")) == 1
    assert {job.kind for job in listed(gateway)} == {"maintain"}


def test_a_step_ends_with_its_budget_and_goes_on_in_the_next_round(opened):
    gateway = opened(maintenance={"batch_rows": 10, "step_seconds": 0.000001})
    with gateway.parts.ledger.write() as tx:
        for number in range(25):
            sessions.add_session(tx, session(number, 1))
    steps = [one for one in upkeep.maintenance(gateway.parts).steps if one.name == "sessions"]
    short = Maintenance(gateway.parts, steps)
    assert short.run() == {"sessions": 10}
    assert steps[0].due_at <= now_ms()
    assert short.run() == {"sessions": 10}
    stopped = opened("other", maintenance={"batch_rows": 10})
    with stopped.parts.ledger.write() as tx:
        for number in range(25):
            sessions.add_session(tx, session(number, 1))
    answers = iter([True, True] + [False] * 10)
    steps = [one for one in upkeep.maintenance(stopped.parts).steps if one.name == "sessions"]
    assert Maintenance(stopped.parts, steps).run(lambda: next(answers)) == {"sessions": 10}


def test_one_step_that_fails_keeps_no_other_away(gateway):
    def broken(_parts, _turn):
        raise Unavailable("The disk is full.")

    def worse(_parts, turn):
        turn.begin()
        raise RuntimeError("a secret in the text of an exception")

    done: list[str] = []
    last = Step("last", 60, lambda _parts, _turn: done.append("last"))
    ours = Maintenance(gateway.parts, [Step("broken", 60, broken), Step("worse", 60, worse), last])
    ours.run()
    assert done == ["last"]
    assert {job.phase: (job.status, job.error) for job in listed(gateway)} == {
        "broken": ("failed", "The disk is full."),
        "worse": ("failed", "Unexpected: RuntimeError."),
    }
    ours.run()
    assert done == ["last"]  # not due again yet
    with clock_set(later(1)):
        ours.run()
    assert done == ["last", "last"]


def test_a_failing_git_shows(gateway, monkeypatch):
    monkeypatch.setattr(gateway.parts.history, "needs_upkeep", lambda _packs: True)

    def fail() -> None:
        raise GitTrouble("`git repack` failed: no space left.")

    monkeypatch.setattr(gateway.parts.history, "upkeep", fail)
    run(gateway, "git")
    assert listed(gateway, "git")[0].error == "`git repack` failed: no space left."


def test_a_job_that_a_kill_left_open_is_settled(gateway):
    with gateway.parts.ledger.write() as tx:
        left = jobs.new("maintain", requested_by="gateway", phase="git")
        jobs.add(tx, left)
        jobs.change(tx, left.id, status=jobs.RUNNING)
    run(gateway)
    assert [job.status for job in listed(gateway, "git")] == ["failed"]


def test_vectors_of_texts_that_are_gone_go_after_a_grace(tmp_path, opened):
    from gateway.bootstrap import open_gateway
    from gateway.config import load_settings
    from tests.conftest import IMPATIENT

    grace = {"maintenance": {"vector_grace_hours": 24}}
    gateway = open_gateway(load_settings(data_dir=tmp_path / "v", **(IMPATIENT | grace)), embedder=FakeEmbedder())
    try:
        notes(gateway, 0, 40)
        gateway.settle()
        feed = gateway.parts.feed
        while feed.fill_vectors():
            pass
        cache = feed.index.vectors
        everything = len(cache.hashes())
        folder = gateway.parts.files.root / "Memories" / "LongTerm"
        for number in range(20):
            (folder / f"n{number}.md").unlink()
        gateway.settle()
        gone = feed.index.orphan_vectors()
        assert len(gone) == 20
        assert run(gateway, "vectors") == {}
        notes(gateway, 0, 5)  # they come back: nothing is embedded again
        gateway.settle()
        assert feed.fill_vectors() == 0
        with clock_set(later(1.1)):
            assert run(gateway, "vectors") == {"vectors": 15}
        assert len(cache.hashes()) == everything - 15
        assert cache.table.count() == everything - 15
        with gateway.parts.ledger.read() as tx:
            assert orphans.due(tx, cache.name, 2**60, 100) == []
        back = next(iter(cache.get(feed.index.vectors.hashes() & set(cache.hashes())).values()))
        assert np.isclose(np.linalg.norm(back), 1.0, atol=1e-3)
        assert feed.index.drop_vectors(list(cache.hashes())[:3]) == 0  # what a note has is never dropped
        assert IDENTITY.slug in cache.name
    finally:
        gateway.close()


def test_the_ledger_gives_room_back(opened):
    gateway = opened()
    ledger = gateway.parts.ledger
    with ledger.write() as tx:
        events.write(tx, *[Event("job", "progress", f"j{n}", data={"filler": "x" * 800}) for n in range(30_000)])
    with ledger.write() as tx:
        events.trim(tx, 2**60)
    ledger.tidy(0)
    before = ledger.file.stat().st_size
    assert ledger.waste()[0] > 2_500
    assert run(gateway, "ledger")["ledger"] > 2_500
    assert ledger.file.stat().st_size < before / 2
    assert ledger.waste()[1] < 1024 * 1024
    with ledger.read() as tx:
        assert tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_the_worker_stops_within_a_bound(opened):
    gateway = opened(maintenance={"interval_seconds": 0.01})
    gateway.start()
    time.sleep(0.5)
    began = time.monotonic()
    gateway.workers.stop()
    assert time.monotonic() - began < 10

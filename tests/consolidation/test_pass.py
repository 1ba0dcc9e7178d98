"""The pass itself: bounded, rotating, stoppable, never stale; a dry run writes nothing; doors and switches."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.errors import Busy, NotAllowed, Unavailable
from gateway.ledger import dirty, fences, jobs, reviews, skill_configs
from gateway.workers.consolidation import comparing
from tests.consolidation.world import HERMES, TOM, World

OWN, LONG_TERM = "agent/hermes/memory", "user/tom/long_term"


def everything(world: World) -> dict[str, str]:
    """Each table of the ledger and each file of vault and index, by its hash."""
    settings = world.parts.settings
    found: dict[str, str] = {}
    with sqlite3.connect(settings.data_dir / "ledger.db") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
            found[name] = hashlib.sha256(repr(sorted(map(repr, rows))).encode()).hexdigest()
    for root in (settings.vault_root, Path(settings.index_location)):
        for path in sorted(root.rglob("*")):
            if path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def waiting(world: World) -> list[dirty.Dirty]:
    with world.parts.ledger.read() as tx:
        return dirty.waiting(tx, 500)


def test_a_dry_run_says_what_would_be_and_writes_nothing_at_all(world):
    for text in ("I am allergic to peanuts.", "我对花生过敏。"):
        world.remember(text)
    world.remember("I live in Berlin.", TOM)
    world.remember("I live in Hamburg.", TOM)
    world.say("open", "Remember that my bicycle is green.")
    for number in range(3):
        world.told("I prefer dark mode in every editor.", f"s{number}")
    world.gateway.settle()
    before = everything(world)
    done = world.gateway.consolidation.run(dry_run=True)
    assert everything(world) == before
    assert {one.proposal for one in done.proposed} == {"conflict", "create"}
    assert [one.how for one in done.merged] == ["would be"] * len(done.merged)
    assert len(done.merged) >= 2
    assert all(
        set(one.factors) == {"importance", "stability", "repetition", "trust", "sessions", "score"}
        for one in done.scored
    )
    real = world.run()
    assert len(real.proposed) == len(done.proposed)


def test_items_of_a_pass_are_bounded_and_failures_go_behind_what_was_not_tried(opened, monkeypatch):
    """A poisoned prefix does not starve the rest."""
    world = World(opened(consolidation={"items_per_pass": 3})).people()
    while waiting(world):
        world.run()
    ids = [world.remember(f"The build number {number} is kept.") for number in range(8)]
    world.gateway.settle()
    real = comparing.look_at

    def look_at(run, work):
        if work.key in ids[:3]:
            raise Unavailable("not now")
        real(run, work)

    monkeypatch.setattr(comparing, "look_at", look_at)
    reports = [world.run() for _ in range(4)]
    assert [report.items for report in reports] == [3, 3, 3, 3]
    assert len(reports[0].failed) == 3
    assert {one.key for one in waiting(world)} == set(ids[:3])
    monkeypatch.setattr(comparing, "look_at", real)
    world.run()
    assert waiting(world) == []


def test_a_pass_stops_between_items(world, monkeypatch):
    for number in range(6):
        world.remember(f"The build number {number} is kept.")
    world.gateway.settle()
    seen: list[str] = []
    real = comparing.look_at
    monkeypatch.setattr(comparing, "look_at", lambda run, work: (seen.append(work.key), real(run, work)))
    done = world.gateway.consolidation.run(keep_going=lambda: len(seen) < 2)
    assert done.items == 2
    assert done.waiting == 4


def test_the_seconds_of_a_pass_are_bounded(opened, monkeypatch):
    world = World(opened(consolidation={"seconds_per_pass": 0.2})).people()
    for number in range(6):
        world.remember(f"The build number {number} is kept.")
    world.gateway.settle()
    import time

    monkeypatch.setattr(comparing, "look_at", lambda run, work: time.sleep(0.15))
    assert world.gateway.consolidation.run().items == 2


def test_a_memory_that_changed_meanwhile_is_not_merged(world, monkeypatch):
    """It was compared as it was; by the time of the merge it says something else."""
    first = world.remember("I am allergic to peanuts.", confidence=0.9)
    second = world.remember("The user is allergic to peanuts.", confidence=0.5)
    world.gateway.settle()
    real = comparing._merge

    def edited_first(run, seen, rows):
        path = world.parts.files.root / world.row(second).path
        path.write_bytes(path.read_bytes().replace(b"peanuts", b"pollen"))
        world.parts.importer.import_paths([world.row(second).path], settled=True)
        real(run, seen, rows)

    monkeypatch.setattr(comparing, "_merge", edited_first)
    done = world.gateway.consolidation.run()
    assert done.merged == []
    assert {row.note_id for row in world.rows(OWN)} == {first, second}
    monkeypatch.setattr(comparing, "_merge", real)
    world.run()
    assert len(world.rows(OWN)) == 2


@pytest.mark.parametrize(
    ("skill", "left"), [("merge", 2), ("prune", 2), ("extract", 1)], ids=["merge", "prune", "extract"]
)
def test_a_skill_that_its_user_switched_off_is_off(world, skill, left):
    with world.parts.ledger.write() as tx:
        skill_configs.switch(tx, "tom", skill, enabled=False)
    world.remember("I am allergic to peanuts.")
    world.remember("The user is allergic to peanuts.")
    world.say("s1", "I prefer the aisle seat.")
    from tests.consolidation.test_model import _commit_without_model

    _commit_without_model(world, "s1")
    if skill == "prune":
        from tests.consolidation.test_memories import judge

        for row in world.rows(OWN):
            judge(world, row.note_id, "incorrect", HERMES)
    done = world.run()
    if skill == "merge":
        assert len(world.rows(OWN)) == left
    elif skill == "prune":
        assert done.archived == []
    else:
        assert world.candidates("s1") == []


def test_what_is_being_cleared_is_left_alone(world):
    world.remember("I am allergic to peanuts.")
    world.remember("The user is allergic to peanuts.")
    world.gateway.settle()
    job = jobs.new(fences.CLEAR, requested_by="test", scope="agent", scope_id="hermes")
    with world.parts.ledger.write() as tx:
        jobs.add(tx, job)
    done = world.gateway.consolidation.run()
    assert done.merged == []
    assert {row.status for row in world.rows(OWN, None)} == {"active"}


def test_one_pass_at_a_time_and_only_for_administrators(world):
    consolidation = world.gateway.consolidation
    with pytest.raises(NotAllowed):
        consolidation.consolidate(TOM)
    assert consolidation._running.acquire(blocking=False)
    with pytest.raises(Busy):
        consolidation.consolidate(LOCAL_OPERATOR)
    consolidation._running.release()
    assert consolidation.consolidate(LOCAL_OPERATOR).dry_run is False


def test_lineage_comes_in_the_transaction_of_the_move_even_after_a_crash(world, monkeypatch):
    """The move is made, the gateway dies before it says so: the next start writes row and edges together."""
    from gateway.importer import write
    from gateway.importer.recover import recover

    first = world.remember("I am allergic to peanuts.", confidence=0.9)
    second = world.remember("The user is allergic to peanuts.", confidence=0.5)
    world.gateway.settle()
    real = write.settle

    def die(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "settle", die)
    with pytest.raises(KeyboardInterrupt):
        world.gateway.consolidation.run()
    monkeypatch.setattr(write, "settle", real)
    assert world.edges(second) == set()
    recover(world.parts.importer)
    assert world.row(second).status == "archived"
    assert (first, second, "merged") in world.edges(second)


def test_no_edge_of_lineage_points_nowhere(world):
    """Each end is a memory, a draft, a session or an episode that was there."""
    for number, text in enumerate(["I am allergic to peanuts.", "我对花生过敏。", "I'm allergic to peanuts."]):
        world.told(text, f"s{number}")
        world.remember(text)
    for _ in range(3):
        world.run()
    for draft in world.drafts("create"):
        world.accept(draft)
    world.run()
    from gateway.ledger.schema import episodes, lineage, notes, sessions

    with world.parts.ledger.read() as tx:
        known = {row[0] for row in tx.execute(notes.select().with_only_columns(notes.c.note_id))}
        known |= {row[0] for row in tx.execute(episodes.select().with_only_columns(episodes.c.id))}
        known |= {f"session/{row[0]}" for row in tx.execute(sessions.select().with_only_columns(sessions.c.id))}
        edges = [(row.child, row.parent) for row in tx.execute(lineage.select())]
        drafts = {one for edge in edges for one in edge if reviews.review(tx, one) is not None}
    assert edges
    assert [edge for edge in edges if not set(edge) <= known | drafts] == []

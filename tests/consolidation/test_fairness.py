"""Nothing starves: what had to wait gets its turn, whatever else changes and however slow it is."""

from __future__ import annotations

import time

import pytest

from gateway.clock import clock_set, now_ms
from gateway.errors import Unavailable
from gateway.ledger import dirty, sessions
from gateway.services.sessions import mark_session
from gateway.workers.consolidation import comparing, evolving, fading
from gateway.workers.consolidation.work import Pass
from tests.consolidation.test_pass import waiting
from tests.consolidation.test_profile import profile_drafts, with_profile
from tests.consolidation.world import ANN, TOM, World

DARK = "I prefer dark mode in every editor."
OWN, LONG_TERM = "agent/hermes/memory", "user/tom/long_term"


def settled(opened, **consolidation) -> World:
    """A world in which nothing waits."""
    world = World(opened(consolidation=consolidation)).people()
    while waiting(world):
        world.run()
    return world


def stable_preference(world: World, *people) -> None:
    """A memory of each that three conversations repeat; the pass that sees it so is the next one."""
    for who in people:
        world.remember(DARK, who, memory_type="preference", namespace=f"user/{who.user_id}/long_term")
    world.run()
    for who in people:
        for number in range(3):
            world.told(DARK, f"{who.user_id}{number}", who=who)
    world.run()


# --- profiles


def test_a_profile_that_finds_no_room_in_its_pass_is_proposed_in_a_later_one(opened):
    world = settled(opened, drafts_per_pass=1)
    stable_preference(world, TOM, ANN)
    first = world.run()
    assert [one.kind for one in first.skipped if one.reason == "enough drafts wait"] == ["profile"]
    assert first.waiting == 1
    second = world.run()
    assert {one.namespace for one in (*first.proposed, *second.proposed)} == {"user/tom/profile", "user/ann/profile"}
    assert second.waiting == 0


def test_without_any_room_it_waits_and_is_tried_once_a_pass(opened, monkeypatch):
    world = settled(opened, drafts_per_pass=0)
    stable_preference(world, TOM)
    asked: list[str] = []
    real = evolving._propose
    monkeypatch.setattr(evolving, "_propose", lambda run, user, claims: (asked.append(user), real(run, user, claims)))
    for number in range(1, 4):
        assert world.run().waiting == 1
        assert len(asked) == number


def test_candidates_behind_a_draft_are_claimed_again(opened):
    """The third conversation has nothing open left when its profile's turn comes."""
    world = settled(opened, drafts_per_pass=1)
    for number in range(3):
        world.told(DARK, f"s{number}")
    done = [world.run() for _ in range(4)]
    assert [one.namespace for report in done for one in report.proposed] == [LONG_TERM, "user/tom/profile"]
    assert done[-1].waiting == 0


def test_a_group_that_finds_no_room_is_proposed_later_whoever_leads_it(opened, monkeypatch):
    """The one that was looked at stands behind another session's by then."""
    world = settled(opened, drafts_per_pass=0)
    text = "I enjoy rowing at dusk."
    world.told(text, "s1")
    world.run()
    with world.parts.ledger.write() as tx:
        sessions.change_session(tx, "tom", "s1", expires_at=now_ms() + 10**10)
    world.told(text, "s2")
    world.run()
    assert [one.status for one in world.candidates("s2")] == ["merged"]
    object.__setattr__(world.parts.settings.consolidation, "drafts_per_pass", 5)
    world.run()
    assert len(world.drafts("create")) == 1


def test_a_person_editing_the_draft_of_a_profile_keeps_nothing_out_for_good(world):
    with_profile(world, "# Profile\n\n## Preferences\n\n- I like tea.\n")
    for number in range(3):
        world.told(DARK, f"s{number}")
    world.run()
    (draft,) = profile_drafts(world)
    path = world.parts.files.root / draft.path
    path.write_text(path.read_text("utf-8").replace("every editor", "each editor"), "utf-8")
    world.gateway.settle()
    for number in range(3):
        world.told("I prefer short answers with bullet points.", f"u{number}")
    for _ in range(3):
        assert world.run().waiting > 0
    world.accept(world.drafts("update")[0])
    for _ in range(3):
        world.run()
    (draft,) = profile_drafts(world)
    assert "bullet points" in world.draft_text(draft)


def test_a_profile_gets_its_turn_though_every_pass_runs_out_of_time(opened, monkeypatch):
    world = settled(opened, seconds_per_pass=0.3)
    for number in range(3):
        world.told(DARK, f"s{number}")
    busy = [world.remember(f"The build number {number} is kept.") for number in range(4)]
    world.gateway.settle()
    real = comparing.look_at

    def slow(run, work):
        if work.key in busy:
            time.sleep(0.35)
        real(run, work)

    monkeypatch.setattr(comparing, "look_at", slow)
    for _ in range(12):
        world.gateway.consolidation.run()
        with world.parts.ledger.write() as tx:
            for one in busy:
                dirty.mark(tx, dirty.NOTE, one, OWN)
    assert len(profile_drafts(world)) == 1


@pytest.mark.parametrize("error", [Unavailable("not now"), RuntimeError("broken")])
def test_a_profile_that_fails_ends_no_pass_and_comes_again(world, monkeypatch, error):
    stable_preference(world, TOM)
    real = evolving._propose

    def fail(*_):
        raise error

    monkeypatch.setattr(evolving, "_propose", fail)
    done = world.run()
    assert [one.kind for one in done.failed] == ["profile"]
    assert done.waiting == 1
    monkeypatch.setattr(evolving, "_propose", real)
    assert len(world.run().proposed) == 1


# --- turns


def word_in_each(world: World, count: int) -> None:
    for number in range(count):
        world.say(f"open{number}", "and another thing")


def test_what_had_to_wait_gets_its_turn_though_open_sessions_fill_every_pass(opened, monkeypatch):
    world = settled(opened, items_per_pass=4)
    kept = world.remember("The build needs two runners.")
    world.gateway.settle()
    looked: list[str] = []
    real = comparing.look_at

    def look_at(run, work):
        looked.append(work.key)
        if len(looked) == 1:
            raise Unavailable("not now")
        real(run, work)

    monkeypatch.setattr(comparing, "look_at", look_at)
    world.run()
    assert looked == [kept]
    for _ in range(2):
        word_in_each(world, 9)
        world.run()
    assert looked == [kept, kept]


def test_a_session_that_ended_gets_its_turn_though_open_ones_fill_every_pass(opened):
    """Open sessions were there first, and get a word between passes."""
    world = settled(opened, items_per_pass=4)
    word_in_each(world, 9)
    world.told("I prefer the aisle seat.", "ended")
    done = []
    for _ in range(4):
        done.append(world.run())
        word_in_each(world, 9)
    assert [one.session_id for report in done for one in report.scored] == ["ended"]
    assert done[3].items == 0  # an open session is looked at once, not in every pass


def test_changes_without_end_keep_nothing_out(opened, monkeypatch):
    """Nine memories that change between passes of two items: a tried one and a new one are looked at all the same."""
    world = settled(opened, items_per_pass=2)
    busy = [f"mem_busy{number}" for number in range(9)]
    looked: list[str] = []
    monkeypatch.setattr(comparing, "look_at", lambda run, work: looked.append(work.key))
    with world.parts.ledger.write() as tx:
        dirty.mark(tx, dirty.NOTE, "mem_tried", OWN)
        dirty.failed(tx, dirty.waiting(tx, 1)[0])
    for number in range(12):
        with world.parts.ledger.write() as tx:
            for key in busy:
                dirty.mark(tx, dirty.NOTE, key, OWN)
            if number == 1:
                dirty.mark(tx, dirty.NOTE, "mem_new", OWN)
        world.gateway.consolidation.run()
    assert looked.index("mem_tried") < 4
    assert "mem_new" in looked
    assert set(busy) <= set(looked)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 10])
def test_everything_that_waits_is_looked_at_within_a_bound(world, limit):
    """Whatever fails for ever, and however much is marked anew: as many passes as there is work, at most."""
    with world.parts.ledger.write() as tx:
        for one in dirty.waiting(tx, 500):
            dirty.settle(tx, one)
    at = [1_000_000]
    seen: set[str] = set()
    with clock_set(lambda: at[0]):
        for number in range(30):
            at[0] += 1000
            with world.parts.ledger.write() as tx:
                if number == 0:
                    for name in range(20):
                        dirty.mark(tx, dirty.NOTE, f"poisoned{name}", OWN)
                for name in range(12):
                    at[0] += 1
                    dirty.mark(tx, dirty.NOTE, f"busy{name}", OWN)
                if number == 3:
                    dirty.mark(tx, dirty.NOTE, "new", OWN)
        for _ in range(60):
            at[0] += 1000
            with world.parts.ledger.write() as tx:
                turn = dirty.turn(tx, limit, at[0], 1000)
                assert 1 <= len(turn) <= limit
                assert len({work.key for work in turn}) == len(turn)
                for work in turn[: 1 if limit < 4 else limit]:  # time for one, or for all
                    at[0] += 1
                    seen.add(work.key)
                    dirty.failed(tx, work)
                for name in range(12):
                    at[0] += 1
                    dirty.mark(tx, dirty.NOTE, f"busy{name}", OWN)
    assert seen == {f"poisoned{name}" for name in range(20)} | {f"busy{name}" for name in range(12)} | {"new"}


def test_what_was_not_tried_yet_comes_before_what_failed_but_for_the_longest_waiting(world):
    with world.parts.ledger.write() as tx:
        for one in dirty.waiting(tx, 500):
            dirty.settle(tx, one)
        for name in ("f0", "f1", "f2"):
            dirty.mark(tx, dirty.NOTE, name, OWN)
        for work in dirty.waiting(tx, 3):
            dirty.failed(tx, work)
        for name in "abc":
            dirty.mark(tx, dirty.NOTE, name, OWN)
        assert [one.key for one in dirty.turn(tx, 4, now_ms(), 0)] == ["f0", "a", "b", "c"]
        assert [one.key for one in dirty.turn(tx, 6, now_ms(), 0)] == ["f0", "a", "b", "c", "f1", "f2"]


def test_an_open_session_is_looked_at_when_it_fell_silent_and_at_once_when_it_ends(opened):
    world = settled(opened, idle_seconds=1800)
    world.say("open", "I prefer the aisle seat.")
    world.say("ends", "I prefer the window seat.")
    begun = now_ms()
    assert world.run().items == 2
    assert world.run().items == 0
    assert world.run().waiting == 2
    with clock_set(lambda: begun + 900_000):
        world.say("open", "And I like trains.")
        assert world.run().items == 0
    with clock_set(lambda: begun + 1_900_000):
        done = world.run()
        assert [(one.key, one.reason) for one in done.skipped] == [("tom/open", "it still goes on")]
        assert world.candidates("ends") != []
    with clock_set(lambda: begun + 2_800_000):
        assert world.run().extracted == 2


def test_an_open_session_that_ends_is_looked_at_in_the_next_pass(opened):
    world = settled(opened)
    world.say("open", "I prefer the aisle seat.")
    world.run()
    with world.parts.ledger.write() as tx:
        sessions.change_session(tx, "tom", "open", status="committed")
        mark_session(tx, sessions.session(tx, "tom", "open", at=0))
    assert world.run().extracted == 1


def test_a_clock_that_was_set_back_keeps_nothing_waiting(world):
    ahead = now_ms() + 10**10
    with clock_set(lambda: ahead):
        kept = world.remember("The build needs two runners.")
        world.gateway.settle()
    assert kept in {one.key for one in waiting(world)}
    world.run()
    assert kept not in {one.key for one in waiting(world)}


# --- time


def test_a_slow_item_ends_the_pass_and_a_stop_comes_before_everything_else(opened, monkeypatch):
    world = settled(opened, seconds_per_pass=0.2)
    for number in range(4):
        world.remember(f"The build number {number} is kept.")
    world.gateway.settle()
    monkeypatch.setattr(comparing, "look_at", lambda run, work: time.sleep(0.3))
    began = time.monotonic()
    assert world.gateway.consolidation.run().items == 1
    assert time.monotonic() - began < 1
    going = [True]
    swept: list[str] = []
    monkeypatch.setattr(comparing, "look_at", lambda run, work: going.__setitem__(0, False))
    monkeypatch.setattr(fading, "judge", lambda run, seen, row: swept.append(row.note_id))
    assert world.gateway.consolidation.run(keep_going=lambda: going[0]).items == 1
    assert swept == []


def test_a_session_that_takes_longer_than_a_pass_is_gone_through_all_the_same(opened, monkeypatch):
    """Each pass ends in time, and begins with another candidate: none of them comes to anything alone."""
    world = settled(opened, seconds_per_pass=0.3)
    world.say("s1", *(f"I enjoy the walk number {number}." for number in range(8)))
    world.end("s1")
    world.gateway.settle()
    real = Pass.compared

    def slow(run, one, other, own_name):
        time.sleep(0.05)
        return real(run, one, other, own_name)

    monkeypatch.setattr(Pass, "compared", slow)
    scored: list[set[str]] = []
    for _ in range(8):
        began = time.monotonic()
        done = world.gateway.consolidation.run()
        assert time.monotonic() - began < 1.5
        assert done.waiting == 1
        scored.append({one.candidate_id for one in done.scored})
    assert len(scored[0]) < 8
    assert len(set[str]().union(*scored)) == 8
    monkeypatch.setattr(Pass, "compared", real)
    assert world.run().waiting == 0


def test_the_sweep_goes_on_though_every_pass_runs_out_of_time(opened, monkeypatch):
    """One memory a pass at least; and one that breaks keeps it at no place."""
    world = settled(opened, seconds_per_pass=0.1)
    ids = sorted(world.remember(f"The build number {number} is kept.") for number in range(3))
    world.gateway.settle()
    monkeypatch.setattr(comparing, "look_at", lambda run, work: time.sleep(0.15))
    swept: list[str] = []

    def judge(run, seen, row):
        swept.append(row.note_id)
        raise RuntimeError("broken")

    monkeypatch.setattr(fading, "judge", judge)
    for _ in range(40):
        with world.parts.ledger.write() as tx:
            dirty.mark(tx, dirty.NOTE, ids[0], OWN)
        world.gateway.consolidation.run()
    assert set(ids) <= set(swept)

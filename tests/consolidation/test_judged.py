"""What was judged, or holds no more: the last copy never goes, and nothing said today disappears behind it."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.clock import now_ms
from gateway.ledger import reviews, skill_configs
from gateway.services import archive, forgetting
from gateway.services.requests import Precondition
from gateway.skills import prune
from gateway.workers.consolidation import comparing, fading, judging
from tests.consolidation.test_memories import DAY, judge, later
from tests.consolidation.world import HERMES, TOM, World

OWN, LONG_TERM = "agent/hermes/memory", "user/tom/long_term"
PORT = ("The wiki is at port 80.", "Port 80 is the wiki.")
TEA = ("I like tea in the garden.", "In the garden I like tea.")
LESSON = "Lesson learned: test the backup before every migration."


def states(world: World, *ids: str) -> list[str]:
    return [world.row(one).status for one in ids]


def switch(world: World, skill: str, enabled: bool) -> None:
    with world.parts.ledger.write() as tx:
        skill_configs.switch(tx, "tom", skill, enabled=enabled)


def test_of_twins_that_are_each_judged_a_duplicate_one_remains(world):
    ids = [world.remember(text) for text in TEA]
    for one in ids:
        judge(world, one, "duplicate", HERMES)
    for _ in range(3):
        world.run()
    assert sorted(states(world, *ids)) == ["active", "archived"]


def test_persons_twins_that_are_each_judged_a_duplicate_are_proposed_for_merging_alone(world):
    """No two drafts of which accepting both would leave nothing."""
    ids = [world.remember(text, TOM) for text in TEA]
    for one in ids:
        judge(world, one, "duplicate")
    for _ in range(2):
        world.run()
    (draft,) = world.drafts()
    assert draft.proposal == "merge"
    world.accept(draft)
    world.run()
    assert sorted(states(world, *ids)) == ["active", "archived"]


def test_a_duplicate_goes_though_it_is_the_surer_and_its_evidence_stays(world):
    """The younger one is looked at first: it is not merged into what is about to leave."""
    older = world.remember(TEA[0], confidence=0.9)
    world.run()
    younger = world.remember(TEA[1], confidence=0.8)
    with world.parts.ledger.write() as tx:
        reviews.add_edges(tx, [(older, "session/s1", "evidence")])
    judge(world, older, "duplicate", HERMES)
    done = [world.run() for _ in range(2)]
    assert states(world, older, younger) == ["archived", "active"]
    assert [union for report in done for union in report.merged] == []
    assert {(younger, "session/s1", "evidence"), (younger, older, "merged")} <= world.edges(younger)


@pytest.mark.parametrize("who", [HERMES, TOM], ids=["agent", "person"])
@pytest.mark.parametrize("pruning", [True, False], ids=["prune", "no-prune"])
def test_what_was_judged_incorrect_takes_nothing_in(world, who, pruning):
    switch(world, "prune", pruning)
    wrong = world.remember(PORT[0], who, confidence=0.9)
    world.run()
    right = world.remember(PORT[1], who, confidence=0.8)
    judge(world, wrong, "incorrect", who)
    for _ in range(2):
        world.run()
    assert world.row(right).status == "active"
    assert world.drafts("merge") == []
    if who is HERMES:
        assert world.row(wrong).status == ("archived" if pruning else "active")


@pytest.mark.parametrize("who", [HERMES, TOM], ids=["agent", "person"])
def test_a_duplicate_of_nothing_stays_and_the_report_says_so(world, who):
    kept = world.remember("The build needs two runners.", who)
    judge(world, kept, "duplicate", who)
    world.gateway.settle()
    for done in (world.gateway.consolidation.run(dry_run=True), world.run(), world.run()):
        assert done.archived == []
        assert [one.reason for one in done.skipped if one.key == kept] == [fading.ALONE]
    assert world.row(kept).status == "active"
    assert world.drafts() == []


def test_a_persons_duplicate_is_proposed_for_the_archive_with_the_name_of_the_other(world):
    kept, twin = (world.remember(text, TOM) for text in TEA)
    judge(world, kept, "duplicate")
    for _ in range(2):
        world.run()
    (draft,) = world.drafts()
    assert (draft.proposal, draft.target_id) == ("archive", kept)
    assert world.row(twin).title in draft.why
    world.accept(draft)
    world.run()
    assert states(world, kept, twin) == ["archived", "active"]


def unsure(world: World) -> str:
    return world.remember(TEA[1], confidence=0.3)


def other_time(world: World) -> str:
    return world.remember(TEA[1], valid_from="2020-01-01")


def passing(world: World) -> str:
    return world.remember(TEA[1], expires_at="2099-01-01T00:00:00Z")


def about_to_go(world: World) -> str:
    """An agent proposed to forget what a person wrote."""
    twin = world.remember(TEA[1], TOM, namespace=LONG_TERM)
    forgetting.forget(HERMES, world.parts, twin, Precondition.of(None, world.row(twin).version))
    return twin


@pytest.mark.parametrize("make", [unsure, other_time, passing, about_to_go], ids=lambda make: make.__name__)
def test_another_that_does_not_surely_stay_lets_no_duplicate_go(opened, make):
    world = World(opened(consolidation={"archive_confidence": 0.35})).people()
    who = TOM if make is about_to_go else HERMES
    kept = world.remember(TEA[0], who)
    make(world)
    world.gateway.settle()
    judge(world, kept, "duplicate", who)
    for _ in range(3):
        world.run()
    assert world.row(kept).status == "active"
    assert [draft for draft in world.drafts("archive") if draft.target_id == kept] == []


@pytest.mark.parametrize("meanwhile", ["incorrect", "archived"])
def test_a_duplicate_stays_if_the_other_one_goes_this_very_moment(world, monkeypatch, meanwhile):
    kept, twin = world.remember(TEA[0], confidence=0.9), world.remember(TEA[1], confidence=0.8)
    judge(world, kept, "duplicate", HERMES)
    world.gateway.settle()
    real = judging.twin

    def then_gone(run, row):
        found = real(run, row)
        if found is not None and meanwhile == "incorrect":
            judge(world, twin, "incorrect", HERMES)
        elif found is not None and world.row(twin).status == "active":
            source = world.parts.files.root / world.row(twin).path
            target = world.parts.files.root / "Memories/Archived/Agents/hermes/Memory" / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            world.parts.importer.scan(settled=True)
        return found

    monkeypatch.setattr(judging, "twin", then_gone)
    done = world.gateway.consolidation.run()
    assert "another memory changed meanwhile" in {one.reason for one in done.skipped}
    assert kept not in {one.id for one in done.archived}
    monkeypatch.setattr(judging, "twin", real)
    for _ in range(2):
        world.run()
    assert world.row(kept).status == "active"


def test_what_is_judged_incorrect_while_it_is_compared_takes_nothing_in(world, monkeypatch):
    wrong = world.remember(PORT[0], confidence=0.9)
    right = world.remember(PORT[1], confidence=0.8)
    world.gateway.settle()
    real = comparing._merge

    def judged_first(run, seen, rows):
        judge(world, wrong, "incorrect", HERMES)
        real(run, seen, rows)

    monkeypatch.setattr(comparing, "_merge", judged_first)
    assert world.gateway.consolidation.run().merged == []
    monkeypatch.setattr(comparing, "_merge", real)
    world.run()
    assert states(world, wrong, right) == ["archived", "active"]


GONE = {
    "over": {"valid_until": "2020-01-01"},
    "not-begun": {"valid_from": "2090-01-01"},
    "doubtful": {"valid_until": "2020-01-01", "temporal_confidence": 0.5},
    "planned": {"valid_until": "2020-01-01", "temporal_kind": "plan"},
}


@pytest.mark.parametrize("again", ["I live in Berlin.", "The user lives in Berlin."], ids=["same", "reworded"])
@pytest.mark.parametrize("fields", GONE.values(), ids=GONE)
def test_a_memory_that_does_not_hold_now_supports_nothing(world, fields, again):
    kept = world.remember("I live in Berlin.", TOM, **fields)
    world.run()
    for number in range(2):
        world.told(again, f"s{number}")
    done = world.run()
    assert done.supported == []
    (draft,) = world.drafts("create")
    assert again in world.draft_text(draft)
    assert world.edges(kept) == set()


@pytest.mark.parametrize("ended", ["expired", "incorrect"])
def test_a_memory_that_expired_or_was_judged_incorrect_supports_nothing(world, ended):
    """It stands there until a person decides about its draft for the archive."""
    soon = {"expires_at": "2099-01-01T00:00:00Z"} if ended == "expired" else {}
    kept = world.remember("My office is in Vienna.", TOM, **soon)
    world.run()
    if ended == "incorrect":
        judge(world, kept, "incorrect")
    with later(365 * 80 if ended == "expired" else 0):
        for number in range(2):
            world.told("My office is in Vienna.", f"s{number}")
        done = [world.run() for _ in range(2)]
        assert [one for report in done for one in report.supported] == []
        assert {draft.proposal for draft in world.drafts()} == {"archive", "create"}
        assert world.row(kept).status == "active"


def test_what_does_not_hold_now_contradicts_nothing(world):
    world.remember("I live in Berlin.", TOM, valid_until="2020-01-01")
    wrong = world.remember("My office is in Vienna.", TOM)
    judge(world, wrong, "incorrect")
    world.run()
    for number in range(2):
        world.told("I live in Hamburg.", f"a{number}")
        world.told("My office is in Graz.", f"b{number}")
    world.run()
    assert world.drafts("conflict") == []
    assert len(world.drafts("create")) == 2


@pytest.mark.parametrize("by_commit", [False, True], ids=["pass", "commit"])
def test_an_agents_own_lesson_is_not_lost_behind_one_whose_time_is_over(world, by_commit):
    """Policy would write it at once; where the text that stands there is in the way, a person is asked."""
    world.told(LESSON, "s0")
    (said,) = world.candidates("s0")
    kept = world.remember(said.content, memory_type=said.memory_type, valid_until="2020-01-01")
    world.run()
    world.say("s1", LESSON)
    world.end("s1", promote=by_commit)
    done = world.run()
    assert done.supported == []
    written = [row for row in world.rows(OWN) if row.note_id != kept]
    assert len([*world.drafts("create"), *written]) == 1
    assert world.edges(kept) == set()
    assert kept not in {one.memory_id for number in range(2) for one in world.candidates(f"s{number}")}


def test_what_is_said_again_has_not_faded(world):
    """A memory that a conversation repeats is not archived behind its back, and the conversation with it."""
    kept = world.remember("I like walks in the forest.")
    world.run()
    with later(200):
        with world.parts.ledger.write() as tx:
            reviews.add_edges(tx, [(kept, "session/s1", "evidence")])
        assert world.run().archived == []
        assert world.row(kept).status == "active"
    with later(600):
        assert [one.id for one in world.run().archived] == [kept]


def test_a_persons_faded_note_takes_nothing_in_but_is_still_argued_with(world):
    """It is only proposed for the archive: a merge into it could be accepted, and then the archive; but what
    contradicts it does not get lost while they decide."""
    faded = world.remember("I live in Berlin.", TOM)
    world.run()
    with later(400):
        world.run()
        (draft,) = world.drafts()
        assert (draft.proposal, draft.target_id) == ("archive", faded)
        again = world.remember("The user lives in Berlin.", TOM)
        world.run()
        assert world.drafts() == [draft]
        assert world.row(again).status == "active"
        forgetting.forget(TOM, world.parts, again, Precondition.of(None, world.row(again).version))
        world.remember("I live in Hamburg.", TOM)
        assert world.run().waiting == 1
        world.reject(draft)
        world.run()
        (draft,) = world.drafts()
        assert (draft.proposal, draft.target_id) == ("conflict", faded)


def test_a_memory_whose_time_is_over_reaches_no_profile(world):
    kept = world.remember("I prefer dark mode.", TOM, memory_type="preference", valid_until="2020-01-01")
    with world.parts.ledger.write() as tx:
        reviews.add_edges(tx, [(kept, f"session/s{number}", "evidence") for number in range(3)])
    world.run()
    assert world.drafts() == []


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({}, True),
        ({"valid_until": "2020-01-01"}, False),
        ({"valid_from": "2090-01-01"}, False),
        ({"valid_from": "2020-01-01", "valid_until": "2090-01-01"}, True),
        ({"valid_until": "2020-01-01", "temporal_confidence": 0.2}, False),
        ({"valid_from": "2020-01-01", "valid_until": "2020-01-02", "temporal_kind": "event"}, True),
        ({"valid_from": "2090-01-01", "temporal_kind": "plan"}, True),
        ({"valid_from": "2020-01-01", "temporal_kind": "plan"}, False),
        ({"valid_from": "2020-01-01", "valid_until": "2020-01-02", "temporal_kind": "recurring"}, True),
        ({"valid_from": "2090-01-01", "temporal_kind": "recurring"}, False),
        ({"expires_at": "2099-01-01T00:00:00Z"}, True),
    ],
)
def test_what_holds_now(world, fields, holds):
    row = world.row(world.remember("The office closes at nine.", **fields))
    assert prune.holds(row, (), now_ms()) is holds
    assert not prune.holds(row, ("incorrect",), now_ms())
    assert prune.holds(row, ("incorrect", "useful"), now_ms()) is holds
    if row.expires_at is not None:
        assert not prune.holds(row, (), now_ms() + 36_500 * DAY)


def test_an_operator_has_back_what_went_as_a_duplicate(world):
    kept, twin = world.remember(TEA[0], confidence=0.5), world.remember(TEA[1], confidence=0.9)
    judge(world, kept, "duplicate", HERMES)
    assert [one.id for one in world.run().archived] == [kept]
    archive.restore(LOCAL_OPERATOR, world.parts, kept)
    for _ in range(2):
        world.run()
    assert states(world, kept, twin) == ["active", "active"]

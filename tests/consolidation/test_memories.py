"""Memories: agents' repeats merge, persons' are proposed for it; contradictions are shown; what fades is archived."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.clock import clock_set, now_ms
from gateway.errors import Conflict, NotAllowed
from gateway.ledger import usage
from gateway.services import archive, feedback
from gateway.services.requests import Feedback
from tests.consolidation.world import HERMES, TOM, World

OWN, LONG_TERM = "agent/hermes/memory", "user/tom/long_term"
DAY = 86_400_000
ALLERGIC = [
    "I am allergic to peanuts.",
    "The user is allergic to peanuts.",
    "我对花生过敏。",
    "请记住我对花生过敏。",
    "Please note that I'm allergic to peanuts",
]


def later(days: float):
    """The clock, so many days on."""
    at = now_ms() + int(days * DAY)
    return clock_set(lambda: at)


def judge(world: World, note_id: str, judgement: str, who=TOM) -> None:
    feedback.give(who, world.parts, note_id, Feedback.model_validate({"feedback": judgement}))


def test_an_agents_own_repeats_merge_and_the_surest_leads(world):
    """The others are archived with their bytes, and lineage says where they went."""
    ids = [world.remember(text, confidence=0.6 + 0.05 * number) for number, text in enumerate(ALLERGIC)]
    data = {one: world.parts.files.read(world.row(one).path).data for one in ids}
    for _ in range(2):
        assert not world.run().failed
    (left,) = world.rows(OWN)
    assert left.note_id == ids[-1]
    for one in ids[:-1]:
        row = world.row(one)
        assert row.status == "archived"
        assert row.path.startswith("Memories/Archived/Agents/hermes/Memory/")
        assert world.parts.files.read(row.path).data == data[one]
        assert (ids[-1], one, "merged") in world.edges(one)
    assert world.parts.files.read(left.path).data == data[ids[-1]]


def test_evidence_of_all_is_evidence_of_the_one_that_remains(world):
    from gateway.ledger import reviews

    ids = [world.remember(text) for text in ALLERGIC[:3]]
    with world.parts.ledger.write() as tx:
        reviews.add_edges(tx, [(one, f"session/s{number}", "evidence") for number, one in enumerate(ids)])
    world.run()
    (left,) = world.rows(OWN)
    assert {f"session/s{number}" for number in range(3)} <= {parent for _, parent, _ in world.edges(left.note_id)}


def test_what_a_person_wrote_is_only_proposed_for_merging(world):
    """Nothing is moved until they accept; then one remains and the lineage stands."""
    ids = [world.remember(text, TOM) for text in ALLERGIC[:3]]
    before = {one: world.parts.files.read(world.row(one).path).data for one in ids}
    world.run()
    world.run()
    (draft,) = world.drafts("merge")
    assert {one: world.parts.files.read(world.row(one).path).data for one in ids} == before
    kept = world.accept(draft)
    assert [row.note_id for row in world.rows(LONG_TERM)] == [kept]
    assert {(kept, one, "merged") for one in ids if one != kept} <= world.edges(kept)


def test_a_rejected_merge_does_not_come_back(world):
    for text in ALLERGIC[:2]:
        world.remember(text, TOM)
    world.run()
    (draft,) = world.drafts("merge")
    world.reject(draft)
    judge(world, world.rows(LONG_TERM)[0].note_id, "useful")
    world.run()
    assert world.drafts() == []
    assert len(world.rows(LONG_TERM)) == 2


@pytest.mark.parametrize("who", [TOM, HERMES], ids=["person", "agent"])
def test_a_contradiction_is_laid_before_a_person_with_both_sides(world, who):
    """Accepting keeps the newer text in the older note and retires the other; until then nothing is touched."""
    older = world.remember("I live in Berlin.", who)
    newer = world.remember("I live in Hamburg.", who)
    world.run()
    (draft,) = world.drafts("conflict")
    assert draft.target_id == older
    text = world.draft_text(draft)
    assert "I live in Berlin." in text
    assert "I live in Hamburg." in text
    assert "needs_review" in text
    space = OWN if who is HERMES else LONG_TERM
    assert world.texts(space) == ["I live in Berlin.", "I live in Hamburg."]
    world.run()
    assert len(world.drafts()) == 1
    assert world.accept(draft) == older
    assert world.texts(space) == ["I live in Hamburg."]
    assert world.row(newer).status == "archived"


def test_a_conversation_that_contradicts_a_memory_becomes_a_draft_against_it(world):
    kept = world.remember("I like working from home.", TOM)
    world.told("I hate working from home.", "s1")
    world.run()
    (draft,) = world.drafts("conflict")
    assert (draft.target_id, draft.namespace) == (kept, LONG_TERM)
    world.reject(draft)
    assert [one.status for one in world.candidates("s1")] == ["rejected"]
    assert world.texts(LONG_TERM) == ["I like working from home."]


def test_what_nobody_asks_for_fades_and_goes_to_the_archive(world):
    """An agent's: weighed in place, one property alone, as old as before; at last archived."""
    kept = world.remember("The build needs two runners.")
    used = world.remember("The office closes at nine.")
    world.run()
    before = world.row(kept)
    data = world.parts.files.read(before.path).data
    with later(45):
        with world.parts.ledger.write() as tx:
            usage.count(tx, {used: 1})
        done = world.run()
        assert [(one.id, one.written) for one in done.faded] == [(kept, True)]
        row = world.row(kept)
        assert 0.3 < row.importance < 0.4
        assert row.updated_at == before.updated_at
        changed = world.parts.files.read(row.path).data.splitlines()
        other = [(one, two) for one, two in zip(data.splitlines(), changed, strict=True) if one != two]
        assert len(other) == 1
        assert other[0][0].startswith(b"importance:")
        assert world.run().faded == []
    with later(200):
        done = world.run()
        assert kept in {one.id for one in done.archived}
        assert world.row(kept).status == "archived"


def test_a_persons_note_is_never_written_to_and_only_proposed_for_the_archive(world):
    kept = world.remember("The build needs two runners.", TOM)
    data = world.parts.files.read(world.row(kept).path).data
    with later(45):
        assert [(one.id, one.written) for one in world.run().faded] == [(kept, False)]
    with later(400):
        world.run()
        (draft,) = world.drafts("archive")
        assert draft.target_id == kept
        world.run()
        assert len(world.drafts()) == 1
        assert world.parts.files.read(world.row(kept).path).data == data
        world.accept(draft)
        assert world.row(kept).status == "archived"


@pytest.mark.parametrize("judgement", ["incorrect", "duplicate"])
def test_what_was_judged_wrong_is_archived_and_can_be_restored(world, judgement):
    kept = world.remember("The build needs two runners.")
    if judgement == "duplicate":  # of what: nothing is a duplicate by itself
        world.remember("the build needs 2 runners", confidence=0.6)
    path = world.row(kept).path
    judge(world, kept, judgement, HERMES)
    done = world.run()
    assert [one.id for one in done.archived] == [kept]
    with pytest.raises(NotAllowed):
        archive.restore(HERMES, world.parts, kept)
    archive.restore(LOCAL_OPERATOR, world.parts, kept)
    assert (world.row(kept).path, world.row(kept).status) == (path, "active")
    with pytest.raises(Conflict):
        archive.restore(LOCAL_OPERATOR, world.parts, kept)
    world.run()
    assert world.row(kept).status == "active"


def test_what_has_expired_is_archived(world):
    kept = world.remember("The code of the week is yellow.", expires_at="2099-01-01T00:00:00Z")
    world.run()
    assert world.row(kept).status == "active"
    with later(365 * 80):
        world.run()
        assert world.row(kept).status == "archived"


def test_other_visibility_time_or_namespace_is_never_merged(world):
    world.remember("I am allergic to peanuts.", TOM)
    world.remember("I am allergic to peanuts.")
    world.remember("We meet at noon.", valid_from="2030-01-01")
    world.remember("we meet at noon", valid_from="2031-01-01")
    world.run()
    assert world.drafts() == []
    assert len(world.rows(LONG_TERM)) == 1
    assert len(world.rows(OWN)) == 3

"""A switched-off skill, a full budget, a fence or an error that passes is no person's no: nothing is lost by it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gateway.errors import BeingCleared, CannotPatch, SecretFound, SkillDisabled, Unavailable
from gateway.ledger import dirty
from gateway.services import candidates as candidate_service
from gateway.workers.consolidation import comparing, sifting, work
from gateway.workers.consolidation.work import Seen
from tests.consolidation.test_fairness import stable_preference
from tests.consolidation.test_judged import OWN, switch
from tests.consolidation.test_pass import everything
from tests.consolidation.test_profile import profile_drafts
from tests.consolidation.world import TOM

OFF = work.NO_DRAFTS


@pytest.mark.parametrize("skill", ["export_to_obsidian", "commit"])
def test_what_is_said_while_a_skill_is_off_is_proposed_when_it_is_on_again(world, skill):
    switch(world, skill, False)
    for number in range(2):
        world.told("I enjoy rowing at dusk.", f"s{number}")
    for _ in range(2):
        done = world.run()
        assert done.proposed == []
        assert done.waiting > 0
    assert sorted(one.status for number in range(2) for one in world.candidates(f"s{number}")) == [
        "candidate",
        "merged",
    ]
    switch(world, skill, True)
    world.run()
    assert len(world.drafts("create")) == 1


def test_a_contradiction_said_while_drafts_are_off_is_proposed_when_they_are_on_again(world):
    world.remember("I live in Berlin.", TOM)
    world.run()
    switch(world, "export_to_obsidian", False)
    for number in range(2):
        world.told("I live in Hamburg.", f"s{number}")
    for _ in range(2):
        done = world.run()
        assert OFF in {one.reason for one in done.skipped}
        assert {one.status for number in range(2) for one in world.candidates(f"s{number}")} == {"candidate"}
        assert done.items <= 3
    switch(world, "export_to_obsidian", True)
    world.run()
    assert len(world.drafts("conflict")) == 1


@pytest.mark.parametrize(
    "lines", [("I live in Berlin.", "I live in Hamburg."), ("I am allergic to nuts.", "我对坚果过敏。")]
)
def test_what_memories_say_while_drafts_are_off_is_proposed_when_they_are_on_again(world, lines):
    switch(world, "export_to_obsidian", False)
    for line in lines:
        world.remember(line, TOM)
    for _ in range(2):
        assert world.run().proposed == []
    switch(world, "export_to_obsidian", True)
    world.run()
    assert len(world.drafts()) == 1


def test_a_profile_is_proposed_when_drafts_are_on_again(world):
    switch(world, "export_to_obsidian", False)
    stable_preference(world, TOM)
    assert world.run().waiting == 1
    switch(world, "export_to_obsidian", True)
    world.run()
    assert len(profile_drafts(world)) == 1


def test_a_dry_run_with_drafts_off_writes_nothing(world):
    world.remember("I live in Berlin.", TOM)
    world.told("I live in Hamburg.", "s1")
    switch(world, "export_to_obsidian", False)
    world.gateway.settle()
    before = everything(world)
    assert world.gateway.consolidation.run(dry_run=True).proposed == []
    assert everything(world) == before


def test_a_person_who_said_no_to_a_contradiction_is_not_asked_again(world):
    kept = world.remember("I live in Berlin.", TOM)
    world.run()
    world.told("I live in Hamburg.", "s1")
    world.run()
    (draft,) = world.drafts("conflict")
    world.reject(draft)
    world.say("s2", "I live in Hamburg.")
    world.end("s2")
    for _ in range(2):
        world.run()
    assert world.drafts() == []
    assert world.text(kept) == "I live in Berlin."


def test_a_model_is_not_asked_for_ever_about_what_waits_for_a_switch(world):
    run = SimpleNamespace(parts=world.parts, dry=False, model="model")
    seen = [Seen(dirty.Dirty("note", "m", OWN, 1, tries, 1, 1), "", "tom", {}) for tries in (3, 4)]
    assert [work.model_for(run, one) for one in seen] == ["model", "model"]
    switch(world, "commit", False)
    assert [work.model_for(run, one) for one in seen] == ["model", None]


@pytest.mark.parametrize(
    "error", [BeingCleared("it is being cleared"), SkillDisabled("off"), Unavailable("gone")], ids=lambda one: one.code
)
def test_an_error_that_passes_leaves_a_candidate_for_later(world, monkeypatch, error):
    real = candidate_service.let_through

    def fail(*_):
        raise error

    world.told("Remember that I am allergic to peanuts.", "s1")
    monkeypatch.setattr(candidate_service, "let_through", fail)
    done = world.run()
    assert error.code in {one.reason for one in done.skipped}
    assert done.waiting > 0
    monkeypatch.setattr(candidate_service, "let_through", real)
    world.run()
    assert len(world.drafts("create")) == 1


def test_one_candidate_that_fails_keeps_no_other_of_its_session_out(world, monkeypatch):
    real = sifting._met_memory

    def fail(run, seen, one):
        if "window" in one.content:
            raise SecretFound("no")
        return real(run, seen, one)

    monkeypatch.setattr(sifting, "_met_memory", fail)
    world.told("Remember that I sit at the window. Remember that I am allergic to peanuts.", "s1")
    done = world.run()
    assert len(done.failed) == 1
    assert len(world.drafts("create")) == 1


def test_one_neighbour_that_fails_keeps_no_other_out(world, monkeypatch):
    def fail(*_):
        raise CannotPatch("its properties cannot be read")

    monkeypatch.setattr(comparing, "_conflict", fail)
    world.remember("I eat meat.")
    ids = [world.remember(text) for text in ("I don't eat meat.", "The user does not eat meat.")]
    done = world.run()
    assert {one.reason for one in done.failed} == {"cannot-patch"}
    assert sorted(world.row(one).status for one in ids) == ["active", "archived"]

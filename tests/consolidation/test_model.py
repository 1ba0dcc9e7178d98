"""With a language model, and with one that misbehaves: rules take over, nothing is lost, the budget is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gateway.ledger import skill_configs
from tests.consolidation.model_server import MISBEHAVIOURS, ModelServer
from tests.consolidation.world import World

SAID = "the dark theme is the one for me, everywhere"
OWN = "agent/hermes/memory"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """The chat service; stopped at the end."""
    running = ModelServer()
    yield running
    running.stop()


def world_with(opened, server: ModelServer, **consolidation) -> World:
    llm = server.llm
    return World(opened(llm=llm, consolidation=consolidation)).people()


def test_a_model_finds_what_rules_do_not(opened, server):
    """The transcript is framed as data; a number nobody said is not believed."""
    world = world_with(opened, server)
    world.say("s1", SAID)
    world.say("s2", "invent something")
    world.say("s3", "夜里别给我发消息")
    for session_id in ("s1", "s2", "s3"):
        _commit_without_model(world, session_id)
    done = world.run()
    assert done.extracted_by == {"model": 2}
    assert done.model_calls == 3
    assert world.candidates("s2") == []
    assert [one.content for one in world.candidates("s3")] == ["用户不希望夜里收到消息。"]


@pytest.mark.parametrize("behaviour", MISBEHAVIOURS)
def test_when_the_model_misbehaves_the_rules_take_over(opened, server, behaviour):
    world = world_with(opened, server, seconds_per_pass=20)
    server.behaviour = behaviour
    for number in range(5):
        world.say(f"s{number}", f"I prefer the aisle seat number {number}.")
        _commit_without_model(world, f"s{number}")
    done = world.run()
    assert done.failed == []
    assert done.extracted_by == {"rules": 5}
    assert done.model_calls <= 3
    assert all(len(world.candidates(f"s{number}")) == 1 for number in range(5))


def test_the_calls_of_a_pass_are_counted_and_the_rest_is_read_later(opened, server):
    world = world_with(opened, server, model_calls_per_pass=2)
    for number in range(5):
        world.say(f"s{number}", SAID)
        _commit_without_model(world, f"s{number}")
    assert [world.run().model_calls for _ in range(3)] == [2, 2, 1]
    for _ in range(3):
        world.run()
    assert all(len(world.candidates(f"s{number}")) == 1 for number in range(5))


def test_a_model_confirms_what_words_leave_open_and_is_not_asked_about_the_rest(opened, server):
    world = world_with(opened, server)
    ids = [world.remember(text) for text in server.recorded["same"]["reviews"]]
    world.remember("My brother plays the piano.")
    world.remember("My brother plays the violin.")
    for _ in range(2):
        world.run()
    assert len({row.note_id for row in world.rows(OWN)} & set(ids)) == 1
    assert len(world.rows(OWN)) == 3
    server.asked.clear()
    world.remember("The port is 8080.")
    world.remember("The port is 8081.")
    world.run()
    assert server.asked == []


def test_a_stop_does_not_wait_for_a_slow_model(opened, server):
    """The pass ends within a moment of being told, and the episode is read another time."""
    world = world_with(opened, server)
    server.behaviour, server.slow_seconds = "slow", 5.0
    world.say("s1", SAID)
    _commit_without_model(world, "s1")
    world.gateway.settle()
    began = time.monotonic()
    going = [True]
    server.before = lambda: going.__setitem__(0, False)
    done = world.gateway.consolidation.run(keep_going=lambda: going[0])
    assert time.monotonic() - began < 1.0
    assert done.waiting >= 1
    server.behaviour, server.before = "good", lambda: None
    world.run()
    assert [one.content for one in world.candidates("s1")] == ["The user prefers a dark theme in every editor."]


def test_a_configuration_that_changes_in_mid_pass_fences_the_result_out(opened, server):
    """While the model thinks, the user switches extraction off: nothing of its answer is kept."""
    world = world_with(opened, server)
    world.say("s1", SAID)
    _commit_without_model(world, "s1")
    world.gateway.settle()

    def switch(enabled: bool) -> None:
        with world.parts.ledger.write() as tx:
            skill_configs.switch(tx, "tom", "extract", enabled=enabled)

    server.before = lambda: switch(False)
    done = world.gateway.consolidation.run()
    assert [one.reason for one in done.skipped if one.kind == "session"] == ["it changed while it was read"]
    assert world.candidates("s1") == []
    server.before = lambda: None
    assert world.run().extracted == 0
    switch(True)
    world.say("s1", "and so on")
    _commit_without_model(world, "s1")
    assert world.run().extracted == 1


def test_a_new_word_in_mid_pass_sends_the_work_round_again(opened, server):
    """A newer generation: what was read is read anew, not written stale."""
    world = world_with(opened, server)
    world.say("s1", SAID)
    _commit_without_model(world, "s1")
    world.gateway.settle()
    server.before = lambda: world.say("s1", "夜里别给我发消息")
    done = world.gateway.consolidation.run()
    assert done.extracted == 0
    assert world.candidates("s1") == []
    server.before = lambda: None
    _commit_without_model(world, "s1")
    world.run()
    assert len(world.candidates("s1")) == 2


def _commit_without_model(world: World, session_id: str) -> None:
    """The session ends; its episodes stay behind the cursor, for consolidation."""
    from gateway.ledger import sessions
    from gateway.services.sessions import mark_session

    with world.parts.ledger.write() as tx:
        sessions.change_session(tx, "tom", session_id, status="committed")
        found = sessions.session(tx, "tom", session_id, at=0)
        mark_session(tx, found)

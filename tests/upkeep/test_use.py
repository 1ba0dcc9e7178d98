"""How often a memory was shown: once a turn, only what was shown, and not twice after a restart."""

from __future__ import annotations

import time

import pytest

from gateway.ledger import usage
from tests.api.conftest import eventually
from tests.servers import key_for, must, people, served


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):
    with served(tmp_path_factory.mktemp("use") / "data", template) as server:
        people(server)
        yield server


def hits(server, memory_id: str) -> int:
    server.gateway.parts.uses.flush()
    return must(server, "GET", f"/v1/memory/{memory_id}/lineage")["use"]["hits"]


def search(server, key, query, **fields):
    return must(server, "POST", "/v1/memory/search", key, json={"query": query, **fields})["results"]


def test_a_turn_counts_once_and_each_unnamed_request_is_one(world):
    tom = key_for(world, "user", "tom")
    made = world.write("The zebra crossing is on Elm Street.", user_id="tom")["id"]
    other = world.write("The zebra in the zoo is old.", user_id="tom")["id"]
    for _ in range(3):
        search(world, tom, "crossing Elm Street", turn_id="t1", limit=1)
    assert hits(world, made) == 1
    for _ in range(3):
        must(world, "POST", "/v1/context", tom, json={"query": "crossing Elm Street", "turn_id": "t1"})
    assert hits(world, made) == 1
    search(world, tom, "crossing Elm Street", turn_id="t2", limit=1)
    search(world, tom, "crossing Elm Street", limit=1)
    search(world, tom, "crossing Elm Street", limit=1)
    assert hits(world, made) == 4
    before = hits(world, other)
    search(world, tom, "zebra zoo old", turn_id="t1", limit=1)
    assert hits(world, other) == before + 1


def test_what_is_left_out_is_not_counted(world):
    """Suppressed before it is counted (seed 002), or without room."""
    tom = key_for(world, "user", "tom")
    shown = world.write("The quokka festival is in May.", user_id="tom")["id"]
    hidden = world.write("The quokka named Voldemort bites.", user_id="tom")["id"]
    must(world, "POST", "/v1/directives", tom, json={"content": "Voldemort", "kind": "suppress_topic"})
    found = [one["memory"]["id"] for one in search(world, tom, "quokka")]
    assert shown in found
    assert hidden not in found
    assert (hits(world, shown), hits(world, hidden)) == (1, 0)
    long = world.write("The wombat " + "digs and digs. " * 400, user_id="tom")["id"]
    answer = must(world, "POST", "/v1/context", tom, json={"query": "wombat digs", "token_budget": 64})
    dropped = long not in [one["id"] for one in answer["manifest"]["chosen"]]
    assert hits(world, long) == (0 if dropped else 1)


def test_a_turn_is_not_counted_again_after_a_restart(tmp_path, template):
    with served(tmp_path / "data", template) as server:
        people(server)
        tom = key_for(server, "user", "tom")
        made = server.write("The ferry leaves at nine.", user_id="tom")["id"]
        search(server, tom, "ferry", turn_id="t1")
        eventually(lambda: must(server, "GET", f"/v1/memory/{made}/lineage", tom)["use"]["hits"] == 1, 5)
        last = must(server, "GET", f"/v1/memory/{made}/lineage", tom)["use"]["last_hit_at"]
        assert last.endswith("Z")
    with served(tmp_path / "data", template) as server:
        search(server, tom, "ferry", turn_id="t1")
        time.sleep(1.2)
        assert hits(server, made) == 1
        search(server, tom, "ferry", turn_id="t2")
        assert hits(server, made) == 2


def test_a_forgotten_memory_is_not_counted_into_being(world):
    tom = key_for(world, "user", "tom")
    made = world.write("The heron by the pond.", user_id="tom")
    parts = world.gateway.parts
    must(world, "DELETE", f"/v1/memory/{made['id']}", tom, params={"version": 1})
    parts.uses.shown(None, [made["id"]])
    parts.uses.shown(usage.turn_of("x"), [made["id"]])
    parts.uses.flush()
    with parts.ledger.read() as tx:
        assert usage.of(tx, [made["id"]]) == {}

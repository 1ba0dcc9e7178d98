"""Lineage over the API: both ways, only what may be read, and kept when the audit is trimmed."""

from __future__ import annotations

import itertools

import pytest

from gateway.ledger import audit, reviews
from tests.api.conftest import eventually
from tests.servers import call, key_for, must, people, served


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):
    with served(tmp_path_factory.mktemp("lineage") / "data", template) as server:
        people(server)
        yield server


@pytest.fixture(scope="module")
def keys(world):
    return {
        "tom": key_for(world, "user", "tom"),
        "ann": key_for(world, "user", "ann"),
        "hermes": key_for(world, "agent", "tom", "hermes"),
    }


def edges(found: dict) -> set[tuple[str, str, str]]:
    return {(one["child"], one["parent"], one["relation"]) for one in found["edges"]}


def states(found: dict) -> dict[str, tuple[str, str]]:
    return {one["id"]: (one["kind"], one["state"]) for one in found["nodes"]}


def relate(world, *new) -> None:
    with world.gateway.parts.ledger.write() as tx:
        reviews.add_edges(tx, new)


def test_a_memory_leads_back_to_its_draft_and_what_was_said(world, keys):
    said = must(
        world, "POST", "/v1/episodes", keys["hermes"],
        json={"session_id": "s_tea", "content": "Remember that I drink only green tea, always."},
    )  # fmt: skip
    inferred = {"content": "Tom drinks only green tea.", "source": "conversation", "confidence": 0.6}
    review = call(world, "POST", "/v1/memory", keys["hermes"], json=inferred).json()["review"]["id"]
    accepted = must(world, "POST", f"/v1/reviews/{review}/accept", keys["tom"], json={})["memory_id"]
    relate(world, (accepted, said["id"], "evidence"), (accepted, "session/s_tea", "evidence"))
    found = must(world, "GET", f"/v1/memory/{accepted}/lineage", keys["tom"])
    assert (accepted, review, "accepted") in edges(found)
    assert states(found) == {
        accepted: ("memory", "active"),
        review: ("draft", "accepted"),
        said["id"]: ("episode", "kept"),
        "session/s_tea": ("session", "open"),
    }
    assert must(world, "GET", f"/v1/memory/{accepted}/lineage", keys["hermes"])["edges"] == found["edges"]
    assert "green tea" not in str(found)
    assert all(one["at"].endswith("Z") for one in found["edges"])
    trimmed_from = states(found)
    with world.gateway.parts.ledger.write() as tx:
        assert audit.trim(tx, 2**60) > 0
    again = must(world, "GET", f"/v1/memory/{accepted}/lineage", keys["tom"])
    assert (states(again), edges(again)) == (trimmed_from, edges(found))


def test_a_committed_session_leaves_its_trace(world, keys):
    """What policy lets through without a draft knows its session and episodes too; later only that they were."""
    for text in ("我叫汤姆，我喜欢喝绿茶，请记住。", "Remember: my sister lives in Oslo."):
        must(world, "POST", "/v1/episodes", keys["tom"], json={"session_id": "s_own", "content": text})
    body = {"min_importance": 0.0}
    done = must(world, "POST", "/v1/sessions/s_own/commit", keys["tom"], json=body)
    assert done["promoted"], done
    found = must(world, "GET", f"/v1/memory/{done['promoted'][0]['id']}/lineage", keys["tom"])
    assert ("session", "committed") in states(found).values()
    assert "episode" in {kind for kind, _ in states(found).values()}
    parts = world.gateway.parts
    from gateway.ledger import sessions

    with parts.ledger.write() as tx:
        sessions.purge_expired(tx, 2**60)
    later = must(world, "GET", f"/v1/memory/{done['promoted'][0]['id']}/lineage", keys["tom"])
    assert {kind: state for kind, state in states(later).values() if kind in ("session", "episode")} == {
        "session": "gone", "episode": "gone",
    }  # fmt: skip
    assert edges(later) == edges(found)


def test_both_ways_and_as_deep_as_asked(world, keys):
    made = [world.write(f"Chain number {n}.", user_id="tom")["id"] for n in range(6)]
    relate(world, *((child, parent, "merged") for parent, child in itertools.pairwise(made)))
    middle = must(world, "GET", f"/v1/memory/{made[2]}/lineage", keys["tom"])
    assert set(states(middle)) == set(made)
    one = must(world, "GET", f"/v1/memory/{made[2]}/lineage", keys["tom"], params={"depth": 1})
    assert set(states(one)) == set(made[1:4])
    assert one["depth"] == 1
    for depth in (0, 11, "x"):
        assert (
            call(world, "GET", f"/v1/memory/{made[2]}/lineage", keys["tom"], params={"depth": depth}).status_code == 400
        )


def test_what_may_not_be_read_is_left_out_with_its_edges(world, keys):
    mine = world.write("Tom's own text about boats.", user_id="tom")["id"]
    hers = world.write("Ann's own text about boats.", user_id="ann")["id"]
    behind = world.write("Tom's text behind Ann's.", user_id="tom")["id"]
    relate(world, (mine, hers, "merged"), (hers, behind, "merged"), (hers, mine, "derived_from"))
    found = must(world, "GET", f"/v1/memory/{mine}/lineage", keys["tom"])
    assert (set(states(found)), edges(found)) == ({mine}, set())
    assert {mine, hers, behind} == set(states(must(world, "GET", f"/v1/memory/{mine}/lineage")))
    other = call(world, "GET", f"/v1/memory/{mine}/lineage", keys["ann"])
    missing = call(world, "GET", "/v1/memory/mem_none/lineage", keys["ann"])
    assert (other.status_code, missing.status_code) == (404, 404)


def test_an_id_that_is_only_claimed_says_nothing_of_what_exists(world, keys):
    """Another's id and nobody's answer alike."""
    hers = world.write("Ann's text that Tom guesses at.", user_id="ann")["id"]
    mine = world.write("Tom's text that names others.", user_id="tom")
    path = world.vault / mine["path"]
    names = f"derived_from: [{hers}, mem_00000000000000000000000000, cand_0000]\n"
    path.write_text(path.read_text("utf-8").replace("---\n", f"---\n{names}", 1), "utf-8")
    eventually(lambda: must(world, "GET", f"/v1/memory/{mine['id']}", keys["tom"])["version"] == 2)
    found = must(world, "GET", f"/v1/memory/{mine['id']}/lineage", keys["tom"])
    assert (set(states(found)), edges(found)) == ({mine["id"]}, set())


def test_what_a_note_names_is_its_lineage(world, keys):
    old = world.write("The old rule.", user_id="tom", summary="Old rule")
    base = world.write("A base.", user_id="tom", summary="Base of it")
    new = world.write("The new rule.", user_id="tom", summary="New rule")
    path = world.vault / new["path"]
    title = (world.vault / base["path"]).stem
    before = path.read_text("utf-8")
    names = f'supersedes: [{old["id"]}]\nderived_from: ["[[{title}|the base]]"]\n'
    path.write_text(before.replace("---\n", f"---\n{names}", 1), "utf-8")
    wanted = {(new["id"], old["id"], "supersedes"), (new["id"], base["id"], "derived_from")}
    eventually(lambda: edges(must(world, "GET", f"/v1/memory/{new['id']}/lineage", keys["tom"])) == wanted)
    assert edges(must(world, "GET", f"/v1/memory/{old['id']}/lineage", keys["tom"])) == {
        (new["id"], old["id"], "supersedes")
    }
    path.write_text(before, "utf-8")
    eventually(lambda: edges(must(world, "GET", f"/v1/memory/{new['id']}/lineage", keys["tom"])) == set())


def test_a_forgotten_memory_is_404_and_only_a_name_to_its_own_user(world, keys):
    gone = world.write("Soon forgotten.", user_id="tom")
    kept = world.write("Stays.", user_id="tom")["id"]
    relate(world, (kept, gone["id"], "merged"))
    must(world, "DELETE", f"/v1/memory/{gone['id']}", keys["tom"], params={"version": 1})
    assert call(world, "GET", f"/v1/memory/{gone['id']}/lineage", keys["tom"]).status_code == 404
    found = must(world, "GET", f"/v1/memory/{kept}/lineage", keys["tom"])
    assert states(found)[gone["id"]] == ("memory", "gone")

"""Consolidation over HTTP and from the command line, beside a running server and alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.conftest import eventually
from tests.journeys.running import run, serving
from tests.servers import call, key_for, must, people, served

LINES = ["I am allergic to peanuts.", "The user is allergic to peanuts.", "我对花生过敏。"]


def consolidate(data: Path, *options: str) -> dict:
    done = run("consolidate", "--data-dir", data, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def server(tmp_path, template):
    """A server with people in it, whose loop does not consolidate."""
    with served(tmp_path / "data", template, consolidation={"enabled": False}) as running:
        people(running)
        yield running


def remembered(server, key: str) -> list[str]:
    body = {"namespace": "agent/hermes/memory"}
    made = [
        must(server, "POST", "/v1/memory", key, json={"content": line, **body}, headers={"Prefer": "wait=5"})
        for line in LINES
    ]
    return [one["id"] for one in made]


def test_a_pass_over_http_merges_and_what_was_archived_can_be_had_back(server):
    hermes, tom = key_for(server, "agent", "tom", "hermes"), key_for(server, "user", "tom")
    ids = remembered(server, hermes)
    assert call(server, "POST", "/v1/consolidate", hermes, json={}).status_code == 403
    assert call(server, "POST", "/v1/consolidate", tom).status_code == 403
    assert call(server, "POST", "/v1/consolidate", json={"dry": True}).status_code == 400
    would = must(server, "POST", "/v1/consolidate", json={"dry_run": True})
    assert [one["how"] for one in would["merged"]] == ["would be"]
    done = must(server, "POST", "/v1/consolidate")
    (merged,) = done["merged"]
    assert {merged["leader"], *merged["others"]} == set(ids)
    gone = merged["others"][0]
    path = f"/v1/memory/{gone}/restore"
    assert call(server, "POST", path, hermes).status_code == 403
    ann = key_for(server, "user", "ann")
    assert call(server, "POST", path, ann).status_code == 404
    back = must(server, "POST", path)
    assert back["id"] == gone
    assert must(server, "GET", f"/v1/memory/{gone}", hermes)["status"] == "active"
    assert call(server, "POST", path).status_code == 409


def test_the_command_asks_the_running_server_and_works_alone(tmp_path):
    data = tmp_path / "data"
    with serving(data) as server:
        for line in LINES:
            body = {"content": line, "agent_id": "assistant", "namespace": "agent/assistant/memory"}
            assert server.http.post("/v1/memory", json=body, headers={"Prefer": "wait=5"}).status_code == 201
        would = consolidate(data, "--dry-run")
        assert (len(would["merged"]), would["dry_run"]) == (1, True)
    done = consolidate(data)
    assert len(done["merged"]) == 1
    assert consolidate(data)["merged"] == []
    told = run("consolidate", "--data-dir", data)
    assert told.returncode == 0
    assert "items looked at" in told.stdout


def test_the_loop_consolidates_by_itself_and_stops_in_time(tmp_path, template):
    with served(tmp_path / "data", template, consolidation={"every_seconds": 1}) as server:
        people(server)
        hermes = key_for(server, "agent", "tom", "hermes")
        ids = remembered(server, hermes)

        def merged() -> bool:
            states = [must(server, "GET", f"/v1/memory/{one}")["status"] for one in ids]
            return sorted(states) == ["active", "archived", "archived"]

        eventually(merged, 20)

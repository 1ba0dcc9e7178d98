"""DeepChat's behaviour scenarios through the public API: carry-forward, directives, time, correction and forgetting."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.api.conftest import template  # noqa: F401 - a fixture
from tests.servers import call, key_for, must, served

DATA = json.loads((Path(__file__).parents[1] / "data/deepchat/behavior-v1.json").read_text("utf-8"))
NOW = DATA["clock"]["now"]


def moment(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()


@pytest.fixture(scope="module")
def server(tmp_path_factory, template):  # noqa: F811 - the fixture
    with served(tmp_path_factory.mktemp("behaviour") / "data", template) as running:
        yield running


def remember(server, key: str, row: dict) -> dict:
    body = {"content": row["content"], "memory_type": row["kind"], "importance": row["importance"]}
    if time := row.get("temporal"):
        body |= {
            "temporal_kind": time["temporalKind"],
            "valid_from": moment(time["validFrom"]),
            "valid_until": moment(time["validUntil"]),
            "temporal_confidence": time["temporalConfidence"],
            "timezone": time["temporalTimeZone"],
        }
    return must(server, "POST", "/v1/memory?wait=5", key, json=body)


@pytest.mark.parametrize("scenario", DATA["scenarios"], ids=lambda one: one["id"])
def test_scenario(server, scenario):
    user_id = scenario["id"]
    must(server, "POST", "/v1/users", json={"user_id": user_id})
    agent_id = f"agent-{user_id}"
    must(server, "POST", "/v1/agents", json={"agent_id": agent_id, "owner_user_id": user_id})
    user, agent = key_for(server, "user", user_id), key_for(server, "agent", user_id, agent_id)
    made = {row["id"]: remember(server, user, row) for row in scenario["rows"]}
    for directive in scenario.get("directives", []):
        by = user if directive["state"] == "active" else agent
        body = {"kind": "rule", "content": directive["content"]}
        assert call(server, "POST", "/v1/directives", by, json=body).status_code in (201, 202)
    for forgotten in scenario.get("deleteIds", []):
        must(server, "DELETE", f"/v1/memory/{made[forgotten]['id']}?version=1", user)
    replayed = [
        call(
            server, "POST", "/v1/memory", agent, json={"content": row["content"], "source": "conversation"}
        ).status_code
        for row in scenario.get("replayRows", [])
    ]
    expected = scenario["expected"]
    assert sum(status < 300 for status in replayed) == expected.get("replayCreatedCount", 0)
    asked = {"query": scenario["query"], "token_budget": 2_000, "as_of": moment(NOW)}
    answer = must(server, "POST", "/v1/context", agent, json=asked)
    chosen = {one["id"] for one in answer["manifest"]["chosen"]}
    assert {made[one]["id"] for one in expected["selectedMemoryIds"]} <= chosen
    assert not {made[one]["id"] for one in expected["excludedMemoryIds"]} & chosen
    for text in expected["sectionIncludes"]:
        assert text in answer["memory"]
    for text in expected["sectionExcludes"]:
        assert text not in answer["memory"]
    directives = [one["content"] for one in answer["directives"]]
    assert set(expected.get("directiveIncludes", [])) <= set(directives)
    assert not set(expected.get("directiveExcludes", [])) & set(directives)
    lines = answer["memory"].splitlines()
    for one, said in expected.get("annotationIncludes", {}).items():
        content = next(row["content"] for row in scenario["rows"] if row["id"] == one)
        assert any(content in line and said in line for line in lines)

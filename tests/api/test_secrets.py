"""Secrets on a real server: refused, masked or held, and nowhere to be found afterwards."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from gateway import log
from gateway.importer import screening
from gateway.notes.secrets import mask
from tests.api.conftest import Server, eventually

VALUE = "zq9hunter7xk"
SECRET = f"The router.\nIts password: {VALUE}"


@pytest.fixture
def logged(monkeypatch):
    """What a server with logging set up as `serve` does writes to its log."""
    lines = io.StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    log.configure(level="debug", shape="json", mask=mask)
    yield lines
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)


def traces(server: Server, value: str = VALUE) -> list[str]:
    """Every file of the data directory, and every object of git, that holds a text; committed and flushed before."""
    server.gateway.parts.reads.flush()
    server.gateway.parts.committer.flush(everything=True)
    data = server.vault.parent
    found = [str(path) for path in data.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]
    history = subprocess.run(
        ["git", "-C", str(server.vault), "log", "-p", "--all"], capture_output=True, text=True, check=True
    ).stdout
    return [*found, *(["git"] if value in history else [])]


def refused(answer, field: str, kind: str = "password", line: int = 1) -> None:
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["type"] == "urn:memory-gateway:problem:secret-found"
    assert (problem["field"], problem["kind"], problem["line"]) == (field, kind, line)
    assert problem["column"] > 0
    assert "secret store" in problem["advice"]
    assert VALUE not in answer.text


def test_a_memory_with_a_secret_is_refused_and_leaves_no_trace(server, logged):
    refused(server.http.post("/v1/memory", json={"content": SECRET}), "content", line=2)
    for field, value in {"summary": SECRET[12:], "tags": [f"密码={VALUE}"], "source_ref": f"token={VALUE}"}.items():
        kind = "token" if field == "source_ref" else "password"
        refused(server.http.post("/v1/memory", json={"content": "Tea.", field: value}), field, kind)
    key = {"Idempotency-Key": "once"}
    refused(server.http.post("/v1/memory", json={"content": SECRET}, headers=key), "content", line=2)
    done = server.write("The password policy was changed; 密码学很有趣。")
    based_on = {"If-Match": f'"{done["etag"]}"'}
    refused(
        server.http.patch(f"/v1/memory/{done['id']}", json={"content": SECRET}, headers=based_on), "content", line=2
    )
    comment = {"feedback": "incorrect", "comment": SECRET}
    refused(server.http.post(f"/v1/memory/{done['id']}/feedback", json=comment), "comment", line=2)
    server.http.post("/v1/memory/search", json={"query": SECRET})
    server.http.get(f"/v1/memory/token={VALUE}", headers={"X-Request-Id": f"mgk_{VALUE * 2}"})
    assert server.http.post("/v1/memory", json={"content": "x", "tags": [f"password={VALUE} y"]}).status_code == 400
    structlog.get_logger().warning("note", text=SECRET, deep={"list": [SECRET]})
    logging.getLogger("other").warning("%s", SECRET)
    assert traces(server) == []
    assert "[secret removed: password]" in logged.getvalue()
    assert VALUE not in logged.getvalue()
    assert server.find("router") == []


def test_names_preferences_and_labels_are_looked_through(server):
    user = {"user_id": "eve", "display_name": "Eve", "preferences": {"mail": {"password": VALUE}}}
    refused(server.http.post("/v1/users", json=user), "preferences")
    refused(server.http.patch("/v1/users/tom", json={"display_name": f"pwd={VALUE}"}), "display_name")
    agent = {"agent_id": "hermes", "owner_user_id": "tom", "name": f"password={VALUE}"}
    refused(server.http.post("/v1/agents", json=agent), "name")
    team = {"workspace_id": "team", "owner_user_id": "tom", "name": f"password={VALUE}"}
    refused(server.http.post("/v1/workspaces", json=team), "name")
    refused(server.http.post("/v1/keys", json={"role": "admin", "label": f"password={VALUE}"}), "label")
    assert server.http.post("/v1/users", json={"user_id": "13800138000"}).status_code == 201
    assert traces(server) == []


def test_personal_numbers_are_refused_by_policy(server):
    refused(server.http.post("/v1/memory", json={"content": "电话13800138000"}), "content", "phone-number")


def test_an_import_refuses_the_note_and_takes_the_others(server):
    notes = [
        {"path": "a.md", "text": "Tea.\n"},
        {"path": "b.md", "text": SECRET},
        {"path": "c.md", "text": "Coffee.\n"},
    ]
    answer = server.http.post("/v1/import", json={"namespace": "user/tom/long_term", "notes": notes})
    assert [one["outcome"] for one in answer.json()["notes"]] == ["imported", "skipped", "imported"]
    assert "password" in answer.json()["notes"][1]["reason"]
    assert VALUE not in answer.text
    assert traces(server) == []


def test_an_agent_cannot_mark_a_note_as_allowed(server):
    server.http.post("/v1/agents", json={"agent_id": "hermes", "owner_user_id": "tom"})
    made = server.http.post("/v1/keys", json={"role": "agent", "user_id": "tom", "agent_id": "hermes"}).json()
    as_agent = {"Authorization": f"Bearer {made['key']}"}
    text = f"---\nsecrets: allowed\n---\n{SECRET}\n"
    body = {"namespace": "agent/hermes/memory", "notes": [{"path": "a.md", "text": text}]}
    answer = server.http.post("/v1/import", json=body, headers=as_agent)
    assert answer.status_code in (403, 404) or answer.json()["notes"][0]["outcome"] == "skipped"
    assert (
        server.http.post("/v1/memory", json={"content": "x", "secrets": "allowed"}, headers=as_agent).status_code == 400
    )
    refused(server.http.post("/v1/memory", json={"content": text}, headers=as_agent), "content", line=5)
    assert traces(server) == []


def test_episodes_are_masked_and_never_promoted(server):
    episode = {
        "session_id": "s1",
        "user_id": "tom",
        "content": f"user: Please remember that my password is {VALUE}\nuser: I prefer green tea",
        "summary": f"密码：{VALUE}",
        "events": [{"role": "user", "content": f"api_key={VALUE}"}, {"password": VALUE, "phone": 13800138000}],
    }
    assert server.http.post("/v1/episodes", json=episode).status_code == 201
    kept = server.http.get("/v1/sessions/s1/episodes", params={"user_id": "tom"})
    assert "[secret removed: password]" in kept.text
    assert VALUE not in kept.text
    assert "13800138000" not in kept.text
    done = server.http.post("/v1/sessions/s1/commit", json={"user_id": "tom", "min_importance": 0.1}).json()
    assert VALUE not in str(done)
    notes = [path.read_text("utf-8") for path in (server.vault / "Users/tom").rglob("*.md")]
    assert not any("secret removed" in note for note in notes)
    assert traces(server) == []


def problems_of(server: Server) -> list[dict]:
    return server.http.get("/v1/problems").json()["problems"]


def test_a_note_edited_by_hand_is_held_until_the_secret_goes_or_is_allowed(server):
    path = server.vault / "Users/tom/LongTerm/Router.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("The router stands in the cellar.\n", "utf-8")
    eventually(lambda: server.find("router", user_id="tom"))
    path.write_text(f"The router stands in the cellar.\nIts password: {VALUE}\n", "utf-8")
    (held,) = eventually(lambda: [one for one in problems_of(server) if one["kind"] == "secret"])
    assert (held["path"], held["line"]) == ("Users/tom/LongTerm/Router.md", 2)
    assert "secrets: allowed" in held["advice"]
    eventually(lambda: server.find("router", user_id="tom") == [])
    report = server.vault / "Reviews/Problems.md"
    eventually(lambda: "Router" in report.read_text("utf-8"))
    assert traces(server) == [str(path)]
    path.write_text(f"---\nsecrets: allowed\n---\nThe router stands in the cellar.\nIts password: {VALUE}\n", "utf-8")
    eventually(lambda: server.find("router", user_id="tom"))
    assert problems_of(server) == []
    memory = server.http.get("/v1/memory", params={"user_id": "tom"}).json()["memories"][0]
    headers = {"If-Match": f'"{memory["etag"]}"'}
    changed = server.http.patch(f"/v1/memory/{memory['id']}", json={"importance": 0.9}, headers=headers)
    assert changed.status_code == 200, changed.text
    assert "secrets: allowed" in path.read_text("utf-8")


def test_what_agents_write_is_checked_even_in_an_allowed_note(server):
    path = server.vault / "Users/tom/LongTerm/Router.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\nsecrets: allowed\n---\nThe router.\n", "utf-8")
    eventually(lambda: server.find("router", user_id="tom"))
    memory = server.http.get("/v1/memory", params={"user_id": "tom"}).json()["memories"][0]
    server.http.post("/v1/agents", json={"agent_id": "hermes", "owner_user_id": "tom"})
    made = server.http.post("/v1/keys", json={"role": "agent", "user_id": "tom", "agent_id": "hermes"}).json()
    as_agent = {"Authorization": f"Bearer {made['key']}", "If-Match": f'"{memory["etag"]}"'}
    answer = server.http.patch(f"/v1/memory/{memory['id']}", json={"content": SECRET}, headers=as_agent)
    refused(answer, "content", line=2)
    assert traces(server) == []


def test_the_switches(opened, tmp_path: Path):
    """Other settings at the next start: what was held is let in, and what was let in is held."""
    note = tmp_path / "data/vault/Memories/LongTerm/Call.md"
    strict = opened()
    note.write_text("Ring 13800138000 about the gardener.\n", "utf-8")
    strict.settle()
    assert states(strict) == {}
    strict.close()
    for settings, expected in (
        ({"secrets": {"personal_data": "allow"}}, "active"),
        ({"secrets": {"refuse": "all"}}, "held"),
        ({"secrets": {"refuse": "none"}}, "active"),
    ):
        gateway = opened(**settings)
        gateway.settle()
        assert set(states(gateway).values()) == {expected}
        gateway.close()


def test_notes_known_before_are_judged_by_new_rules_once(opened, tmp_path, monkeypatch):
    gateway = opened(secrets={"refuse": "none"})
    note = tmp_path / "data/vault/Memories/LongTerm/Router.md"
    note.write_text(SECRET, "utf-8")
    (note.parent / "Tea.md").write_text("Tea.", "utf-8")
    gateway.settle()
    before = {row.path: row.updated_at for row in rows(gateway)}
    gateway.close()
    monkeypatch.setattr(screening, "RULES", screening.RULES + 1)
    gateway = opened()
    gateway.settle()
    after = {row.path: (row.status, row.updated_at) for row in rows(gateway)}
    assert after["Memories/LongTerm/Router.md"][0] == "held"
    assert after["Memories/LongTerm/Tea.md"] == ("active", before["Memories/LongTerm/Tea.md"])
    assert gateway.parts.importer._to_judge_anew() is None


def rows(gateway) -> list:
    from gateway.ledger import registry

    with gateway.parts.ledger.read() as tx:
        return list(registry.notes_by_path(tx, [row.path for row in registry.all_files(tx)]).values())


def states(gateway) -> dict[str, str]:
    return {row.path: row.status for row in rows(gateway) if row.status != "blank"}

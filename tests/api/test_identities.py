"""Keys, agents, workspaces, feedback, audit and namespaces over REST."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import audit
from gateway.ledger.schema import audit as audit_table
from tests.api.conftest import eventually
from tests.servers import call, key_for, must, people, served


@pytest.fixture(scope="module")
def house(tmp_path_factory, template):
    with served(tmp_path_factory.mktemp("identities") / "data", template) as server:
        people(server)
        yield server


@pytest.fixture(scope="module")
def tom(house) -> str:
    return key_for(house, "user", "tom")


@pytest.fixture(scope="module")
def ann(house) -> str:
    return key_for(house, "user", "ann")


@pytest.fixture(scope="module")
def hermes(house) -> str:
    return key_for(house, "agent", "tom", "hermes")


@pytest.fixture(scope="module")
def reader(house) -> str:
    return key_for(house, "reader", "tom")


# Keys


def test_a_key_is_shown_once_and_known_by_its_start(house):
    made = call(house, "POST", "/v1/keys", json={"role": "user", "user_id": "tom", "label": "laptop"})
    assert made.status_code == 201
    key = made.json()
    assert key["key"].startswith("mgk_")
    assert key["key"].startswith(key["prefix"])
    assert len(key["prefix"]) < 12
    listed = call(house, "GET", "/v1/keys")
    assert key["key"] not in listed.text
    (same,) = [one for one in listed.json() if one["id"] == key["id"]]
    assert (same["label"], same["prefix"], same["revoked_at"]) == ("laptop", key["prefix"], None)
    for path in [house.gateway.parts.settings.data_dir / name for name in ("ledger.db", "ledger.db-wal")]:
        assert not path.exists() or key["key"].encode() not in path.read_bytes()


def test_a_revoked_key_is_unknown_at_once(house):
    made = must(house, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
    assert call(house, "GET", "/v1/users", made["key"]).status_code == 200
    assert must(house, "DELETE", f"/v1/keys/{made['id']}") == {"deleted": True, "id": made["id"]}
    answer = call(house, "GET", "/v1/users", made["key"])
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert call(house, "DELETE", f"/v1/keys/{made['id']}").status_code == 404
    assert [one["revoked_at"] for one in must(house, "GET", "/v1/keys") if one["id"] == made["id"]] != [None]


def test_a_key_ends_by_itself(house):
    soon = (datetime.now(UTC) + timedelta(seconds=0.8)).isoformat()
    key = key_for(house, "user", "tom", expires_at=soon)
    assert call(house, "GET", "/v1/users", key).status_code == 200
    eventually(lambda: call(house, "GET", "/v1/users", key).status_code == 401, 5)
    past = call(
        house, "POST", "/v1/keys", json={"role": "user", "user_id": "tom", "expires_at": "2020-01-01T00:00:00Z"}
    )
    assert past.status_code == 400


def test_the_last_use_is_kept(house):
    made = must(house, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
    call(house, "GET", "/v1/users", made["key"])
    house.gateway.authenticator.flush()
    (same,) = [one for one in must(house, "GET", "/v1/keys") if one["id"] == made["id"]]
    assert same["last_used_at"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"role": "user"}, 400),
        ({"role": "agent", "user_id": "tom"}, 400),
        ({"role": "user", "user_id": "tom", "agent_id": "hermes"}, 400),
        ({"role": "god", "user_id": "tom"}, 400),
        ({"role": "user", "user_id": ""}, 400),
        ({"role": "user", "user_id": "nobody"}, 404),
        ({"role": "agent", "user_id": "tom", "agent_id": "claude"}, 404),
        ({"role": "agent", "user_id": "tom", "agent_id": "nobody"}, 404),
        ({"role": "user", "user_id": "tom", "workspace_ids": ["nowhere"]}, 404),
    ],
)
def test_a_key_needs_ids_that_fit(house, body, status):
    assert call(house, "POST", "/v1/keys", json=body).status_code == status


def test_users_make_keys_for_themselves_and_their_agents_only(house, tom, ann, hermes, reader):
    own = must(house, "POST", "/v1/keys", tom, json={"role": "agent", "agent_id": "hermes"})
    assert own["user_id"] == "tom"
    assert call(house, "POST", "/v1/keys", tom, json={"role": "admin"}).status_code == 403
    assert call(house, "POST", "/v1/keys", tom, json={"role": "user", "user_id": "ann"}).status_code == 404
    assert call(house, "POST", "/v1/keys", tom, json={"role": "agent", "agent_id": "claude"}).status_code == 404
    assert call(house, "DELETE", f"/v1/keys/{own['id']}", ann).status_code == 404
    assert own["id"] not in {one["id"] for one in must(house, "GET", "/v1/keys", ann)}
    for key in (hermes, reader):
        assert call(house, "POST", "/v1/keys", key, json={"role": "user"}).status_code == 403
        assert call(house, "GET", "/v1/keys", key).status_code == 403
    assert call(house, "DELETE", f"/v1/keys/{own['id']}", tom).status_code == 200


def test_what_only_administrators_do(house, tom, hermes, reader):
    for key in (tom, hermes, reader):
        for method, path, body in (
            ("GET", "/v1/problems", None),
            ("POST", "/v1/rebuild", None),
            ("POST", "/v1/problems/confirm-deletions", None),
            ("GET", "/v1/audit/verify", None),
            ("POST", "/v1/users", {"user_id": "mallory"}),
        ):
            assert call(house, method, path, key, json=body).status_code == 403, path


# Agents


def test_agents_are_made_changed_and_removed(house, tom, ann, hermes):
    made = must(house, "POST", "/v1/agents", tom, json={"agent_id": "robin", "name": "Robin", "framework": "other"})
    assert made["owner_user_id"] == "tom"
    assert (house.vault / "Agents/robin/Memory").is_dir()
    assert call(house, "POST", "/v1/agents", tom, json={"agent_id": "robin"}).status_code == 409
    assert call(house, "POST", "/v1/agents", tom, json={"agent_id": "ROBIN"}).status_code == 409  # one folder on a Mac
    assert call(house, "POST", "/v1/agents", hermes, json={"agent_id": "sub"}).status_code == 403
    assert must(house, "PATCH", "/v1/agents/robin", tom, json={"name": "Red"})["name"] == "Red"
    assert call(house, "GET", "/v1/agents/robin", ann).status_code == 404
    assert call(house, "PATCH", "/v1/agents/robin", ann, json={"name": "x"}).status_code == 404
    assert {one["id"] for one in must(house, "GET", "/v1/agents", tom)} == {"hermes", "nanobot", "robin"}
    assert {one["id"] for one in must(house, "GET", "/v1/agents", hermes)} == {"hermes"}
    key = key_for(house, "agent", "tom", "robin")
    must(house, "DELETE", "/v1/agents/robin", tom)
    assert call(house, "GET", "/v1/agents", key).status_code == 401
    assert call(house, "GET", "/v1/agents/robin", tom).status_code == 404


def test_a_disabled_agent_is_out_at_once(house, tom):
    must(house, "POST", "/v1/agents", tom, json={"agent_id": "idle"})
    key = key_for(house, "agent", "tom", "idle")
    must(house, "PATCH", "/v1/agents/idle", tom, json={"status": "disabled"})
    assert call(house, "GET", "/v1/agents", key).status_code == 401
    assert (
        call(house, "POST", "/v1/keys", json={"role": "agent", "user_id": "tom", "agent_id": "idle"}).status_code == 404
    )


# Workspaces


def test_workspaces_are_made_changed_and_removed(house, tom, ann):
    body = {"workspace_id": "boat", "member_user_ids": ["ann"], "allowed_agent_ids": ["hermes"]}
    made = must(house, "POST", "/v1/workspaces", tom, json=body)
    assert made["member_user_ids"] == ["tom", "ann"]
    assert (house.vault / "Workspaces/boat/Shared").is_dir()
    assert call(house, "POST", "/v1/workspaces", ann, json={"workspace_id": "boat"}).status_code == 409
    assert (
        call(house, "PATCH", "/v1/workspaces/boat", ann, json={"name": "x"}).status_code == 403
    )  # a member, not its owner
    unknown = call(house, "PATCH", "/v1/workspaces/boat", tom, json={"member_user_ids": ["nobody"]})
    assert unknown.status_code == 400
    kept = must(house, "PATCH", "/v1/workspaces/boat", tom, json={"member_user_ids": ["ann"], "name": "Boat"})
    assert kept["member_user_ids"] == ["tom", "ann"]
    assert call(house, "DELETE", "/v1/workspaces/boat", ann).status_code == 403
    must(house, "DELETE", "/v1/workspaces/boat", tom)
    assert call(house, "GET", "/v1/workspaces/boat", tom).status_code == 404


def test_a_membership_that_ended_stops_at_once(house, tom, ann):
    body = {"workspace_id": "garden", "member_user_ids": ["ann"], "allowed_agent_ids": ["claude"]}
    must(house, "POST", "/v1/workspaces", tom, json=body)
    claude = key_for(house, "agent", "ann", "claude")
    limited = key_for(house, "user", "ann", workspace_ids=["garden"])
    shared = {"content": "The garden gate squeaks.", "workspace_id": "garden", "visibility": "workspace-shared"}
    made = must(house, "POST", "/v1/memory?wait=5", tom, json=shared)
    ask = {"query": "garden gate", "workspace_id": "garden"}
    for key in (ann, claude, limited):
        assert must(house, "POST", "/v1/memory/search", key, json=ask)["total"] == 1
        assert call(house, "GET", f"/v1/memory/{made['id']}", key).status_code == 200
    must(house, "PATCH", "/v1/workspaces/garden", tom, json={"allowed_agent_ids": []})
    assert call(house, "POST", "/v1/memory/search", claude, json=ask).status_code == 404
    assert call(house, "GET", f"/v1/memory/{made['id']}", claude).status_code == 404
    assert call(house, "GET", f"/v1/memory/{made['id']}", ann).status_code == 200
    must(house, "PATCH", "/v1/workspaces/garden", tom, json={"member_user_ids": []})
    for key in (ann, claude, limited):
        assert call(house, "POST", "/v1/memory/search", key, json=ask).status_code == 404
        for path in (f"/v1/memory/{made['id']}", f"/v1/memory/{made['id']}/history", "/v1/workspaces/garden"):
            assert call(house, "GET", path, key).status_code == 404
        assert must(house, "POST", "/v1/memory/search", key, json={"query": "garden gate"})["total"] == 0


# Feedback


def test_an_incorrect_memory_is_hidden_at_once_and_comes_back_corrected(house, tom):
    made = must(house, "POST", "/v1/memory?wait=5", tom, json={"content": "Tom's train leaves at 7:10."})
    ask = {"query": "train leaves"}
    assert must(house, "POST", "/v1/memory/search", tom, json=ask)["total"] == 1
    path = f"/v1/memory/{made['id']}"
    given = must(house, "POST", f"{path}/feedback", tom, json={"feedback": "incorrect", "comment": "7:40"})
    assert given == {"status": "ok", "memory_id": made["id"], "feedback": "incorrect"}
    assert must(house, "POST", "/v1/memory/search", tom, json=ask)["total"] == 0
    assert must(house, "GET", path, tom)["content"].strip() == "Tom's train leaves at 7:10."  # hidden, not gone
    must(house, "PATCH", f"{path}?wait=5", tom, json={"content": "Tom's train leaves at 7:40.", "version": 1})
    found = must(house, "POST", "/v1/memory/search", tom, json=ask)
    assert [one["memory"]["content"].strip() for one in found["results"]] == ["Tom's train leaves at 7:40."]


@pytest.mark.parametrize("judgement", ["duplicate", "outdated", "useful"])
def test_other_judgements_hide_nothing(house, tom, judgement):
    made = must(house, "POST", "/v1/memory?wait=5", tom, json={"content": f"judged as {judgement} once"})
    must(house, "POST", f"/v1/memory/{made['id']}/feedback", tom, json={"feedback": judgement})
    found = must(house, "POST", "/v1/memory/search", tom, json={"query": f"judged {judgement}"})
    assert made["id"] in {one["memory"]["id"] for one in found["results"]}


def test_who_may_not_read_or_write_may_not_judge(house, tom, ann, reader):
    made = must(house, "POST", "/v1/memory?wait=5", tom, json={"content": "what Ann may not judge"})
    path = f"/v1/memory/{made['id']}/feedback"
    assert call(house, "POST", path, ann, json={"feedback": "incorrect"}).status_code == 404
    assert call(house, "POST", path, reader, json={"feedback": "incorrect"}).status_code == 403
    assert call(house, "POST", "/v1/memory/mem_none/feedback", tom, json={"feedback": "incorrect"}).status_code == 404
    assert call(house, "POST", path, tom, json={"feedback": "rubbish"}).status_code == 400
    found = must(house, "POST", "/v1/memory/search", tom, json={"query": "what Ann may not judge"})
    assert made["id"] in {one["memory"]["id"] for one in found["results"]}


# Audit


def test_everybody_sees_their_own_entries_and_administrators_all(house, tom, ann, hermes):
    word = "mulberry7"
    must(house, "POST", "/v1/memory", hermes, json={"content": f"{word} is a secret word"})
    must(house, "POST", "/v1/memory/search", ann, json={"query": word})
    own = must(house, "GET", "/v1/audit?limit=200", tom)
    assert own
    assert {one["actor_user_id"] for one in own} == {"tom"}
    assert {one["actor_agent_id"] for one in must(house, "GET", "/v1/audit?limit=200", hermes)} == {"hermes"}
    everybody = must(house, "GET", "/v1/audit?limit=200")
    assert {"tom", "ann"} <= {one["actor_user_id"] for one in everybody}
    assert call(house, "GET", "/v1/audit?user_id=ann", tom).status_code == 404
    assert {one["actor_user_id"] for one in must(house, "GET", "/v1/audit?user_id=ann")} == {"ann"}
    assert word not in str(everybody)  # ids and reasons, never what was said or asked


def test_the_audit_comes_in_pages_newest_first(house):
    for number in range(21):
        must(house, "POST", "/v1/users", json={"user_id": f"paged{number}"})
    seen, before = [], None
    for _ in range(1_000):
        page = must(house, "GET", "/v1/audit", params={"limit": 7, **({"before": before} if before else {})})
        if not page:
            break
        seen += [one["id"] for one in page]
        before = page[-1]["id"]
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) > 20


def test_denials_and_requests_can_be_followed(house, ann, tom):
    made = must(house, "POST", "/v1/memory", tom, json={"content": "what Ann asks for"})
    call(house, "GET", f"/v1/memory/{made['id']}", ann, headers={"X-Request-Id": "follow-me"})
    denied = must(house, "GET", "/v1/audit?decision=deny&limit=200")
    (one,) = [entry for entry in denied if entry["request_id"] == "follow-me"]
    assert one["actor_user_id"] == "ann"
    assert one["reason"]
    about = must(house, "GET", "/v1/audit", params={"target_id": made["id"]})
    assert {entry["decision"] for entry in about} == {"allow"}


def test_reads_are_written_within_a_second_or_so(house, tom):
    """Not in the way of the search, and not left for ever."""
    mark = f"r{time.monotonic_ns()}"
    must(house, "POST", "/v1/memory/search", tom, json={"query": "anything"}, headers={"X-Request-Id": mark})
    assert eventually(lambda: _rows(house, mark), 4)


def test_reads_are_written_at_the_stop(tmp_path, template):
    data = tmp_path / "data"
    with served(data, template) as server:
        must(server, "POST", "/v1/memory/search", json={"query": "x"}, headers={"X-Request-Id": "the-last-one"})
    with served(data, template) as server:
        entries = must(server, "GET", "/v1/audit?limit=200")
        assert [one["action"] for one in entries if one["request_id"] == "the-last-one"]
        assert must(server, "GET", "/v1/audit/verify") == {"intact": True, "broken_at": None}


def _rows(house, request_id: str) -> list:
    with house.gateway.parts.ledger.read() as tx:
        return list(tx.execute(sa.select(audit_table.c.seq).where(audit_table.c.request_id == request_id)))


@pytest.mark.parametrize("tampering", ["changed", "taken out"])
def test_tampering_is_found(tmp_path, template, tampering):
    """With SQLite itself, past the gateway: the first entry that does not fit is named."""
    with served(tmp_path / "data", template) as server:
        for number in range(6):
            server.write(f"note {number}")
        assert must(server, "GET", "/v1/audit/verify")["intact"]
        entries = must(server, "GET", "/v1/audit?limit=200")
        victim, follower = entries[3]["id"], entries[2]["id"]
        engine = sa.create_engine(f"sqlite:///{tmp_path / 'data' / 'ledger.db'}")
        with engine.begin() as connection:
            if tampering == "changed":
                connection.execute(sa.text("UPDATE audit SET reason = 'nothing' WHERE seq = :seq"), {"seq": victim})
            else:
                connection.execute(sa.text("DELETE FROM audit WHERE seq = :seq"), {"seq": victim})
        engine.dispose()
        broken = victim if tampering == "changed" else follower
        assert must(server, "GET", "/v1/audit/verify") == {"intact": False, "broken_at": broken}


def test_trimming_keeps_the_chain(tmp_path, template):
    with served(tmp_path / "data", template) as server:
        server.write("first")
        time.sleep(0.01)
        cut = now_ms()
        time.sleep(0.01)
        server.write("second")
        ledger = server.gateway.parts.ledger
        with ledger.write() as tx:
            assert audit.trim(tx, cut) > 0
        assert must(server, "GET", "/v1/audit/verify")["intact"]
        server.write("third")
        with ledger.write() as tx:
            audit.trim(tx, now_ms() + 1_000)  # all of them: the next one goes on from the last
        server.write("fourth")
        assert must(server, "GET", "/v1/audit/verify")["intact"]


# Namespaces and limits


def test_namespaces_of_a_context(house, tom, ann, hermes):
    names = {one["namespace"] for one in must(house, "GET", "/v1/namespaces", hermes)}
    assert {"user/tom/long_term", "agent/hermes/memory", "global/public"} <= names
    assert not {name for name in names if "nanobot" in name or "ann" in name}
    assert "agent/hermes/memory" not in {one["namespace"] for one in must(house, "GET", "/v1/namespaces", ann)}
    assert call(house, "GET", "/v1/namespaces?agent_id=claude", tom).status_code == 404
    assert call(house, "GET", "/v1/namespaces?user_id=", tom).status_code == 400
    must(house, "POST", "/v1/episodes", hermes, json={"session_id": "ns", "content": "x"})
    with_session = must(house, "GET", "/v1/namespaces?session_id=ns", hermes)
    assert {"namespace": "session/ns/episodic", "visibility": "private"} in with_session
    assert call(house, "GET", "/v1/namespaces?session_id=ns", ann).status_code == 404


def test_skills_are_listed(house, reader):
    skills = must(house, "GET", "/v1/skills", reader)
    assert len(skills) == 10


def test_a_flood_of_one_key_does_not_stop_another(tmp_path, template):
    with served(tmp_path / "data", template, policy={"requests_per_minute": 30, "request_burst": 3}) as server:
        flood = key_for(server, "user", "owner")
        statuses = [call(server, "GET", "/v1/users", flood).status_code for _ in range(6)]
        assert statuses[:3] == [200, 200, 200]
        assert statuses[-1] == 429
        other = call(server, "GET", "/v1/users")
        assert other.status_code == 200
        assert call(server, "GET", "/v1/health").status_code == 200

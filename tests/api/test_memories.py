"""`/v1/memory` over a real server."""

import uuid

import pytest

from gateway.notes.note import parse


def test_a_memory_as_in_the_seed_is_written_found_and_read(server):
    answer = server.http.post(
        "/v1/memory",
        headers={"Prefer": "wait=5"},
        json={
            "user_id": "tom",
            "agent_id": "agent_hermes_default",
            "workspace_id": "ws_memory_gateway",
            "memory_type": "preference",
            "content": "用户偏好中文输出。",
            "summary": "中文输出偏好",
            "tags": ["preference"],
            "importance": 0.8,
            "confidence": 0.9,
            "visibility": "private",
            "source": "manual",
        },
    )
    assert answer.status_code == 201
    body = answer.json()
    assert body["namespace"] == "user/tom/long_term"
    assert body["version"] == 1
    assert answer.headers["etag"] == f'"{body["etag"]}"'
    assert body["receipt"]["fts"] == "done"
    found = server.http.post("/v1/memory/search", json={"user_id": "tom", "query": "中文输出偏好", "limit": 5}).json()
    assert [one["memory"]["id"] for one in found["results"]] == [body["id"]]
    assert found["total"] == 1
    read = server.http.get(f"/v1/memory/{body['id']}?user_id=tom").json()
    assert read["content"] == "用户偏好中文输出。"
    assert read["summary"] == "中文输出偏好"
    assert read["title"] == "中文输出偏好"
    assert read["importance"] == 0.8
    assert read["uri"] == f"viking://memory/user/tom/long_term/{body['id']}"


def test_the_note_of_a_memory_can_be_read_by_a_person(server):
    body = server.write(
        "Tea at four.", user_id="tom", summary="Tea", tags=["habit/tea"], expires_at="2031-01-02T03:04:05Z"
    )
    note = parse((server.vault / body["path"]).read_bytes())
    assert note.body == "Tea at four.\n"
    assert note.properties["id"] == body["id"]
    assert note.properties["tags"] == ["habit/tea"]
    assert note.properties["expires"] == "2031-01-02T03:04:05Z"
    assert body["path"].startswith("Users/tom/LongTerm/Tea ")


@pytest.mark.parametrize(
    ("fields", "namespace"),
    [
        ({"visibility": "agent-only", "agent_id": "hermes"}, "agent/hermes/memory"),
        ({"visibility": "workspace-shared", "workspace_id": "ws1"}, "workspace/ws1/shared"),
        ({"visibility": "global"}, "global/public"),
        ({"namespace": "agent/hermes/memory", "agent_id": "hermes"}, "agent/hermes/memory"),
        ({}, "user/tom/long_term"),
    ],
)
def test_visibility_decides_the_namespace(server, fields, namespace):
    assert server.write("Somewhere.", user_id="tom", **fields)["namespace"] == namespace


def test_one_users_memories_never_reach_another(server):
    server.write("The safe code is 4711 xyzzy.", user_id="tom")
    server.write("Ann likes xyzzy puzzles.", user_id="ann")
    assert server.find("xyzzy", user_id="ann", limit=200) == ["Ann likes xyzzy puzzles."]
    refused = server.http.post(
        "/v1/memory/search", json={"user_id": "ann", "query": "xyzzy", "namespaces": ["user/tom/long_term"]}
    )
    assert refused.status_code == 400
    tom = server.http.get("/v1/memory?user_id=tom").json()["memories"][0]
    assert server.http.get(f"/v1/memory/{tom['id']}?user_id=ann").status_code == 404


def test_an_agents_memory_is_found_with_the_agents_id_only(server):
    server.write("Retry the flaky plover test.", user_id="tom", agent_id="hermes", visibility="agent-only")
    assert server.find("plover", user_id="tom", agent_id="hermes") == ["Retry the flaky plover test."]
    assert server.find("plover", user_id="tom") == []
    assert server.find("plover", user_id="tom", agent_id="nanobot") == []


def test_a_write_with_wait_is_found_by_the_very_next_search(server):
    for number in range(30):
        token = f"zq{uuid.uuid4().hex[:8]}"
        server.write(f"Note {number} about {token}.", user_id="tom")
        assert server.find(token, user_id="tom") == [f"Note {number} about {token}."]


def test_a_patch_changes_only_what_is_asked(server):
    body = server.write("First text.", user_id="tom", summary="S", tags=["a"])
    path = server.vault / body["path"]
    before = path.read_text("utf-8")
    answer = server.http.patch(
        f"/v1/memory/{body['id']}",
        json={"importance": 0.9},
        headers={"If-Match": f'"{body["etag"]}"', "Prefer": "wait=5"},
    )
    assert answer.status_code == 200
    assert answer.json()["version"] == 2
    changed = [
        (old, new)
        for old, new in zip(before.splitlines(), path.read_text("utf-8").splitlines(), strict=True)
        if old != new
    ]
    assert {old.split(":")[0] for old, _ in changed} <= {"importance", "updated", "version"}


def test_a_persons_own_note_gets_no_property_unasked(server):
    path = server.vault / "Users/tom/LongTerm/mine.md"
    path.write_bytes("\ufeff# Mine\r\n\r\nOld quoll words.\r\n".encode())
    from tests.api.conftest import eventually

    eventually(lambda: server.find("quoll", user_id="tom"))
    found = server.http.get("/v1/memory?user_id=tom").json()["memories"][0]
    answer = server.http.patch(f"/v1/memory/{found['id']}", json={"tags": ["t"], "version": 1})
    assert answer.status_code == 200
    assert path.read_bytes() == "\ufeff---\r\ntags:\r\n  - t\r\n---\r\n# Mine\r\n\r\nOld quoll words.\r\n".encode()


def test_a_change_without_a_precondition_is_428_and_a_stale_one_409_with_a_diff(server):
    body = server.write("One.", user_id="tom")
    url = f"/v1/memory/{body['id']}"
    assert server.http.patch(url, json={"content": "Two."}).status_code == 428
    assert server.http.delete(url).status_code == 428
    assert server.http.patch(url, json={"content": "Two.", "version": 1}).status_code == 200
    stale = server.http.patch(url, json={"content": "Three."}, headers={"If-Match": f'"{body["etag"]}"'})
    assert stale.status_code == 409
    problem = stale.json()
    assert problem["type"] == "urn:memory-gateway:problem:changed-elsewhere"
    assert "-One." in problem["diff"]
    assert "+Two." in problem["diff"]
    current = server.http.get(url)
    assert problem["etag"] == current.json()["etag"]
    assert stale.headers["etag"] == current.headers["etag"]
    assert server.http.delete(f"{url}?version=1").status_code == 409
    assert server.http.delete(f"{url}?version=2").json()["deleted"] is True
    assert server.http.get(url).status_code == 404


def test_an_edit_in_the_vault_makes_an_agents_version_stale(server):
    body = server.write("Agents text.", user_id="tom")
    path = server.vault / body["path"]
    path.write_text(path.read_text("utf-8").replace("Agents text.", "A person's text."), "utf-8")
    stale = server.http.patch(
        f"/v1/memory/{body['id']}", json={"content": "Overwritten."}, headers={"If-Match": f'"{body["etag"]}"'}
    )
    assert stale.status_code == 409
    assert "+A person's text." in stale.json()["diff"]
    assert "A person's text." in path.read_text("utf-8")


def test_a_retried_post_returns_the_first_answer(server):
    headers = {"Idempotency-Key": "retry-1", "Prefer": "wait=5"}
    first = server.http.post("/v1/memory", json={"user_id": "tom", "content": "Once."}, headers=headers)
    again = server.http.post("/v1/memory", json={"user_id": "tom", "content": "Once."}, headers=headers)
    assert again.status_code == 201
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    other = server.http.post("/v1/memory", json={"user_id": "tom", "content": "Other."}, headers=headers)
    assert other.status_code == 409
    assert server.find("once", user_id="tom") == ["Once."]


def test_the_same_text_twice_is_one_memory(server):
    first = server.write("Said twice.", user_id="tom")
    again = server.http.post("/v1/memory", json={"user_id": "tom", "content": "  said   TWICE."})
    assert again.status_code == 200
    assert again.json()["id"] == first["id"]
    assert again.json()["duplicate"] is True
    assert server.write("Said twice.", user_id="ann")["id"] != first["id"]


def test_history_tells_every_version_and_what_it_changed(server):
    body = server.write("One.", user_id="tom", agent_id="hermes")
    server.http.patch(f"/v1/memory/{body['id']}", json={"content": "Two.", "version": 1})
    versions = server.http.get(f"/v1/memory/{body['id']}/history?diff=true").json()["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    assert "+Two." in versions[0]["diff"]
    assert "-One." in versions[0]["diff"]
    assert versions[1]["author"] == "hermes"


def test_a_receipt_ends_with_everything_done(server):
    from tests.api.conftest import eventually

    body = server.write("Receipt.", user_id="tom")
    url = f"/v1/memory/{body['id']}/receipt"
    eventually(lambda: server.http.get(url).json()["receipt"]["commit"] == "done")
    receipt = server.http.get(url).json()["receipt"]
    assert receipt == {
        "file": "done",
        "ledger": "done",
        "commit": "done",
        "fts": "done",
        "vector": "failed: no embedding provider",
    }


def test_a_list_is_paged_and_filtered(server):
    ids = [server.write(f"Item {number}.", user_id="tom", tags=[f"t{number % 2}"])["id"] for number in range(7)]
    first = server.http.get("/v1/memory?user_id=tom&limit=3").json()
    assert first["total"] == 7
    pages, cursor = [one["id"] for one in first["memories"]], first["next_cursor"]
    while cursor:
        page = server.http.get("/v1/memory", params={"user_id": "tom", "limit": 3, "cursor": cursor}).json()
        pages += [one["id"] for one in page["memories"]]
        cursor = page["next_cursor"]
    assert sorted(pages) == sorted(ids)
    assert server.http.get("/v1/memory?user_id=tom&tag=t0").json()["total"] == 4
    assert server.http.get("/v1/memory?cursor=nonsense").status_code == 400
    assert server.http.get("/v1/memory?limit=0").status_code == 400
    assert server.http.get("/v1/memory?user_id=").status_code == 400


def test_an_expired_memory_is_not_found(server):
    server.write("Old wombat.", user_id="tom", expires_at="2020-01-01T00:00:00Z")
    server.write("New wombat.", user_id="tom", expires_at="2120-01-01T00:00:00Z")
    assert server.find("wombat", user_id="tom") == ["New wombat."]


def test_an_archived_memory_is_not_found(server):
    body = server.write("Archived numbat.", user_id="tom")
    server.http.patch(
        f"/v1/memory/{body['id']}", json={"status": "archived", "version": 1}, headers={"Prefer": "wait=5"}
    )
    assert server.find("numbat", user_id="tom") == []
    assert server.http.get("/v1/memory?user_id=tom&status=archived").json()["total"] == 1


def test_a_forgotten_text_is_refused_to_agents_and_given_back_to_users(server):
    body = server.write("Forget this bilby.", user_id="tom")
    assert server.http.delete(f"/v1/memory/{body['id']}?version=1").status_code == 200
    assert server.find("bilby", user_id="tom") == []
    inferred = {"user_id": "tom", "agent_id": "hermes", "source": "conversation", "content": "Forget this bilby."}
    refused = server.http.post("/v1/memory", json=inferred)
    assert refused.status_code == 409
    assert refused.json()["type"].endswith(":tombstoned")
    server.write("Forget this bilby.", user_id="tom")
    assert server.find("bilby", user_id="tom") == ["Forget this bilby."]


def test_a_long_answer_is_cut_and_says_so(server):
    for number in range(3):
        server.write(f"emu {number} " + "long text " * 15_000, user_id="tom")
    answer = server.http.post("/v1/memory/search", json={"user_id": "tom", "query": "emu"})
    assert answer.json()["truncated"] is True
    assert len(answer.content) < 300_000

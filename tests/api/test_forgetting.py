"""Forgetting over REST: the erasure report, clear jobs, the purge, having a text back."""

from __future__ import annotations

from tests.api.conftest import eventually
from tests.servers import call, key_for, must


def finished(server, job_id: str, key: str | None = None) -> dict:
    def over():
        job = must(server, "GET", f"/v1/jobs/{job_id}", key)
        return job if job["status"] in ("done", "failed") else None

    return eventually(over, 60)


def states(answer: dict) -> dict[str, str]:
    return {one["place"]: one["state"] for one in answer["erasure"]}


def test_a_delete_says_what_became_of_each_place(server):
    made = server.write("A canary sings at six.", user_id="tom")
    eventually(lambda: must(server, "GET", f"/v1/memory/{made['id']}/receipt")["receipt"]["commit"] == "done")
    answer = must(server, "DELETE", f"/v1/memory/{made['id']}", headers={"If-Match": "*"})
    assert answer["deleted"] is True
    assert answer["id"] == made["id"]
    assert states(answer)["file"] == "done"
    assert states(answer)["git"] == "remains in git history"
    eventually(lambda: states(must(server, "GET", f"/v1/memory/{made['id']}/erasure"))["index"] == "done")
    assert call(server, "GET", f"/v1/memory/{made['id']}").status_code == 404


def test_the_report_is_for_whose_memory_it_was(server):
    people_key = key_for(server, "user", "tom")
    other = key_for(server, "user", "ann")
    made = server.write("Tom's canary.", user_id="tom")
    must(server, "DELETE", f"/v1/memory/{made['id']}", people_key, headers={"If-Match": "*"})
    assert call(server, "GET", f"/v1/memory/{made['id']}/erasure", people_key).status_code == 200
    assert call(server, "GET", f"/v1/memory/{made['id']}/erasure", other).status_code == 404


def test_a_repeated_delete_gets_its_first_answer(server):
    made = server.write("A canary sings at seven.")
    headers = {"If-Match": "*", "Idempotency-Key": "once"}
    with server.gateway.parts.feed.paused():  # its index rows cannot be gone yet
        first = call(server, "DELETE", f"/v1/memory/{made['id']}", headers=headers)
        again = call(server, "DELETE", f"/v1/memory/{made['id']}", headers=headers)
    assert states(first.json())["index"] == states(again.json())["index"] == "pending"
    assert first.status_code == again.status_code == 200
    assert again.json()["deleted"] is True
    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_user_clears_their_own_and_follows_the_job(server):
    people_key, other = key_for(server, "user", "tom"), key_for(server, "user", "ann")
    for number in range(5):
        server.write(f"Tom's canary {number}.", user_id="tom")
    ordered = call(server, "POST", "/v1/clear", people_key, json={"scope": "user", "id": "tom"})
    assert ordered.status_code == 202
    job_id = ordered.json()["job_id"]
    assert ordered.headers["Location"] == f"/v1/jobs/{job_id}"
    assert must(server, "GET", "/v1/memory", people_key)["memories"] == []
    assert call(server, "GET", f"/v1/jobs/{job_id}", other).status_code == 404
    job = finished(server, job_id, people_key)
    assert (job["status"], job["done"], job["total"]) == ("done", 5, 5)
    assert call(server, "POST", "/v1/clear", other, json={"scope": "user", "id": "tom"}).status_code == 404
    must(server, "POST", "/v1/memory", people_key, json={"content": "A new beginning."})


def test_a_write_into_what_is_being_cleared_is_refused_with_advice(server):
    parts = server.gateway.parts
    server.write("Tom's canary.", user_id="tom")
    with parts.feed.paused():  # the job cannot come to its end
        must(server, "POST", "/v1/clear", json={"scope": "user", "id": "tom"})
        answer = call(server, "POST", "/v1/memory", json={"content": "Another.", "user_id": "tom"})
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("being-cleared")
    assert answer.json()["advice"]


def test_an_agent_taken_out_makes_room_for_another_of_its_name(server):
    must(server, "POST", "/v1/agents", json={"agent_id": "hermes", "owner_user_id": "tom"})
    key = key_for(server, "agent", "tom", "hermes")
    must(server, "POST", "/v1/memory", key, json={"content": "Hermes' canary.", "namespace": "agent/hermes/memory"})
    gone = call(server, "DELETE", "/v1/agents/hermes")
    assert gone.status_code == 200
    finished(server, gone.headers["Location"].rpartition("/")[2])
    assert call(server, "GET", "/v1/memory", key).status_code == 401
    must(server, "POST", "/v1/agents", json={"agent_id": "hermes", "owner_user_id": "tom"})
    fresh = key_for(server, "agent", "tom", "hermes")
    listed = must(server, "GET", "/v1/memory", fresh, params={"namespace": "agent/hermes/memory"})
    assert listed["memories"] == []


def test_a_purge_by_an_administrator(server):
    made = server.write("A canary sings at eight.")
    eventually(lambda: must(server, "GET", f"/v1/memory/{made['id']}/receipt")["receipt"]["commit"] == "done")
    must(server, "DELETE", f"/v1/memory/{made['id']}", headers={"If-Match": "*"})
    tom = key_for(server, "user", "tom")
    assert call(server, "POST", "/v1/purge", tom, json={}).status_code == 403
    ordered = must(server, "POST", "/v1/purge", json={"memory_ids": [made["id"]]})
    assert finished(server, ordered["job_id"])["error"] is None
    assert states(must(server, "GET", f"/v1/memory/{made['id']}/erasure"))["git"] == "done"
    assert call(server, "POST", "/v1/purge", json={"memory_ids": ["mem_nothing"]}).status_code == 404


def test_a_forgotten_text_is_had_back_by_a_person_only(server):
    tom = key_for(server, "user", "tom")
    made = server.write("Tom's canary sings at nine.", user_id="tom")
    note = server.vault / made["path"]
    data = note.read_bytes()
    must(server, "DELETE", f"/v1/memory/{made['id']}", tom, headers={"If-Match": "*"})
    note.write_bytes(data)
    eventually(lambda: any(one["kind"] == "forgotten" for one in must(server, "GET", "/v1/problems")["problems"]))
    must(server, "POST", "/v1/agents", json={"agent_id": "hermes", "owner_user_id": "tom"})
    agent = key_for(server, "agent", "tom", "hermes")
    body = {"path": made["path"]}
    assert call(server, "POST", "/v1/problems/restore", agent, json=body).status_code in (403, 404)
    assert call(server, "POST", "/v1/problems/restore", key_for(server, "user", "ann"), json=body).status_code == 404
    assert must(server, "POST", "/v1/problems/restore", tom, json=body)["id"] == made["id"]
    eventually(lambda: server.find("canary sings nine", user_id="tom"))


def test_one_of_two_twins_is_forgotten_alone_if_asked(server):
    made = server.write("A canary sings at ten.")
    (server.vault / "Memories/LongTerm/twin.md").write_text("A canary sings at ten.", "utf-8")
    eventually(lambda: len(must(server, "GET", "/v1/memory")["memories"]) >= 2)
    must(server, "DELETE", f"/v1/memory/{made['id']}?duplicates=keep", headers={"If-Match": "*"})
    assert server.find("canary sings ten") == ["A canary sings at ten."]

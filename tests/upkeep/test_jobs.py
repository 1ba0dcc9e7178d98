"""Jobs over the API: whose, in pages, and as they go."""

from __future__ import annotations

import pytest

from gateway.ledger import jobs
from tests.servers import call, key_for, must, people, served


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):
    with served(tmp_path_factory.mktemp("jobs") / "data", template) as server:
        people(server)
        yield server


def add(server, **fields) -> str:
    with server.gateway.parts.ledger.write() as tx:
        job = jobs.new("clear", requested_by="key", scope="user", scope_id="x", **fields)
        jobs.add(tx, job)
    return job.id


def test_a_job_is_followed_by_its_user_and_administrators(world):
    tom, ann = key_for(world, "user", "tom"), key_for(world, "user", "ann")
    reader, hermes = key_for(world, "reader", "tom"), key_for(world, "agent", "tom", "hermes")
    its = add(world, user_id="tom", options={"include_directives": False})
    nobodys = add(world)
    assert must(world, "GET", f"/v1/jobs/{its}", tom)["options"] == {"include_directives": False}
    assert must(world, "GET", f"/v1/jobs/{its}", reader)["id"] == its
    assert {its, nobodys} <= {one["id"] for one in must(world, "GET", "/v1/jobs")["jobs"]}
    for key in (ann, hermes):
        other, missing = call(world, "GET", f"/v1/jobs/{its}", key), call(world, "GET", "/v1/jobs/job_none", key)
        assert (other.status_code, missing.status_code) == (404, 404)
        assert other.text.replace(its, "ID") == missing.text.replace("job_none", "ID")
        assert its not in call(world, "GET", "/v1/jobs", key).text
    assert call(world, "GET", f"/v1/jobs/{nobodys}", tom).status_code == 404


def test_a_job_says_how_far_it_is(world):
    job_id = add(world, user_id="tom")
    made = must(world, "GET", f"/v1/jobs/{job_id}")
    assert set(made) == {
        "id", "kind", "status", "scope", "scope_id", "phase", "done", "total", "error", "created_at", "updated_at",
        "finished_at", "options",
    }  # fmt: skip
    assert (made["status"], made["finished_at"]) == ("waiting", None)
    assert made["created_at"].endswith("Z")
    with world.gateway.parts.ledger.write() as tx:
        jobs.change(tx, job_id, status=jobs.RUNNING, phase="memories", done=5, total=9)
        jobs.finish(tx, job_id, error="The disk is full.")
    ended = must(world, "GET", f"/v1/jobs/{job_id}")
    assert (ended["status"], ended["done"], ended["total"], ended["error"]) == ("failed", 5, 9, "The disk is full.")
    assert ended["finished_at"] >= ended["created_at"]


def test_jobs_come_in_pages_newest_first(world):
    made = [add(world, user_id="ann") for _ in range(7)]
    ann = key_for(world, "user", "ann")
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = must(world, "GET", "/v1/jobs", ann, params=params)
        assert len(page["jobs"]) <= 3
        seen += [one["id"] for one in page["jobs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(made)
    assert must(world, "GET", "/v1/jobs", ann, params={"status": "done"})["jobs"] == []
    assert len(must(world, "GET", "/v1/jobs", ann, params={"status": "waiting"})["jobs"]) == 7
    for params in ({"status": "lost"}, {"limit": 0}, {"limit": 10_000}, {"cursor": "x"}):
        assert call(world, "GET", "/v1/jobs", ann, params=params).status_code == 400

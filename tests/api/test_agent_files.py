"""Agent files and skills over REST, as seed 000 has them."""

from __future__ import annotations

import pytest

from gateway.starter import templates
from tests.servers import call, key_for, must, people, served

FILES = {"user": "USER.md", "soul": "SOUL.md", "memory": "MEMORY.md"}
PREFIX = "urn:memory-gateway:problem:"
TOM = {"params": {"user_id": "tom"}}


def path(name):
    return f"/api/config/agent-files/{name}"


@pytest.mark.parametrize("name", FILES)
def test_every_user_has_the_files_from_their_templates(server, name):
    template = (templates() / FILES[name]).read_text("utf-8")
    assert must(server, "GET", path(name), **TOM) == {
        "name": name,
        "file_type": f"{name}_md",
        "content": template,
        "version": 1,
    }
    assert not template.startswith("---")


@pytest.mark.parametrize("text", ["# New\n\nWords.\n", "no line end", "我是谁\n\n\n", "two\r\nlines\r\n"])
def test_what_is_put_is_what_is_got(server, text):
    done = must(server, "PUT", path("soul"), json={"content": text}, **TOM)
    assert done == {"name": "soul", "file_type": "soul_md", "version": 2, "message": "ok"}
    assert must(server, "GET", path("soul"), **TOM)["content"] == text.replace("\r\n", "\n")
    assert must(server, "PUT", path("soul"), json={"content": text}, **TOM)["version"] == 2


def test_the_properties_of_a_person_stay(server):
    file = server.vault / "Users/tom/USER.md"
    file.write_bytes(b"---\r\nmine: yes # really\r\n---\r\nOld.\r\n")
    assert must(server, "GET", path("user"), **TOM)["content"] == "Old.\n"
    must(server, "PUT", path("user"), json={"content": "New.\nWords.\n"}, **TOM)
    assert file.read_bytes() == b"---\r\nmine: yes # really\r\n---\r\nNew.\r\nWords.\r\n"


def test_a_write_has_a_history_and_an_audit(server):
    must(server, "PUT", path("memory"), json={"content": "one\n"}, **TOM)
    (made,) = must(server, "GET", "/v1/memory", params={"namespace": "user/tom/memory_file"})["memories"]
    versions = must(server, "GET", f"/v1/memory/{made['id']}/history")["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    assert [one["kind"] for one in versions] == ["user", "gateway"]
    entries = must(server, "GET", "/v1/audit", params={"target_id": made["id"]})
    assert {one["action"] for one in entries} >= {"create", "update"}


def test_a_version_that_is_not_the_present_one_is_a_conflict(server):
    must(server, "PUT", path("soul"), json={"content": "one", "expected_version": 1}, **TOM)
    stale = call(server, "PUT", path("soul"), json={"content": "two", "expected_version": 1}, **TOM)
    assert (stale.status_code, stale.json()["type"]) == (409, PREFIX + "changed-elsewhere")
    assert stale.json()["version"] == 2
    based = {"headers": {"If-Match": call(server, "GET", path("soul"), **TOM).headers["etag"]}} | TOM
    assert call(server, "PUT", path("soul"), json={"content": "two"}, **based).status_code == 200
    assert call(server, "PUT", path("soul"), json={"content": "3"}, **based).status_code == 409


@pytest.mark.parametrize("name", ["agents", "AGENTS.md", "USER", "profile", "x"])
def test_other_files_are_none(server, name):
    for method, options in (("GET", {}), ("PUT", {"json": {"content": "x"}})):
        answer = call(server, method, path(name), **options, **TOM)
        assert (answer.status_code, answer.json()["detail"], answer.json()["field"]) == (400, "无效的文件名", "name")


@pytest.mark.parametrize(
    ("content", "status"), [("", 400), (" \n", 400), ("a\0b", 400), ("api_key = sk_live_4eC39HqLyjWDarjtT1zdp7dc", 422)]
)
def test_what_no_file_can_hold_is_refused(server, content, status):
    assert call(server, "PUT", path("user"), json={"content": content}, **TOM).status_code == status


def test_an_agents_write_is_a_draft(tmp_path, template):
    with served(tmp_path / "data", template) as server:
        people(server)
        hermes, tom = key_for(server, "agent", "tom", "hermes"), key_for(server, "user", "tom")
        draft = call(server, "PUT", path("memory"), hermes, json={"content": "# Memory\n\nTom bakes.\n"})
        assert draft.status_code == 202
        must(server, "POST", f"/v1/reviews/{draft.json()['review']['id']}/accept", tom, json={})
        assert must(server, "GET", path("memory"), hermes)["content"] == "# Memory\n\nTom bakes.\n"


def test_skills_are_listed_with_their_state(server):
    listed = must(server, "GET", "/api/config/skills", **TOM)
    assert len(listed["skills"]) == 10
    assert {tuple(sorted(one)) for one in listed["skills"]} == {("category", "description", "enabled", "name")}
    assert {(one["category"], one["enabled"]) for one in listed["skills"]} == {("builtin", True)}
    done = must(server, "PUT", "/api/config/skills/commit", json={"enabled": False}, **TOM)
    assert done == {"skill_name": "commit", "enabled": False, "message": "ok"}
    off = [one["name"] for one in must(server, "GET", "/api/config/skills", **TOM)["skills"] if not one["enabled"]]
    assert off == ["commit"]
    assert all(one["enabled"] for one in must(server, "GET", "/api/config/skills")["skills"])
    missing = call(server, "PUT", "/api/config/skills/web_search", json={"enabled": True}, **TOM)
    assert missing.status_code == 404
    assert call(server, "PUT", "/api/config/skills/commit", json={"enabled": "no"}, **TOM).status_code == 400


@pytest.mark.parametrize(
    ("skill", "method", "route", "body"),
    [
        ("commit", "POST", "/v1/memory", {"content": "Tea."}),
        ("retrieve_context", "POST", "/v1/memory/search", {"query": "tea"}),
        ("ingest", "POST", "/v1/episodes", {"session_id": "s", "content": "Tea."}),
        ("extract", "POST", "/v1/sessions/known/commit", {}),
        ("summarize", "POST", "/v1/sessions/known/commit", {}),
    ],
)
def test_a_skill_that_is_off_is_really_off(server, skill, method, route, body):
    must(server, "POST", "/v1/sessions", json={"session_id": "known", "user_id": "tom"})
    tom = body | {"user_id": "tom"}
    must(server, "PUT", f"/api/config/skills/{skill}", json={"enabled": False}, **TOM)
    refused = call(server, method, route, json=tom)
    assert (refused.status_code, refused.json()["type"]) == (403, PREFIX + "skill-disabled")
    assert refused.json()["skill"] == skill
    assert call(server, "POST", "/v1/memory", json={"content": "Mine."}).status_code == 201  # the owner's is on
    must(server, "PUT", f"/api/config/skills/{skill}", json={"enabled": True}, **TOM)
    assert call(server, method, route, json=tom).status_code < 300

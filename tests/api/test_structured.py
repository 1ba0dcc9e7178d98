"""Structured memories over REST: the seed's routes, and the note that a person edits beside them."""

from __future__ import annotations

import pytest

from tests.servers import call, key_for, must, people

USER = "/api/v1/memories/user"
WORK = "/api/v1/memories/work"
TOM = {"params": {"user_id": "tom"}}


def note(server, name="UserMemory"):
    return server.vault / f"Users/tom/{name}.md"


def test_every_user_has_both_from_the_beginning(server):
    """Made with the user, with the seed's default structure; the owner's too."""
    assert note(server).is_file() and note(server, "WorkMemory").is_file()
    for params in ({}, {"user_id": "tom"}):
        both = must(server, "GET", "/api/v1/memories/", params=params)
        assert sorted(both) == ["user_memory", "work_memory"]
        assert both["user_memory"]["people"] == both["work_memory"]["current_projects"] == []
        assert both["user_memory"]["occupation"] is None
        assert both["user_memory"]["scheduling_preferences"]["no_meeting_windows"] == []
    assert (server.vault / "Users/owner/UserMemory.md").is_file()


def test_an_empty_form_is_no_memory(server):
    """A note that nobody has filled in is neither listed nor found; filled in, it is."""
    assert must(server, "GET", "/v1/memory", **TOM)["total"] == 0
    must(server, "PUT", USER, json={"content": {"people": [{"name": "Quirina"}]}}, **TOM)
    assert [one["path"] for one in must(server, "GET", "/v1/memory", **TOM)["memories"]] == ["Users/tom/UserMemory.md"]


def test_a_file_that_is_there_is_never_overwritten(server):
    folder = server.vault / "Users/eve"
    folder.mkdir(parents=True)
    (folder / "UserMemory.md").write_text("---\noccupation: spy\n---\n", "utf-8")
    must(server, "POST", "/v1/users", json={"user_id": "eve"})
    assert must(server, "GET", USER, params={"user_id": "eve"})["occupation"] == "spy"
    assert (folder / "UserMemory.md").read_text("utf-8") == "---\noccupation: spy\n---\n"


def test_older_users_get_theirs_when_they_ask(server):
    for path in (server.vault / "Users/tom").glob("*.md"):
        path.unlink()
    assert must(server, "GET", WORK, **TOM)["expertise"] == []
    assert note(server, "WorkMemory").is_file()


def test_put_replaces_and_dates_what_changed(server):
    person = {"name": "Ann", "role": "boss", "meta": {"source": "chat", "confidence": 0.9}}
    first = must(server, "PUT", USER, json={"content": {"occupation": "smith", "people": [person]}}, **TOM)
    assert first["people"][0]["meta"] | {"last_updated_at": 0} == person["meta"] | {"last_updated_at": 0}
    assert first["people"][0]["meta"]["last_updated_at"]
    assert must(server, "GET", USER, **TOM) == first
    given = {"content": {"people": [first["people"][0], {"name": "Bob"}]}}
    second = must(server, "PUT", USER, json=given, **TOM)
    assert second["people"][0] == first["people"][0]
    assert second["occupation"] is None
    same = must(server, "PUT", USER, json={"content": second}, **TOM)
    assert same == second


def test_patch_merges_things_by_name(server):
    project = {"name": "Bridge", "status": "active", "key_milestones": [{"name": "Piers", "status": "done"}]}
    content = {"expertise": ["steel", "wood"], "current_projects": [project], "team_context": "small"}
    must(server, "PUT", WORK, json={"content": content}, **TOM)
    change = {
        "expertise": ["stone"],
        "team_context": None,
        "current_projects": [
            {"name": "bridge", "priority": "high", "key_milestones": [{"name": "Deck", "due_date": "2026-12-24"}]},
            {"name": "Tower"},
        ],
        "work_habits": {"notes": "early"},
    }
    found = must(server, "PATCH", WORK, json={"content": change}, **TOM)
    assert found["expertise"] == ["stone"]
    assert found["team_context"] is None
    assert [one["name"] for one in found["current_projects"]] == ["bridge", "Tower"]
    bridge = found["current_projects"][0]
    assert (bridge["status"], bridge["priority"]) == ("active", "high")
    assert [one["name"] for one in bridge["key_milestones"]] == ["Piers", "Deck"]
    assert found["work_habits"]["notes"] == "early"
    assert must(server, "PATCH", WORK, json={"content": {"current_projects": None}}, **TOM)["current_projects"] == []


def test_in_the_note_only_what_changes_changes(server):
    text = note(server).read_text("utf-8").replace("## Places", "I like these.\n\n## Places")
    text = text.replace("occupation:\n", "occupation: smith # by day\nshoes: 43\n")
    note(server).write_text(text, "utf-8")
    must(server, "PATCH", USER, json={"content": {"people": [{"name": "Ann"}], "occupation": "baker"}}, **TOM)
    now = note(server).read_text("utf-8")
    assert "occupation: baker # by day\nshoes: 43\n" in now
    assert "I like these.\n\n## Places" in now
    assert len(set(text.splitlines()) - set(now.splitlines())) == 1


def test_a_persons_edit_is_in_force_at_once(server):
    text = note(server).read_text("utf-8").replace("## People\n\n```yaml\n[]", "## People\n\n```yaml\n- name: Ann")
    note(server).write_text(text.replace("interests: []", "interests: [tea]"), "utf-8")
    found = must(server, "GET", USER, **TOM)
    assert ([one["name"] for one in found["people"]], found["interests"]) == (["Ann"], ["tea"])


def test_an_invalid_edit_leaves_the_last_good_value_in_force(server):
    good = must(server, "PUT", USER, json={"content": {"people": [{"name": "Ann"}]}}, **TOM)
    text = note(server).read_text("utf-8")
    note(server).write_text(text.replace("- name: Ann", "- nom: Ann"), "utf-8")
    assert must(server, "GET", USER, **TOM) == good
    (problem, _) = must(server, "GET", "/v1/problems")["problems"]
    line = text.splitlines().index("- name: Ann") + 1
    assert (problem["kind"], problem["path"], problem["line"]) == ("bad-structure", "Users/tom/UserMemory.md", line)
    assert problem["field"] == "people[0].name"
    for method in ("PUT", "PATCH"):
        refused = call(server, method, USER, json={"content": {"occupation": "smith"}}, **TOM)
        assert (refused.status_code, refused.json()["line"]) == (422, line)
        assert refused.json()["file"] == "Users/tom/UserMemory.md"
    note(server).write_text(text.replace("Ann", "Bea"), "utf-8")
    assert must(server, "GET", USER, **TOM)["people"][0]["name"] == "Bea"
    assert must(server, "GET", "/v1/problems")["total"] == 0


def test_a_note_that_cannot_be_read_at_all_too(server):
    good = must(server, "PUT", USER, json={"content": {"occupation": "smith"}}, **TOM)
    note(server).write_text("---\noccupation: [\n---\n", "utf-8")
    assert must(server, "GET", USER, **TOM) == good
    refused = call(server, "PUT", USER, json={"content": {"occupation": "baker"}}, **TOM)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:memory-gateway:problem:bad-note")


def test_a_note_that_was_never_good_says_null(server):
    (server.vault / "Users/eve").mkdir(parents=True)
    (server.vault / "Users/eve/UserMemory.md").write_text("## People\n```yaml\n- 1\n```\n", "utf-8")
    must(server, "POST", "/v1/users", json={"user_id": "eve"})
    answer = call(server, "GET", USER, params={"user_id": "eve"})
    assert (answer.status_code, answer.text) == (200, "null")
    assert must(server, "GET", "/api/v1/memories", params={"user_id": "eve"})["user_memory"] is None


def test_the_last_good_value_is_in_force_after_a_restart(tmp_path, template):
    from tests.servers import served

    with served(tmp_path / "data", template) as server:
        must(server, "PUT", USER, json={"content": {"occupation": "smith"}})
        path = server.vault / "Users/owner/UserMemory.md"
        path.write_text(path.read_text("utf-8") + "\n## People\n", "utf-8")
        assert must(server, "GET", USER)["occupation"] == "smith"
    with served(tmp_path / "data", template) as server:
        assert must(server, "GET", USER)["occupation"] == "smith"
        assert must(server, "GET", "/v1/problems")["problems"][0]["kind"] == "bad-structure"


def test_if_match_is_optional_and_holds(server):
    etag = call(server, "GET", USER, **TOM).headers["etag"]
    body = {"json": {"content": {"occupation": "smith"}}} | TOM
    done = call(server, "PUT", USER, headers={"If-Match": etag}, **body)
    assert done.status_code == 200 and done.headers["etag"] != etag
    stale = call(server, "PATCH", USER, headers={"If-Match": etag}, **body)
    assert stale.status_code == 409
    assert stale.headers["etag"] == done.headers["etag"] == f'"{stale.json()["etag"]}"'
    assert "+occupation: smith" in stale.json()["diff"]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"people": [{"name": "Ann"}, {"role": "x"}]}, "content.people[1].name"),
        ({"people": [{"name": "Cid", "meta": {"confidence": 2}}]}, "content.people[0].meta.confidence"),
        ({"shoe": 1}, "content.shoe"),
        ({"preferences": {"language_preference": "en"}}, "content.preferences.language_preference"),
        ({"places": {"name": "x"}}, "content.places"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_does_not_fit_is_named_by_its_path(server, method, content, field):
    must(server, "PUT", USER, json={"content": {"people": [{"name": "Ann"}, {"name": "Bob"}]}}, **TOM)
    answer = call(server, method, USER, json={"content": content}, **TOM)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:memory-gateway:problem:invalid")
    if method == "PUT" or "[1]" not in field:
        assert answer.json()["field"] == field


def test_secrets_are_refused(server):
    content = {"people": [{"name": "Ann", "notes": "password: hunter2hunter2"}]}
    answer = call(server, "PUT", USER, json={"content": content}, **TOM)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:memory-gateway:problem:secret-found")
    assert "hunter2" not in answer.text


def test_an_agent_reads_and_proposes(tmp_path, template):
    """Its change is a draft; accepted, it is what the note says; the same again is the same draft."""
    from tests.servers import served

    with served(tmp_path / "data", template) as server:
        people(server)
        hermes = key_for(server, "agent", "tom", "hermes")
        tom = key_for(server, "user", "tom")
        must(server, "PUT", USER, tom, json={"content": {"occupation": "smith", "interests": ["tea"]}})
        change = {"content": {"occupation": "baker", "interests": [], "people": [{"name": "Ann"}]}}
        draft = call(server, "PATCH", USER, hermes, json=change)
        assert draft.status_code == 202
        review = draft.json()["review"]["id"]
        assert draft.headers["location"] == f"/v1/reviews/{review}"
        assert must(server, "GET", USER, hermes)["occupation"] == "smith"
        must(server, "POST", f"/v1/reviews/{review}/accept", tom, json={})
        found = must(server, "GET", USER, hermes)
        assert (found["occupation"], found["interests"]) == ("baker", [])
        assert [one["name"] for one in found["people"]] == ["Ann"]
        # Changes of properties alone, one rejected: the next is another proposal.
        for number, word in enumerate(("miner", "miller")):
            review = must(server, "PATCH", USER, hermes, json={"content": {"occupation": word}})["review"]["id"]
            decision = ("reject", "accept")[number]
            must(server, "POST", f"/v1/reviews/{review}/{decision}", tom, json={})
        assert must(server, "GET", USER, hermes)["occupation"] == "miller"
        again = call(server, "PATCH", USER, hermes, json={"content": {"occupation": "miner"}})
        assert (again.status_code, again.json()["type"]) == (409, "urn:memory-gateway:problem:tombstoned")
        reader = key_for(server, "reader", "tom")
        assert call(server, "PATCH", USER, reader, json=change).status_code == 403
        ann = key_for(server, "user", "ann")
        assert call(server, "GET", USER, ann, **TOM).status_code == 404


def test_a_forgotten_note_leaves_nothing_in_force(server):
    must(server, "PUT", USER, json={"content": {"occupation": "smith"}}, **TOM)
    (made,) = must(server, "GET", "/v1/memory", **TOM)["memories"]
    must(server, "DELETE", f"/v1/memory/{made['id']}", params={"version": made["version"]})
    assert must(server, "GET", USER, **TOM)["occupation"] is None

"""The life of a memory as its history tells it: who, what, when; every version readable; back to any of them."""

from __future__ import annotations

import subprocess

import pytest

from gateway.services.history import origins
from tests.api.conftest import eventually
from tests.servers import call, key_for, must, people, served

FIRST, SECOND, THIRD = (
    "Tom drinks tea.\n\nWithout sugar.",
    "Tom drinks tea.\n\nWith honey.",
    "Tom drinks mate.\n\nWith honey.",
)


def git(server, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=server.vault, capture_output=True, text=True, check=True)
    return done.stdout


def committed(server) -> None:
    server.gateway.parts.committer.flush(everything=True)


def note_of(server, memory_id: str):
    return server.vault / must(server, "GET", f"/v1/memory/{memory_id}")["path"]


def history(server, memory_id: str, key: str | None = None) -> list[dict]:
    return must(server, "GET", f"/v1/memory/{memory_id}/history", key)["versions"]


@pytest.fixture(scope="module")
def told(tmp_path_factory, template):
    """A memory of five versions: by an agent, by its user, by hand, moved by hand, and back to the second."""
    with served(tmp_path_factory.mktemp("history") / "data", template) as server:
        people(server)
        server.hermes = key_for(server, "agent", "tom", "hermes")
        server.tom = key_for(server, "user", "tom")
        server.ann = key_for(server, "user", "ann")
        made = must(server, "POST", "/v1/memory?wait=5", server.hermes, json={"content": FIRST, "summary": "Drinks"})
        server.id = made["id"]
        body = {"content": SECOND, "tags": ["drink"], "version": 1}
        must(server, "PATCH", f"/v1/memory/{server.id}", server.tom, json=body)
        committed(server)
        note = note_of(server, server.id)
        note.write_text(note.read_text("utf-8").replace("drinks tea", "drinks mate"), "utf-8")
        eventually(lambda: len(history(server, server.id)) == 3)
        committed(server)
        (note.parent / "Drinks").mkdir()
        note.rename(note.parent / "Drinks" / note.name)
        eventually(lambda: len(history(server, server.id)) == 4)
        committed(server)
        must(server, "POST", f"/v1/memory/{server.id}/revert", server.tom, json={"to": "2", "version": 4})
        committed(server)
        yield server


def test_each_version_says_who_made_it_and_what_kind_that_is(told):
    versions = history(told, told.id, told.tom)
    assert [one["version"] for one in versions] == [5, 4, 3, 2, 1]
    assert [one["kind"] for one in versions] == ["user", "person", "person", "user", "agent"]
    assert [one["op"] for one in versions] == ["write", "move", "write", "write", "write"]
    assert [one["actor"] for one in versions][3:] == ["user:tom", "agent:hermes"]
    assert len({one["commit"] for one in versions}) == 5
    assert "/Drinks/" in versions[1]["path"] and "/Drinks/" not in versions[2]["path"]


def test_every_version_can_be_read_by_number_and_by_commit(told):
    versions = history(told, told.id)
    contents = {5: SECOND, 4: THIRD, 3: THIRD, 2: SECOND, 1: FIRST}
    for one in versions:
        for named in (str(one["version"]), one["commit"], one["commit"][:12]):
            found = must(told, "GET", f"/v1/memory/{told.id}/history/{named}", told.tom)
            assert found["content"].strip() == contents[one["version"]]
            assert found["text"].startswith("---\n")
            assert (found["commit"], found["version"], found["kind"]) == (one["commit"], one["version"], one["kind"])


def test_a_version_that_git_does_not_have_yet_can_be_read(told):
    merging = told.vault / ".git/MERGE_HEAD"
    merging.write_text("0" * 40, "utf-8")  # git waits for a person
    made = must(told, "POST", "/v1/memory?wait=5", told.tom, json={"content": "not committed"})
    found = must(told, "GET", f"/v1/memory/{made['id']}/history/1", told.tom)
    assert (found["content"].strip(), found["commit"]) == ("not committed", None)
    assert must(told, "GET", f"/v1/memory/{made['id']}/blame")["lines"][-1]["text"] == "not committed"
    assert "+not committed" in must(told, "GET", f"/v1/memory/{made['id']}/diff")["diff"]
    merging.unlink()


def test_only_commits_of_the_memory_itself_can_be_named(told):
    """Also where the commit holds its file, or another's."""
    other = must(told, "POST", "/v1/memory?wait=5", told.ann, json={"content": "Ann's secret garden."})
    committed(told)
    foreign = history(told, other["id"])[0]["commit"]
    root = git(told, "rev-list", "--max-parents=0", "HEAD").strip()
    for named in (foreign, root, "HEAD", "HEAD~1", "9", "0", "--all", "deadbeef", "dead"):
        for method, path, options in (
            ("GET", f"/history/{named}", {}),
            ("GET", "/diff", {"params": {"from": named}}),
            ("GET", "/diff", {"params": {"to": named}}),
            ("POST", "/revert", {"json": {"to": named, "version": 5}}),
        ):
            answer = call(told, method, f"/v1/memory/{told.id}{path}", **options)
            assert answer.status_code == 404, (named, path, answer.text)
            assert "garden" not in answer.text


def test_the_difference_of_any_two_versions(told):
    path = f"/v1/memory/{told.id}/diff"
    newest = must(told, "GET", path, told.tom)
    assert (newest["from"]["version"], newest["to"]["version"]) == (4, 5)
    assert "-Tom drinks mate." in newest["diff"] and "+Tom drinks tea." in newest["diff"]
    commit = history(told, told.id)[-1]["commit"]
    ends = must(told, "GET", path, told.tom, params={"from": commit[:7], "to": "2"})
    assert (ends["from"]["kind"], ends["to"]["kind"]) == ("agent", "user")
    assert "-Without sugar." in ends["diff"] and "+With honey." in ends["diff"]
    first = must(told, "GET", path, told.tom, params={"to": "1"})
    assert first["from"] is None
    assert "+Without sugar." in first["diff"]


def test_blame_tells_of_each_line_who_wrote_it(told):
    answer = must(told, "GET", f"/v1/memory/{told.id}/blame", told.tom)
    told_of = {line["text"]: (line["version"], line["kind"]) for line in answer["lines"]}
    assert told_of["With honey."] == (2, "user")
    assert told_of["Tom drinks tea."] == (5, "user")
    assert told_of["summary: Drinks"] == (1, "agent")
    text = note_of(told, told.id).read_text("utf-8")
    assert [line["text"] for line in answer["lines"]] == text.removesuffix("\n").split("\n")
    assert [line["number"] for line in answer["lines"]] == list(range(1, len(answer["lines"]) + 1))


def test_lines_come_from_the_text_that_brought_them():
    assert origins([]) == []
    assert origins([["a", "b"]]) == [0, 0]
    assert origins([["a", "b"], ["a", "x", "b"], ["x", "b", "y"]]) == [1, 0, 2]
    assert origins([["a"], [], ["a"]]) == [2]
    assert origins([["a", "a"], ["a"], ["a", "a", "a"]])[0] == 0


def test_a_revert_is_a_new_version_and_rewrites_nothing(server):
    made = server.write("one", tags=["x"], user_id="tom")
    path = f"/v1/memory/{made['id']}"
    changed = must(server, "PATCH", path, json={"content": "two", "tags": [], "importance": 0.9, "version": 1})
    committed(server)
    before = git(server, "log", "--format=%H")
    assert call(server, "POST", f"{path}/revert", json={"to": "1"}).status_code == 428
    late = call(server, "POST", f"{path}/revert", json={"to": "1"}, headers={"If-Match": f'"{made["etag"]}"'})
    assert late.status_code == 409
    headers = {"If-Match": f'"{changed["etag"]}"', "Idempotency-Key": "once"}
    done = call(server, "POST", f"{path}/revert", json={"to": 1}, headers=headers)
    assert done.status_code == 200, done.text
    again = call(server, "POST", f"{path}/revert", json={"to": 1}, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["version"] == done.json()["version"] == 3
    read = must(server, "GET", path)
    assert (read["content"].strip(), read["tags"], read["importance"], read["version"]) == ("one", ["x"], 0.5, 3)
    text = note_of(server, made["id"]).read_text("utf-8")
    assert f"id: {made['id']}\n" in text and "version: 3\n" in text
    committed(server)
    assert git(server, "log", "--format=%H").endswith(before)
    assert [one["version"] for one in history(server, made["id"])] == [3, 2, 1]
    same = must(server, "POST", f"{path}/revert", json={"to": "3", "version": 3})
    assert same["version"] == 3
    assert "revert" in {one["action"] for one in must(server, "GET", "/v1/audit", params={"target_id": made["id"]})}


def test_what_was_forgotten_does_not_come_back_by_a_revert(server):
    made = server.write("my old address", user_id="tom")
    must(server, "PATCH", f"/v1/memory/{made['id']}", json={"content": "my new address", "version": 1})
    other = server.write("my old address", user_id="tom", memory_type="fact")
    must(server, "DELETE", f"/v1/memory/{other['id']}", params={"version": 1})
    answer = call(server, "POST", f"/v1/memory/{made['id']}/revert", json={"to": "1", "version": 2})
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "tombstoned")
    must(server, "DELETE", f"/v1/memory/{made['id']}", params={"version": 2})
    for method, path in (("POST", "revert"), ("GET", "diff"), ("GET", "blame"), ("GET", "history/1")):
        body = {"json": {"to": "1", "version": 2}} if method == "POST" else {}
        assert call(server, method, f"/v1/memory/{made['id']}/{path}", **body).status_code == 404


def test_anothers_history_is_not_there(told):
    commit = history(told, told.id)[-1]["commit"]
    for method, path, options in (
        ("GET", "history", {}),
        ("GET", f"history/{commit}", {}),
        ("GET", "history/1", {}),
        ("GET", "diff", {}),
        ("GET", "blame", {}),
        ("POST", "revert", {"json": {"to": commit, "version": 5}}),
    ):
        answer = call(told, method, f"/v1/memory/{told.id}/{path}", told.ann, **options)
        assert answer.status_code == 404, (path, answer.text)
        assert "Drinks" not in answer.text


def test_what_a_memory_said_in_a_folder_of_another_stays_there(server):
    """A private note that is moved to a shared folder is shared from then on, not before."""
    people_of = {"workspace_id": "team", "owner_user_id": "tom", "member_user_ids": ["tom", "ann"]}
    must(server, "POST", "/v1/workspaces", json=people_of)
    ann, tom = key_for(server, "user", "ann"), key_for(server, "user", "tom")
    made = server.write("A party\n\nIt is on Friday.", user_id="tom")
    must(
        server,
        "PATCH",
        f"/v1/memory/{made['id']}",
        tom,
        json={"content": "A party", "visibility": None, "version": 1},
    )
    committed(server)
    note = note_of(server, made["id"])
    shared = server.vault / "Workspaces/team/Shared"
    shared.mkdir(parents=True, exist_ok=True)
    note.rename(shared / note.name)
    eventually(lambda: call(server, "GET", f"/v1/memory/{made['id']}", ann).status_code == 200)
    committed(server)
    assert [one["version"] for one in history(server, made["id"], tom)] == [3, 2, 1]
    assert [one["version"] for one in history(server, made["id"], ann)] == [3]
    for path in ("history?diff=true", "diff", "blame"):
        assert "Friday" not in call(server, "GET", f"/v1/memory/{made['id']}/{path}", ann).text
    assert call(server, "GET", f"/v1/memory/{made['id']}/history/1", ann).status_code == 404


@pytest.mark.parametrize("with_id", [True, False], ids=["of-the-gateway", "of-a-person"])
def test_without_its_ledger_git_still_tells_the_history(tmp_path, template, with_id):
    """Commits before and after a move, who made them, and their texts."""
    data = tmp_path / "data"
    with served(data, template) as server:
        people(server)
        folder = server.vault / "Users/tom/LongTerm"
        if with_id:
            memory_id = must(
                server, "POST", "/v1/memory?wait=5", key_for(server, "agent", "tom", "hermes"), json={"content": FIRST}
            )["id"]
            note = note_of(server, memory_id)
        else:
            note = folder / "Drinks.md"
            note.write_text(FIRST + "\n", "utf-8")
            memory_id = eventually(lambda: server.http.get("/v1/memory?user_id=tom").json()["memories"])[0]["id"]
        committed(server)
        (folder / "Old").mkdir()
        moved = note.rename(folder / "Old" / note.name)
        eventually(lambda: len(history(server, memory_id)) == 2)
        committed(server)
        moved.write_text(moved.read_text("utf-8").replace("sugar", "salt"), "utf-8")
        eventually(lambda: len(history(server, memory_id)) == 3)
        committed(server)
        before = history(server, memory_id)
    for file in data.glob("ledger.db*"):
        file.unlink()
    with served(data, template) as server:
        memory_id = server.http.get("/v1/memory?user_id=tom").json()["memories"][0]["id"]
        committed(server)
        after = history(server, memory_id)
        assert [one["commit"] for one in after] == [one["commit"] for one in before]
        assert [one["op"] for one in after] == ["write", "move", "write"]
        assert [one["path"] for one in after] == [one["path"] for one in before]
        assert [one["kind"] for one in after] == ["person", "person", "agent" if with_id else "person"]
        contents = [must(server, "GET", f"/v1/memory/{memory_id}/history/{one['commit']}")["content"] for one in after]
        assert [text.strip() for text in contents] == [FIRST.replace("sugar", "salt"), FIRST, FIRST]
        blamed = {one["text"]: one["commit"] for one in must(server, "GET", f"/v1/memory/{memory_id}/blame")["lines"]}
        assert blamed["Without salt."] == after[0]["commit"]
        assert blamed["Tom drinks tea."] == after[2]["commit"]

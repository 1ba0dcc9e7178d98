"""Sandboxes: which way each file goes, a directory that is never left, and a sync that loses nobody's text."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner

from gateway.adapters.sandbox import FileState, read_sandbox, step_for, text_hash, write_sandbox
from gateway.bootstrap import open_gateway
from gateway.cli import cli
from gateway.config import load_settings
from gateway.errors import BadPath, Invalid, TooLarge
from gateway.starter import templates
from tests.api.conftest import server, template  # noqa: F401 - fixtures
from tests.servers import call, key_for, must, people, served

RULES = (templates() / "AGENTS.md").read_text("utf-8")
SAME = FileState(sandbox="one\n", vault="one", template="form", base=text_hash("one"))
AGENT = replace(SAME, sandbox="agent's")
PERSON = replace(SAME, vault="person's")
BOTH = replace(SAME, sandbox="agent's", vault="person's")
NEW = replace(SAME, sandbox="agent's", vault="form", base=None)


@pytest.mark.parametrize("mode", ["new_user", "round", "force", "new_session"])
@pytest.mark.parametrize("dirty", [True, False])
def test_what_holds_on_every_occasion(mode, dirty):
    """The same is the same; an empty sandbox is filled; a person's change comes; what both changed is not lost."""
    assert step_for(SAME, mode, dirty=dirty) == "same"
    for empty in (None, "", " \n"):
        assert step_for(replace(BOTH, sandbox=empty), mode, dirty=dirty) == "push"
    assert step_for(PERSON, mode, dirty=dirty) == "push"
    assert step_for(BOTH, mode, dirty=dirty) == ("push" if mode == "force" else "merge")
    assert step_for(replace(NEW, sandbox="form", vault="person's"), mode, dirty=dirty) == "push"


@pytest.mark.parametrize(
    ("mode", "dirty", "changed", "first"),
    [
        ("round", True, "pull", "pull"),
        ("round", False, "leave", "leave"),
        ("new_session", False, "pull", "pull"),
        ("new_user", True, "pull", "leave"),
        ("force", True, "push", "push"),
    ],
)
def test_what_depends_on_the_occasion(mode, dirty, changed, first):
    """The table of the seed: sandbox-first in a new session, by the dirty flag in a round, the vault by force."""
    assert step_for(AGENT, mode, dirty=dirty) == changed
    assert step_for(NEW, mode, dirty=dirty) == first


def test_a_directory_is_never_left(tmp_path):
    outside = tmp_path / "secret"
    outside.write_text("secret", "utf-8")
    box = tmp_path / "box"
    box.mkdir()
    (box / "other.md").write_text("not ours", "utf-8")
    (box / "SOUL.md").write_text("soul", "utf-8")
    assert read_sandbox(box, max_bytes=100) == {"SOUL.md": "soul"}
    (box / "USER.md").symlink_to(outside)
    with pytest.raises(BadPath):
        read_sandbox(box, max_bytes=100)
    with pytest.raises(BadPath):
        write_sandbox(box, {"USER.md": "x"}, {})
    assert outside.read_text("utf-8") == "secret"
    (box / "USER.md").unlink()
    os.mkfifo(box / "USER.md")
    with pytest.raises(BadPath):
        read_sandbox(box, max_bytes=100)
    (box / "USER.md").unlink()
    for name in ("../x", "x.md", "/etc/passwd"):
        with pytest.raises(Invalid):
            write_sandbox(box, {name: "x"}, {})
    with pytest.raises(TooLarge):
        read_sandbox(box, max_bytes=3)


def test_a_file_that_changed_meanwhile_is_left(tmp_path):
    (tmp_path / "SOUL.md").write_text("newer", "utf-8")
    (tmp_path / "USER.md").write_text("seen", "utf-8")
    left = write_sandbox(
        tmp_path, {"SOUL.md": "x", "USER.md": "y", "MEMORY.md": "z"}, {"SOUL.md": "s", "USER.md": "seen"}
    )
    assert left == ["SOUL.md"]
    assert {one.name: one.read_text("utf-8") for one in tmp_path.iterdir()} == {
        "SOUL.md": "newer",
        "USER.md": "y",
        "MEMORY.md": "z",
    }


class Box:
    """A remote sandbox: it sends what it has and writes what it is told."""

    def __init__(self, server, key=None, name="box"):  # noqa: F811 - the fixture's name
        self.server, self.key, self.name, self.files = server, key, name, {}

    def sync(self, mode="round", **fields):
        body = {"files": self.files, "mode": mode, "user_id": "tom", **fields}
        answer = must(self.server, "POST", f"/v1/sandboxes/{self.name}/sync", self.key, json=body)
        self.files |= answer["files"]
        return answer

    def vault(self, name):
        return must(self.server, "GET", f"/api/config/agent-files/{name}", params={"user_id": "tom"})

    def person(self, name, text):
        """A person edits the file in the vault, with an editor."""
        (self.server.vault / "Users/tom" / f"{name.upper()}.md").write_text(text, "utf-8")


def test_a_new_users_sandbox_is_filled_once(server):  # noqa: F811
    box = Box(server)
    first = box.sync("new_user")
    assert sorted(first["files"]) == ["AGENTS.md", "MEMORY.md", "SOUL.md", "USER.md"]
    assert box.files["AGENTS.md"] == RULES
    again = box.sync("new_user")
    assert (again["files"], again["written_back"], again["conflicts"]) == ({}, [], [])
    assert again["versions"] == {"USER.md": 1, "SOUL.md": 1, "MEMORY.md": 1}


def test_an_agents_change_goes_into_the_vault_once(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    box.files["MEMORY.md"] = "# Memory\n\nTom bakes.\n"
    assert box.sync(dirty=False)["written_back"] == []
    answer = box.sync()
    assert (answer["written_back"], answer["versions"]["MEMORY.md"]) == (["MEMORY.md"], 2)
    assert box.vault("memory")["content"] == "# Memory\n\nTom bakes.\n"
    assert box.sync()["versions"]["MEMORY.md"] == 2


def test_the_platforms_rules_go_one_way(server):  # noqa: F811
    box = Box(server)
    box.files["AGENTS.md"] = "Do as you like."
    answer = box.sync("new_session")
    assert (answer["files"]["AGENTS.md"], answer["written_back"]) == (RULES, [])
    assert "as you like" not in (server.vault / "AGENTS.md").read_text("utf-8")


def test_a_persons_change_comes_into_the_sandbox(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    box.person("soul", "# Soul\n\nKind.\n")
    assert box.sync(dirty=False)["files"] == {"SOUL.md": "# Soul\n\nKind.\n"}
    box.files["SOUL.md"] = "the agent's own"
    assert box.sync("force")["files"] == {"SOUL.md": "# Soul\n\nKind.\n"}


def test_a_sandbox_that_did_not_write_does_not_undo_a_persons_change(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    box.person("soul", "# Soul\n\nKind.\n")
    before = dict(box.files)
    box.sync()
    box.files = before  # it crashed before it wrote
    assert box.sync()["files"] == {"SOUL.md": "# Soul\n\nKind.\n"}
    assert box.vault("soul")["content"] == "# Soul\n\nKind.\n"


def test_a_new_session_is_sandbox_first(server):  # noqa: F811
    box = Box(server)
    must(server, "PUT", "/api/config/agent-files/user", params={"user_id": "tom"}, json={"content": "vault's"})
    box.files = {"USER.md": "sandbox's", "SOUL.md": ""}
    answer = box.sync("new_session")
    assert answer["written_back"] == ["USER.md"]
    assert box.vault("user")["content"] == "sandbox's"
    assert box.files["SOUL.md"] == (templates() / "SOUL.md").read_text("utf-8")


def test_what_both_changed_is_merged(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    text = box.files["MEMORY.md"]
    box.files["MEMORY.md"] = text.replace("## Lessons", "## Lessons\n\nAsk first.")
    box.person("memory", text.replace("# Memory", "# Memory of Tom"))
    answer = box.sync()
    assert answer["written_back"] == ["MEMORY.md"]
    assert "# Memory of Tom" in box.files["MEMORY.md"] and "Ask first." in box.files["MEMORY.md"]
    assert box.vault("memory")["content"] == box.files["MEMORY.md"]
    assert box.sync()["files"] == {}


def test_where_they_contradict_the_persons_stays_and_the_agents_is_a_draft(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    box.files["USER.md"] = "# User\n\nBaker.\n"
    box.person("user", "# User\n\nSmith.\n")
    answer = box.sync()
    (conflict,) = answer["conflicts"]
    assert (conflict["name"], conflict["code"]) == ("USER.md", "contradiction")
    assert answer["written_back"] == []
    assert box.files["USER.md"] == box.vault("user")["content"] == "# User\n\nSmith.\n"
    review = conflict["review"]["id"]
    assert must(server, "GET", f"/v1/reviews/{review}")["text"] == "# User\n\nBaker."
    assert box.sync()["conflicts"] == []
    must(server, "POST", f"/v1/reviews/{review}/accept", json={})
    assert "Baker" in box.sync()["files"]["USER.md"]


def test_secrets_and_other_files_do_not_pass(server):  # noqa: F811
    box = Box(server)
    box.sync("new_session")
    box.files["MEMORY.md"] = "password: hunter2hunter2\n"
    answer = box.sync()
    assert [(one["name"], one["code"]) for one in answer["conflicts"]] == [("MEMORY.md", "secret-found")]
    assert "hunter2" not in json.dumps(answer)
    assert "hunter2" not in box.vault("memory")["content"]
    for files in ({"../x.md": "x"}, {"Profile.md": "x"}):
        assert call(server, "POST", "/v1/sandboxes/box/sync", json={"files": files}).status_code == 400


def test_an_agents_key_only_proposes_and_each_user_has_their_own(tmp_path, template):  # noqa: F811
    with served(tmp_path / "data", template) as running:
        people(running)
        box = Box(running, key_for(running, "agent", "tom", "hermes"))
        box.sync("new_session")
        box.files["MEMORY.md"] = "# Memory\n\nTom bakes.\n"
        answer = box.sync()
        assert answer["written_back"] == [] and [one["name"] for one in answer["reviews"]] == ["MEMORY.md"]
        assert box.sync()["reviews"] == answer["reviews"]
        tom = key_for(running, "user", "tom")
        must(running, "POST", f"/v1/reviews/{answer['reviews'][0]['review']['id']}/accept", tom, json={})
        assert box.sync()["reviews"] == []
        assert box.vault("memory")["content"] == "# Memory\n\nTom bakes.\n"
        ann = key_for(running, "user", "ann")
        body = {"files": {}, "user_id": "tom"}
        assert call(running, "POST", "/v1/sandboxes/box/sync", ann, json=body).status_code == 404
        reader = key_for(running, "reader", "tom")
        assert call(running, "POST", "/v1/sandboxes/box/sync", reader, json={"files": {}}).status_code == 403


def test_a_directory_from_the_command_line(tmp_path, template):  # noqa: F811
    data, box = tmp_path / "data", tmp_path / "box"
    box.mkdir()
    open_gateway(load_settings(data_dir=data, embedding={"provider": "none"})).close()
    (data / "gateway.toml").write_text('[embedding]\nprovider = "none"\n', "utf-8")
    run = ["sandbox", "sync", "--data-dir", str(data), "--json", str(box)]
    first = CliRunner().invoke(cli, run, catch_exceptions=False)
    assert first.exit_code == 0, first.output
    assert (box / "AGENTS.md").read_text("utf-8") == RULES
    (box / "SOUL.md").write_text("# Soul\n\nKind.\n", "utf-8")
    answer = json.loads(CliRunner().invoke(cli, run, catch_exceptions=False).output)
    assert answer["written_back"] == ["SOUL.md"]
    assert (data / "vault/Users/owner/SOUL.md").read_text("utf-8") == "# Soul\n\nKind.\n"

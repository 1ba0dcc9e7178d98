"""`review` and `sync` in the terminal, with a server and without one."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from tests.journeys.running import COMMAND, environment, run
from tests.reviews.world import change, infer, know

QUIET = {"embedding": {"provider": "none"}}


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A data directory with three drafts."""
    data = tmp_path_factory.mktemp("template") / "data"
    gateway = open_gateway(load_settings(data_dir=data, **QUIET))
    gateway.settle()
    infer(gateway, "The owner likes oolong \x1b[31mred\u202e.", summary="Oolong [bold]")
    infer(gateway, "The owner sails on Sundays.", summary="Sailing")
    known = know(gateway, "The boat is green.", summary="Boat")
    change(gateway, known, content="The boat is blue.")
    gateway.settle()
    gateway.close()
    return data


def listed(data: Path, *options: str) -> list[dict]:
    done = run("review", "list", "--data-dir", data, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["reviews"]


def by_title(data: Path, title: str) -> str:
    return next(one["id"] for one in listed(data, "--status", "any") if one["title"] == title)


def test_the_list_shows_what_waits_and_escapes_it(data):
    done = run("review", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["age", "id", "kind", "sure", "for", "by", "title"]
    assert len(lines) == 4
    assert "Oolong [bold]" in done.stdout
    assert [one["proposal"] for one in listed(data)] == ["create", "create", "update"]
    assert [one["title"] for one in listed(data, "--proposal", "update")] == ["Boat"]
    assert listed(data, "--namespace", "agent/assistant/memory") == []
    refused = run("review", "list", "--data-dir", data, "--namespace", "nowhere")
    assert refused.returncode == 2
    assert "namespace" in refused.stderr


def test_show_says_who_why_and_what_would_change(data):
    shown = run("review", "show", "--data-dir", data, by_title(data, "Boat")).stdout
    assert "agent:assistant" in shown
    assert "a person wrote or accepted" in shown
    assert "-The boat is green." in shown
    assert "+The boat is blue." in shown
    odd = run("review", "show", "--data-dir", data, by_title(data, "Oolong [bold]")).stdout
    assert "\\u001b[31mred\\u202e" in odd
    assert "\x1b" not in odd
    whole = json.loads(run("review", "show", "--data-dir", data, "--json", by_title(data, "Boat")).stdout)
    assert whole["text"].strip() == "The boat is blue."


def test_an_id_may_be_shortened_while_it_is_clear(data, tmp_path):
    review_id = by_title(data, "Sailing")
    for short in (review_id[4:12], review_id[-6:]):
        assert f"id  {review_id}" in run("review", "show", "--data-dir", data, short).stdout
    vague = run("review", "show", "--data-dir", data, "rev_")
    assert vague.returncode == 2
    missing = run("review", "show", "--data-dir", data, "zzzzzz")
    assert missing.returncode == 2
    assert "review list" in missing.stderr


def test_accepting_with_another_text_and_rejecting(data, tmp_path):
    review_id = by_title(data, "Sailing")
    text = tmp_path / "text.md"
    text.write_text("The owner sails on Saturdays.\n", "utf-8")
    done = run("review", "accept", review_id, "--data-dir", data, "--text-file", text, "--reason", "asked")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{review_id} accepted: mem_")
    assert len(done.stdout.splitlines()) == 1
    memory_id = done.stdout.split()[-1]
    notes = [path.read_text("utf-8") for path in (data / "vault" / "Memories/LongTerm").glob("*.md")]
    assert any(memory_id in note and "sails on Saturdays" in note for note in notes)
    again = run("review", "accept", review_id, "--data-dir", data)
    assert again.returncode == 2
    assert "accepted already" in again.stderr
    other = by_title(data, "Boat")
    done = run("review", "reject", other[-8:], "--data-dir", data)
    assert (done.returncode, done.stdout) == (0, f"{other} rejected\n")
    assert {one["title"]: one["status"] for one in listed(data, "--status", "any")} == {
        "Oolong [bold]": "pending",
        "Sailing": "accepted",
        "Boat": "rejected",
    }
    assert by_title(data, "Boat")
    empty = run("review", "accept", by_title(data, "Oolong [bold]"), "--data-dir", data, "--text", " ")
    assert empty.returncode == 2
    assert "must not be empty" in empty.stderr


def on_a_terminal(data: Path, typed: str, editor: str | None = None, *arguments: str) -> tuple[int, str]:
    """Run `review` with a terminal at both ends and type into it."""
    main, terminal = pty.openpty()
    env = environment() | {"TERM": "dumb", "VISUAL": editor or "false", "COLUMNS": "200"}
    command = [COMMAND, "review", *arguments, "--data-dir", str(data)]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env, close_fds=True)
    os.close(terminal)
    os.write(main, typed.encode())
    said = b""
    while True:
        try:
            part = os.read(main, 65_536)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(main)
    return process.wait(timeout=30), said.decode("utf-8", "replace")


def editor(tmp_path: Path, name: str, script: str) -> str:
    """An editor: a program of its own that is called with the file."""
    path = tmp_path / name
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nfile = Path(sys.argv[1])\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_queue_is_walked_through_on_a_terminal(data, tmp_path):
    write = editor(tmp_path, "write", "file.write_text('The owner sails at dawn.\\n')")
    code, said = on_a_terminal(data, "s\ne\na\nr\n", write)
    assert code == 0, said
    assert "1 of 3" in said
    assert "no more drafts wait" in said
    assert {one["title"]: one["status"] for one in listed(data, "--status", "any")} == {
        "Oolong [bold]": "pending",
        "Sailing": "accepted",
        "Boat": "rejected",
    }
    notes = [path.read_text("utf-8") for path in (data / "vault" / "Memories/LongTerm").glob("*.md")]
    assert any("sails at dawn" in note for note in notes)


def test_a_draft_that_changed_while_it_was_edited_is_not_decided(data, tmp_path):
    """And what was typed into the editor is kept."""
    (draft,) = (data / "vault" / "Reviews/Queue").glob("Sailing*.md")
    other = f"other = Path({str(draft)!r})\nother.write_text(other.read_text() + 'And rows.\\n')\n"
    meddle = editor(tmp_path, "meddle", other + "file.write_text('The owner sails at dawn.\\n')")
    code, said = on_a_terminal(data, "a\n", meddle, "edit", by_title(data, "Sailing"))
    assert code == 2, said
    assert "edited since you read it" in said
    kept = Path(said.split("your text is kept in ")[1].split()[0])
    assert kept.read_text("utf-8") == "The owner sails at dawn.\n"
    kept.unlink()
    assert len(listed(data)) == 3


def test_a_sync_without_a_remote_says_so(data):
    done = run("sync", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert "no remote is set" in done.stdout
    assert json.loads(run("sync", "--data-dir", data, "--json").stdout)["remote"] is None


def test_a_sync_pushes_and_merges(tmp_path, template):
    data, remote, clone = tmp_path / "data", tmp_path / "remote.git", tmp_path / "clone"
    shutil.copytree(template, data, symlinks=True)
    (data / "gateway.toml").write_text('[git]\nremote = "origin"\nsync_seconds = 600\n', "utf-8")

    def git(folder: Path, *arguments: str) -> None:
        name = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)

    git(tmp_path, "init", "--bare", "--initial-branch=main", str(remote))
    missing = run("sync", "--data-dir", data)
    assert missing.returncode == 2
    assert "knows no remote `origin`" in missing.stderr
    git(data / "vault", "remote", "add", "origin", str(remote))
    assert "pushed" in run("sync", "--data-dir", data).stdout
    git(tmp_path, "clone", "--branch", "main", str(remote), str(clone))
    (clone / "Memories/LongTerm/Pulled.md").write_text("A magpie sat on the fence.\n", "utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--message", "A magpie")
    git(clone, "push", "origin", "main")
    done = run("sync", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert "merged" in done.stdout
    found = json.loads(run("search", "--data-dir", data, "--mode", "fts", "--json", "magpie").stdout)
    assert found["total"] == 1

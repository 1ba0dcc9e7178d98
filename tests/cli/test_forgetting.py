"""`forget` in the terminal, with a server and without one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from tests.journeys.running import run
from tests.reviews.world import know

QUIET = {"embedding": {"provider": "none"}}
TEXT = "The owner's kayak is called Merganser."


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    data = tmp_path_factory.mktemp("template") / "data"
    gateway = open_gateway(load_settings(data_dir=data, **QUIET))
    gateway.settle()
    know(gateway, TEXT)
    know(gateway, "The owner paddles on Fridays.")
    gateway.settle()
    gateway.close()
    return data


def found(data: Path, query: str = "kayak Merganser") -> list[str]:
    done = run("search", "--data-dir", data, "--json", query)
    assert done.returncode == 0, done.stderr
    return [
        one["memory"]["id"] for one in json.loads(done.stdout)["results"] if "Merganser" in one["memory"]["content"]
    ]


def test_a_memory_is_forgotten_and_had_back(data):
    memory_id = found(data)[0]
    note = next((data / "vault/Memories/LongTerm").glob("*Merganser*"))
    text = note.read_bytes()
    done = run("forget", memory_id, "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert "git            remains in git history" in done.stdout or "git            pending" in done.stdout
    assert not note.exists()
    assert found(data) == []
    note.write_bytes(text)
    name = note.relative_to(data / "vault").as_posix()
    done = run("forget", "--undo", name, "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert found(data) == [memory_id]


def test_a_memory_is_forgotten_and_purged(data):
    memory_id = found(data)[0]
    done = run("forget", memory_id, "--purge", "--yes", "--json", "--data-dir", data)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["purged"]["status"] == "done"
    again = run("forget", "--purge", "--yes", "--data-dir", data)
    assert again.returncode == 0, again.stderr


def test_a_scope_is_cleared(data):
    assert found(data)
    done = run("forget", "--all-of", "user:owner", "--yes", "--data-dir", data)
    assert done.returncode == 0, done.stderr
    assert "cleared: done" in done.stdout
    assert found(data) == []


WRONG = [
    (),
    ("--all-of", "owner", "--yes"),
    ("--all-of", "galaxy:milky", "--yes"),
    ("mem_unknown",),
    ("--undo", "Memories/LongTerm/nothing.md"),
    ("mem_x", "--all-of", "user:owner"),
]


def test_bad_input_is_told_and_changes_nothing(tmp_path, template):
    shutil.copytree(template, tmp_path / "data", symlinks=True)
    for arguments in WRONG:
        done = run("forget", *arguments, "--data-dir", tmp_path / "data")
        assert done.returncode == 2, arguments
        assert done.stderr.strip(), arguments
    asked = run("forget", "--all-of", "user:owner", "--data-dir", tmp_path / "data")
    assert asked.returncode == 1, "nobody said yes"
    assert found(tmp_path / "data")

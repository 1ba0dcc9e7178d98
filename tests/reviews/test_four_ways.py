"""The same thirty decisions, in Obsidian by property and by moving, over REST, by command, and in git."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway
from gateway.config import load_settings
from gateway.services.check import check
from gateway.vault.lock import write_address
from tests.api.conftest import start
from tests.conftest import IMPATIENT
from tests.importer.same_state import settle
from tests.reviews.world import Scripted, fill, git, ledger_of, review_of, vault_of, waiting

COMMAND = str(Path(sys.executable).with_name("memory-gateway"))


def by_property(gateway: Gateway, drafts: dict[str, str], script: list[Scripted], _data: Path) -> None:
    for one in script:
        file = gateway.parts.files.root / review_of(gateway, drafts[one.name]).path
        text = file.read_text("utf-8").replace("\ndecision:\n", f"\ndecision: {one.decision}\n", 1)
        file.write_text(_edited(text, one), "utf-8")


def by_moving(gateway: Gateway, drafts: dict[str, str], script: list[Scripted], _data: Path) -> None:
    for one in script:
        file = gateway.parts.files.root / review_of(gateway, drafts[one.name]).path
        file.write_text(_edited(file.read_text("utf-8"), one), "utf-8")
        folder = "Accepted" if one.decision == "accept" else "Rejected"
        file.rename(file.parents[1] / folder / file.name)


def by_rest(gateway: Gateway, drafts: dict[str, str], script: list[Scripted], data: Path) -> None:
    with _serving(gateway, data) as server:
        for one in script:
            found = server.http.get(f"/v1/reviews/{drafts[one.name]}").json()
            body = {"text": f"{found['text']}\n\n{one.edit}"} if one.edit and one.decision == "accept" else {}
            url = f"/v1/reviews/{drafts[one.name]}/{one.decision}"
            answer = server.http.post(url, json=body, headers={"If-Match": f'"{found["review"]["etag"]}"'})
            assert answer.status_code == 200, answer.text


def by_command(gateway: Gateway, drafts: dict[str, str], script: list[Scripted], data: Path) -> None:
    with _serving(gateway, data) as server:
        for one in script:
            found = server.http.get(f"/v1/reviews/{drafts[one.name]}").json()
            text = ["--text", f"{found['text']}\n\n{one.edit}"] if one.edit and one.decision == "accept" else []
            command = [COMMAND, "review", one.decision, drafts[one.name], "--data-dir", str(data), *text]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def in_git(gateway: Gateway, drafts: dict[str, str], script: list[Scripted], data: Path) -> None:
    root = gateway.parts.files.root
    clone = data.parent / "clone"
    git(data, "clone", "--quiet", str(root), str(clone))
    git(clone, "fetch", "--quiet", "origin", "+refs/heads/review/*:refs/heads/review/*")
    gone: list[str] = []
    for one in script:
        branch = f"review/{drafts[one.name]}"
        if one.decision == "reject":
            gone.append(branch)
            continue
        if one.edit is not None:
            git(clone, "checkout", "--quiet", branch)
            (path,) = git(clone, "diff", "--name-only", "-z", "main...HEAD").split("\0")[:-1]
            note = clone / path
            note.write_text(f"{note.read_text('utf-8')}\n{one.edit}\n", "utf-8")
            git(clone, "commit", "--quiet", "--all", "--message", "Say it better")
            git(clone, "checkout", "--quiet", "main")
        git(clone, "merge", "--quiet", "--no-edit", branch)
    git(root, "pull", "--quiet", "--no-rebase", "--no-edit", str(clone), "main")
    for branch in gone:
        git(root, "branch", "--quiet", "-D", branch)


WAYS = {"property": by_property, "move": by_moving, "rest": by_rest, "command": by_command, "git": in_git}


def _edited(text: str, one: Scripted) -> str:
    return f"{text}\n{one.edit}\n" if one.edit and one.decision == "accept" else text


class _serving:
    """A server on a gateway's data directory, while the gateway itself is closed."""

    def __init__(self, gateway: Gateway, data: Path) -> None:
        gateway.close()
        self.data = data

    def __enter__(self):
        self.running, self.server, self.thread, self.listener = start(self.data, **IMPATIENT)
        write_address(self.data, self.running.url)  # by which commands find a server
        return self.running

    def __exit__(self, *_error) -> None:
        self.running.http.close()
        self.server.should_exit = True
        self.thread.join(timeout=20)
        self.listener.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The vault with its thirty drafts and their branches, made once for all ways."""
    from gateway.bootstrap import open_gateway

    data = tmp_path_factory.mktemp("prepared") / "data"
    gateway = open_gateway(load_settings(data_dir=data, **IMPATIENT, review={"mode": "branch"}))
    gateway.settle()
    drafts, script = fill(gateway)
    settle(gateway)
    gateway.close()
    return data, drafts, script


@pytest.fixture(scope="module")
def outcome(prepared):
    """What the decisions lead to, by way."""
    return {}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_ends_in_the_same_vault_and_ledger(prepared, outcome, tmp_path, opened, way):
    source, drafts, script = prepared
    data = tmp_path / "data"
    shutil.copytree(source, data, symlinks=True)
    gateway = opened("data", review={"mode": "branch"})
    assert len(waiting(gateway)) == 30
    WAYS[way](gateway, drafts, script, data)
    if way in ("rest", "command"):
        gateway = opened("data", review={"mode": "branch"})
    settle(gateway)
    assert waiting(gateway) == []
    vault, ledger = vault_of(gateway), ledger_of(gateway)
    root = gateway.parts.files.root
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "for-each-ref", "refs/heads/review/") == ""
    gateway.close()
    assert check(load_settings(data_dir=data, **IMPATIENT), patient=False).findings == []
    first = outcome.setdefault("first", (vault, ledger))
    assert vault == first[0]
    for part, known in ledger.items():
        assert known == first[1][part], part

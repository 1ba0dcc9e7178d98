"""`check --notes`: what a pull request to a vault is told about, file by file and line by line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.journeys.running import run

DRAFT = (
    "---\nreview_id: rev_0123456789abcdef0123\nproposal: create\ntarget_namespace: {namespace}\n"
    "decision: {decision}\n---\n> [!review] A draft\n\nThe text.\n"
)
# Path, text, and what is found: (line, kind).
WRONG = {
    "Memories/LongTerm/Broken.md": ("---\ntags: [a\n---\nText.\n", (2, "broken-properties")),
    "Memories/LongTerm/Twice.md": ("---\ntype: fact\ntype: note\n---\nText.\n", (3, "duplicate-key")),
    "Memories/LongTerm/Type.md": ("---\ntype: fact\nimportance: high\n---\nText.\n", (3, "bad-property")),
    "Users/tom/LongTerm/Wider.md": ("---\nvisibility: global\n---\nText.\n", (2, "foreign-claim")),
    "Users/tom/LongTerm/Secret.md": ("Text.\n\npassword: Tr0ub4dor&3xyz\n", (3, "secret")),
    "Global/Merge.md": ("One\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", (2, "conflict-markers")),
    "Global/Note (conflicted copy 1a2b3c4).md": ("Text.\n", (0, "sync-conflict")),
    "Own/aux.md": ("Text.\n", (0, "bad-name")),
    "Reviews/Queue/A.md": (DRAFT.format(namespace="user/tom/attic", decision=""), (4, "broken-draft")),
    "Reviews/Queue/B.md": (DRAFT.format(namespace="user/tom/long_term", decision="perhaps"), (5, "broken-draft")),
    "Reviews/Accepted/C.md": (
        DRAFT.format(namespace="user/tom/long_term", decision="reject"),
        (5, "contradictory-decision"),
    ),
    "Reviews/Queue/Stray.md": ("Not a draft.\n", (0, "no-draft")),
}
FINE = {
    "Own/Anything.md": "---\nvisibility: [global\n---\n<<<<<<< no\n",
    "Memories/LongTerm/Good.md": "---\ntype: fact\nimportance: 0.4\n---\nText.\n",
    "Memories/LongTerm/Allowed.md": "---\nsecrets: allowed\n---\npassword: Tr0ub4dor&3xyz\n",
    "Workspaces/team/Shared/Narrow.md": "---\nvisibility: private\n---\nText.\n",
    "Reviews/Queue/D.md": DRAFT.format(namespace="user/tom/long_term", decision="接受"),
    "Reviews/Problems.md": "# Problems\n",
}


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


def found(root: Path, *options: object) -> dict[str, list[tuple[int, str]]]:
    done = run("check", "--notes", root, "--json", *options)
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["findings"] else 0), done.stderr
    wrong: dict[str, list[tuple[int, str]]] = {}
    for one in report["findings"]:
        wrong.setdefault(one["path"], []).append((one["line"], one["kind"]))
    return wrong


@pytest.fixture
def vault(tmp_path) -> Path:
    for path, text in FINE.items():
        write(tmp_path / "vault", path, text)
    return tmp_path / "vault"


def git(folder: Path, *arguments: str) -> None:
    name = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


def test_good_notes_are_clean(vault):
    done = run("check", "--notes", vault)
    assert (done.returncode, done.stdout) == (0, f"{len(FINE)} notes checked: clean\n")


def test_each_fault_is_found_with_its_file_and_line(vault):
    for path, (text, _) in WRONG.items():
        write(vault, path, text)
    assert found(vault) == {path: [place] for path, (_, place) in WRONG.items()}
    told = run("check", "--notes", vault).stdout
    assert "Memories/LongTerm/Type.md:3: The property `importance` is not usable as it is." in told
    assert "Tr0ub4dor" not in told


def test_an_id_or_a_name_that_is_there_twice_is_found(vault):
    write(vault, "Memories/LongTerm/One.md", "---\ntype: fact\nid: mem_one\n---\nText.\n")
    write(vault, "Memories/LongTerm/Two.md", "---\nid: mem_one\n---\nText.\n")
    write(vault, "Own/Tea.md", "Text.\n")
    write(vault, "Own/TEA.md", "Text.\n")
    assert found(vault) == {
        "Memories/LongTerm/One.md": [(3, "duplicate-id")],
        "Memories/LongTerm/Two.md": [(2, "duplicate-id")],
        "Own/Tea.md": [(0, "bad-name")],
        "Own/TEA.md": [(0, "bad-name")],
    }


def test_a_link_in_place_of_a_note_is_found(vault):
    (vault / "Memories/LongTerm/Link.md").symlink_to("/etc/hostname")
    assert found(vault) == {"Memories/LongTerm/Link.md": [(0, "refused")]}


def test_only_what_differs_from_a_revision_is_looked_at(tmp_path, vault):
    """Also where the vault is a folder of the repository, and where the target branch has moved on."""
    write(vault, "Memories/LongTerm/Old.md", "---\nimportance: high\n---\n")
    git(tmp_path, "init")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "Begin")
    git(tmp_path, "checkout", "-b", "change")
    assert found(vault, "--since", "main") == {}
    write(vault, "Memories/LongTerm/New.md", "---\nimportance: high\nid: mem_known\n---\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "Change")
    git(tmp_path, "checkout", "main")
    write(vault, "Memories/LongTerm/Elsewhere.md", "---\nimportance: high\n---\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "Meanwhile")
    git(tmp_path, "checkout", "change")
    (vault / "Memories/LongTerm/Good.md").unlink()
    write(vault, "Memories/LongTerm/Übersicht.md", "---\nimportance: high\n---\n")  # not committed yet
    assert set(found(vault, "--since", "main")) == {"Memories/LongTerm/New.md", "Memories/LongTerm/Übersicht.md"}
    unknown = run("check", "--notes", vault, "--since", "nowhere")
    assert unknown.returncode == 2
    assert "`nowhere`" in unknown.stderr
    assert run("check", "--notes", vault, "--since", "--output=/tmp/x").returncode == 2


def test_findings_as_annotations_of_github(vault):
    write(vault, "Memories/LongTerm/100%, really: yes.md", "---\nimportance: high\n---\n")
    done = run("check", "--notes", vault, "--github")
    assert done.returncode == 1
    line = next(one for one in done.stdout.splitlines() if one.startswith("::"))
    head, _, message = line.removeprefix("::error ").partition("::")
    given = dict(part.split("=", 1) for part in head.split(","))
    assert given["file"].endswith("Memories/LongTerm/100%25%2C really%3A yes.md")
    assert given["line"] == "2"
    assert given["title"] == "bad-property"
    assert message == "The property `importance` is not usable as it is. Expected: a number from 0 to 1."


def test_options_of_the_note_check_need_notes():
    assert run("check", "--github").returncode == 2

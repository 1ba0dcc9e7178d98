import os
import subprocess
from pathlib import Path

import pytest

from gateway.errors import GitTrouble
from gateway.vault.history import Change, Commit, History

NAMES = [
    "a[1].md",
    ":(top)n.md",
    "q\"u'o.md",
    "back\\slash.md",
    "new\nline.md",
    "語 メモ 🌲.md",
    "-dash.md",
    "tab\t.md",
    "*.md",
]


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = clean | {"GIT_LITERAL_PATHSPECS": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-c", "user.name=P", "-c", "user.email=p@x", *arguments],
        cwd=folder,
        capture_output=True,
        check=check,
        env=environment,
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def status(folder: Path) -> list[str]:
    return git(folder, "status", "--porcelain", "-z", "--untracked-files=all").split("\0")


def commit_of(*changes: tuple[str, bytes | None], message: str = "Write\n\nMemory-Key: k1\n") -> Commit:
    return Commit("Agent <x>", "agent@x", 1_700_000_000_000, message, tuple(Change(*one) for one in changes))


def write(folder: Path, path: str, data: bytes) -> tuple[str, bytes]:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)
    return path, data


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.fixture
def history(vault: Path) -> History:
    history = History(vault)
    history.ensure()
    return history


def test_a_commit_holds_exactly_the_given_paths_and_a_persons_work_stays_as_it_was(vault: Path, history: History):
    history.commit([commit_of(write(vault, "base.md", b"1\n"), write(vault, "staged.md", b"1\n"))])
    write(vault, "staged.md", b"person staged\n")
    git(vault, "add", "staged.md")
    write(vault, "staged.md", b"and went on\n")
    write(vault, "new-staged.md", b"n\n")
    git(vault, "add", "new-staged.md")
    write(vault, "untracked.md", b"u\n")
    write(vault, "base.md", b"edited\n")
    before = status(vault)
    history.commit([commit_of(write(vault, "ours.md", b"ours\n"))])
    assert status(vault) == before
    assert git(vault, "show", "--name-only", "--format=", "HEAD").split() == ["ours.md"]


def test_a_removal_and_a_move_leave_a_clean_status(vault: Path, history: History):
    history.commit([commit_of(write(vault, "a.md", b"1"), write(vault, "b.md", b"2"))])
    (vault / "a.md").unlink()
    (vault / "b.md").rename(vault / "c.md")
    history.commit([commit_of(("a.md", None), ("b.md", None), ("c.md", b"2"))])
    assert status(vault) == [""]
    assert git(vault, "ls-files").split() == ["c.md"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_are_committed_as_themselves_and_nothing_else_is(vault: Path, history: History, name: str):
    for decoy in ("a1.md", "n.md", "x.md"):
        write(vault, decoy, b"person's")
    before = status(vault)
    [sha] = history.commit([commit_of(write(vault, name, b"odd"))])
    assert status(vault) == before
    assert history.committed([name]) == {name: history.blob_id(b"odd")}
    assert history.show(sha, name) == b"odd"
    assert [entry.sha for entry in history.log_of_memory("mem_x", name)] == [sha]
    history.resync_index([name])
    assert status(vault) == before
    (vault / name).unlink()
    history.commit([commit_of((name, None))])
    assert status(vault) == before


def test_a_vault_in_a_sub_folder_of_a_larger_repository_touches_only_itself(tmp_path: Path):
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, "code.md", b"1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "code")
    write(tmp_path, "code.md", b"2\n")
    git(tmp_path, "add", "code.md")
    root = tmp_path / "notes" / "my vault"
    root.mkdir(parents=True)
    history = History(root)
    history.ensure()
    [sha] = history.commit([commit_of(write(root, "a/語.md", b"x"))])
    assert status(tmp_path) == ["M  code.md", ""]
    assert history.show(sha, "a/語.md") == b"x"
    assert [entry.sha for entry in history.log_of_memory("mem_x", "a/語.md")] == [sha]
    [second] = history.commit([commit_of(write(root, "a/語.md", b"y"))])
    assert history.changed_paths(sha, second) == ["a/語.md"]
    assert not (root / ".git").exists()


def test_a_vault_that_the_surrounding_repository_ignores_gets_its_own(tmp_path: Path):
    git(tmp_path, "init", "-q")
    write(tmp_path, ".gitignore", b"data/\n")
    root = tmp_path / "data" / "vault"
    root.mkdir(parents=True)
    history = History(root)
    history.ensure()
    history.commit([commit_of(write(root, "n.md", b"x"))])
    assert (root / ".git").is_dir()
    assert git(tmp_path, "rev-parse", "--verify", "-q", "HEAD", check=False) == ""


def test_hooks_signing_and_missing_identity_do_not_hinder(vault: Path, history: History):
    hooks = vault / ".git" / "hooks"
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        write(hooks, name, b"#!/bin/sh\ntouch ../ran-a-hook; exit 1\n")
        (hooks / name).chmod(0o755)
    for key, value in (("commit.gpgSign", "true"), ("user.useConfigOnly", "true"), ("gpg.program", "/bin/false")):
        git(vault, "config", key, value)
    history.commit([commit_of(write(vault, "n.md", b"x"))])
    assert history.committed(["n.md"])
    assert not list(vault.parent.rglob("ran-a-hook"))


def test_carriage_returns_survive_autocrlf_and_the_status_is_clean(vault: Path, history: History):
    git(vault, "config", "core.autocrlf", "true")
    [sha] = history.commit([commit_of(write(vault, "crlf.md", b"a\r\nb\r\n"), write(vault, "lf.md", b"a\nb\n"))])
    assert history.show(sha, "crlf.md") == b"a\r\nb\r\n"
    assert status(vault) == [""]


def test_a_note_marked_executable_stays_so(vault: Path, history: History):
    write(vault, "n.md", b"x")
    (vault / "n.md").chmod(0o755)
    history.commit([commit_of(("n.md", b"x"))])
    assert status(vault) == [""]


@pytest.mark.parametrize("state", ["merge", "rebase", "detached", "filter"])
def test_commits_wait_while_a_person_is_in_the_middle_of_something(vault: Path, history: History, state: str):
    [sha] = history.commit([commit_of(write(vault, "n.md", b"1\n"))])
    match state:
        case "merge":
            (history.git_dir / "MERGE_HEAD").write_text(sha)
        case "rebase":
            (history.git_dir / "rebase-merge").mkdir()
        case "detached":
            git(vault, "checkout", "-q", "--detach")
        case _:
            write(vault, ".gitattributes", b"*.md filter=git-crypt\n")
    with pytest.raises(GitTrouble, match="Commits wait"):
        history.commit([commit_of(write(vault, "later.md", b"2\n"))])
    assert history.head() == sha


def test_a_foreign_index_lock_is_left_alone_and_the_index_is_tidied_afterwards(vault: Path, history: History):
    history.commit([commit_of(write(vault, "first.md", b"1"))])
    lock = vault / ".git" / "index.lock"
    lock.write_bytes(b"")
    history.commit([commit_of(write(vault, "n.md", b"x"))])
    assert lock.exists()
    assert history.committed(["n.md"])
    history.tidy_index()
    lock.unlink()
    reopened = History(vault)
    reopened.ensure()
    reopened.tidy_index()
    assert status(vault) == [""]


def test_a_commit_made_by_somebody_else_in_between_is_never_lost(vault: Path, history: History):
    history.commit([commit_of(write(vault, "n.md", b"1"))])
    write(vault, "theirs.md", b"t")
    git(vault, "add", "theirs.md")
    git(vault, "commit", "-qm", "theirs")
    history.commit([commit_of(write(vault, "n.md", b"2"))])
    assert set(history.committed(["n.md", "theirs.md"])) == {"n.md", "theirs.md"}
    assert status(vault) == [""]


def test_paths_into_the_repository_itself_are_refused_and_no_crash_report_stays(vault: Path, history: History):
    history.commit([commit_of(write(vault, "n.md", b"1"))])
    for path in (".git/hooks/x", "a/.GIT/x", "../x", "a//b"):
        with pytest.raises(GitTrouble):
            history.commit([commit_of((path, b"x"))])
    with pytest.raises(GitTrouble):
        history._fast_import(b"nonsense\n")
    assert not list(history.git_dir.glob("fast_import_crash_*"))


def test_keys_are_read_back_from_history(vault: Path, history: History):
    [sha] = history.commit([commit_of(write(vault, "n.md", b"1"), message="W\n\nMemory-Key: k1\nMemory-Key: k2\n")])
    assert history.keys_since(10) == {"k1": sha, "k2": sha}


def test_a_vault_that_is_gone_never_commits_into_the_repository_that_the_gateway_was_started_in(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "first")
    before = git(other, "rev-parse", "HEAD")
    vault = tmp_path / "vault"
    vault.mkdir()
    history = History(vault)
    history.ensure()
    monkeypatch.chdir(other)
    vault.rename(tmp_path / "unmounted")
    with pytest.raises(GitTrouble):
        history.commit([commit_of(("note.md", b"text"))])
    assert history.head() is None
    assert git(other, "rev-parse", "HEAD") == before
    assert git(other, "status", "--porcelain") == ""

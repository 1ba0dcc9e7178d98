"""A git remote of the vault: fetch, merge, push. Nothing is ever forced, and nothing that a person wrote is lost."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import GitTrouble
from gateway.vault.checkout import copy_name
from gateway.vault.git import GitAnswer, last_line, split_nul
from gateway.vault.history import COMMITTER, History

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_NEEDED = (2, 38)
REVIEW = "review/"


@dataclass(frozen=True, slots=True)
class Merge:
    """The commit that brings two sides together, and the conflict copies in it."""

    commit: str
    copies: tuple[str, ...]


class Remote:
    """One remote, by the name that git knows it under."""

    def __init__(self, history: History, name: str, branch: str, timeout: float) -> None:
        if not _NAME.fullmatch(name) or not _NAME.fullmatch(branch) or ".." in name + branch:
            raise GitTrouble("The settings name no acceptable git remote or branch.", field="git.remote")
        self._history = history
        self._git = history.runner
        self.name = name
        self.branch = branch
        self._timeout = timeout

    def check(self) -> str:
        """Make sure that a sync can work here. Returns the checked-out branch.

        Raises:
            GitTrouble: what is in the way, and what to do.
        """
        if self._history.prefix:
            raise GitTrouble(
                "The vault is a folder of a larger repository; the gateway does not sync that.",
                advice="Pull and push it with git yourself: merges are noticed and imported.",
            )
        if self._git.text("config", "--get", f"remote.{self.name}.url") is None:
            raise GitTrouble(
                f"Git knows no remote `{self.name}`.", advice=f"In the vault: `git remote add {self.name} <address>`."
            )
        numbers = [int(part) for part in re.findall(r"\d+", self._git.text("version") or "")[:2]]
        if tuple(numbers) < _NEEDED:
            raise GitTrouble("Git 2.38 or newer is needed to merge with a remote.", advice="Install it.")
        reason = self._history.waits_for()
        if reason is not None:
            raise GitTrouble(f"The sync waits: {reason}.", advice="Finish or abort it in git.")
        return self._git.text("symbolic-ref", "--short", "HEAD") or "main"

    def fetch(self) -> None:
        """Learn what the remote has.

        Raises:
            GitTrouble: it does not answer, or refuses.
        """
        refs = f"+refs/heads/*:refs/remotes/{self.name}/*"
        answer = self._talk("fetch", "--prune", "--no-tags", "--no-write-fetch-head", "--quiet", self.name, refs)
        if answer.code != 0:
            raise GitTrouble(f"The remote `{self.name}` cannot be fetched: {last_line(answer.error)}.")

    def head(self) -> str | None:
        """The commit at which the remote's branch stood at the last fetch."""
        return self._git.text("rev-parse", "--verify", "--quiet", f"refs/remotes/{self.name}/{self.branch}")

    def review_tips(self) -> dict[str, str]:
        """The remote's review branches at the last fetch, by review id."""
        prefix = f"refs/remotes/{self.name}/{REVIEW}"
        out = self._git.ask("for-each-ref", "--format=%(objectname) %(refname)", prefix).out
        lines = (line.split(" ", 1) for line in out.decode("utf-8", "replace").splitlines())
        return {ref.removeprefix(prefix): sha for sha, ref in lines}

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether one commit is part of another's history."""
        return self._git.ask("merge-base", "--is-ancestor", old, new).code == 0

    def merge(self, ours: str, theirs: str, *, unrelated: bool = False) -> Merge:
        """Make the commit that joins two histories. Where both changed the same lines, ours stays under its name and
        theirs is laid beside as a conflict copy.

        Raises:
            GitTrouble: git cannot merge them.
        """
        options = ["--allow-unrelated-histories"] if unrelated else []
        answer = self._git.ask("merge-tree", "--write-tree", "-z", "--no-messages", *options, ours, theirs)
        if answer.code not in (0, 1):
            raise GitTrouble(f"The histories cannot be merged: {last_line(answer.error)}.")
        tree, *conflicts = [field.decode("utf-8", "surrogateescape") for field in split_nul(answer.out)]
        copies: list[str] = []
        if conflicts:
            tree, copies = self._resolved(tree, conflicts, copy_label(theirs))
        message = f"Merge {self.name}/{self.branch}\n\nActor: gateway\n"
        name, email = COMMITTER
        env = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email} | {
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": email,
        }
        made = self._git.run("commit-tree", tree, "-p", ours, "-p", theirs, "-m", message, env=env)
        return Merge(made.decode("ascii").strip(), tuple(copies))

    def advance(self, branch: str, old: str | None, new: str) -> None:
        """Let the checked-out branch stand at a commit, if it still stands where it was.

        Raises:
            GitTrouble: it moved meanwhile.
        """
        self._git.run("update-ref", "-m", "memory-gateway: sync", f"refs/heads/{branch}", new, old or "0" * len(new))

    def authors(self, old: str | None, new: str) -> dict[str, tuple[str, str]]:
        """Who changed which path last between two commits: (name, e-mail)."""
        reach = [f"{old}..{new}"] if old else [new]
        out = self._git.run("log", "-z", "--name-only", "--no-renames", "-m", "--format=%x01%an%x02%ae", *reach, "--")
        found: dict[str, tuple[str, str]] = {}
        for entry in out.decode("utf-8", "surrogateescape").split("\x01")[1:]:
            head, *paths = entry.split("\0")
            name, _, rest = head.partition("\x02")
            email, _, first = rest.partition("\n")
            for path in (first, *paths):
                if cleaned := path.strip("\n"):
                    found.setdefault(cleaned, (name, email))
        return found

    def push(self, refs: Mapping[str, str], *, replaced: Mapping[str, str]) -> bool:
        """Push refs (remote branch → commit, or "" to delete it). False where the remote moved meanwhile.

        Args:
            replaced: review branches that the gateway made anew, with the commit that it pushed before; they are
                replaced only if they still stand there.

        Raises:
            GitTrouble: the remote does not answer, or refuses for another reason.
        """
        specs = [f"{commit}:refs/heads/{branch}" for branch, commit in refs.items()]
        leases = [f"--force-with-lease=refs/heads/{branch}:{commit}" for branch, commit in replaced.items()]
        answer = self._talk("push", "--porcelain", "--quiet", "--no-verify", *leases, self.name, *specs)
        if answer.code == 0:
            return True
        said = answer.out.decode("utf-8", "replace") + answer.error
        if "fetch first" in said or "non-fast-forward" in said or "stale info" in said or "cannot lock ref" in said:
            return False
        raise GitTrouble(f"The remote `{self.name}` refused the push: {last_line(answer.error or said)}.")

    def _talk(self, *arguments: str) -> GitAnswer:
        """Run a command that speaks to the remote: it must never wait for a password."""
        env = {} if "GIT_SSH_COMMAND" in os.environ else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
        answer = self._git.ask(*arguments, env=env, timeout=self._timeout)
        if answer.code < 0:
            raise GitTrouble(f"The remote `{self.name}` did not answer within {self._timeout:g} seconds.")
        return answer

    def _resolved(self, tree: str, conflicts: list[str], label: str) -> tuple[str, list[str]]:
        """A tree in which each conflict is settled by keeping both sides, each in a file of its own."""
        sides: dict[str, dict[int, tuple[str, str]]] = {}
        for entry in conflicts:
            head, _, path = entry.partition("\t")
            mode, blob, stage = head.split(" ")
            sides.setdefault(path, {})[int(stage)] = (mode, blob)
        lines: list[bytes] = []
        copies: list[str] = []
        for path, found in sides.items():
            mine, theirs = found.get(2), found.get(3)
            kept = mine or theirs
            lines.append(_line("0", "0" * len(tree), path))
            if kept is not None:
                lines.append(_line(*kept, path))
            if mine is not None and theirs is not None and mine != theirs:
                copies.append(copy_name(path, label))
                lines.append(_line(*theirs, copies[-1]))
        with tempfile.TemporaryDirectory() as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git.run("read-tree", tree, env=env)
            self._git.run("update-index", "-z", "--index-info", send=b"".join(lines), env=env)
            return self._git.run("write-tree", env=env).decode("ascii").strip(), copies


def copy_label(theirs: str) -> str:
    """What tells the conflict copies of one merge from those of others; with a year, by which they are known."""
    return f"{time.strftime('%Y-%m-%d', time.gmtime())} {theirs[:7]}"


def _line(mode: str, blob: str, path: str) -> bytes:
    return f"{mode} {blob}\t{path}".encode("utf-8", "surrogateescape") + b"\0"

"""Branches of the vault's repository: each carries one proposed change, for a pull request or a merge by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.errors import GitTrouble
from gateway.vault.history import Commit, History

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME = re.compile(r"review/[0-9a-z_]{1,80}")
PREFIX = "refs/heads/review/"
RESCUE = "refs/rescue/"


@dataclass(frozen=True, slots=True)
class Named:
    """A commit that names a memory and the draft it came from in its trailers."""

    sha: str
    review_id: str


class Branches:
    """The `review/...` branches. The checked-out branch, the index and the files are never touched."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._git = history.runner

    def make(self, review_id: str, commit: Commit, *, replaces: str | None) -> str:
        """Make `review/<id>` with one commit on top of HEAD. Returns the commit's id.

        Args:
            replaces: the branch's present commit, if the gateway made one before.

        Raises:
            GitTrouble: somebody else's commits stand on the branch, or git refuses.
        """
        ref = _ref(review_id)
        present = self._git.text("rev-parse", "--verify", "--quiet", ref)
        if present is not None and present != replaces:
            raise GitTrouble(f"The branch review/{review_id} carries other commits; it is left alone.")
        if present is not None:
            self._git.run("update-ref", "-d", ref, present)
        return self._history.commit_to(ref, commit)

    def tips(self, prefix: str = PREFIX) -> dict[str, str]:
        """Review ids of the branches there are, with the commits they stand at."""
        return self._refs(prefix)

    def merged(self) -> dict[str, str]:
        """Those of the branches whose commits HEAD contains."""
        return self._refs(PREFIX, "--merged", "HEAD") if self._history.head() else {}

    def contains(self, commit: str) -> bool:
        """Whether HEAD contains a commit."""
        if not _SHA.fullmatch(commit):
            return False
        return self._git.ask("merge-base", "--is-ancestor", commit, "HEAD").code == 0

    def named_since(self, old: str | None, limit: int = 5_000) -> list[Named]:
        """Drafts that commits since `old` say they carry out: a squash or rebase has other ids, but keeps trailers."""
        if self._history.head() is None:
            return []
        form = "%H%x00%(trailers:key=Review-Id,valueonly,separator=%x1f)%x00%(trailers:key=Memory-Id,valueonly)%x01"
        reach = [f"^{old}"] if old is not None and _SHA.fullmatch(old) and self._known(old) else []
        out = self._git.ask("log", f"--max-count={limit}", f"--format={form}", "HEAD", *reach, "--").out
        found: list[Named] = []
        for entry in out.decode("utf-8", "replace").split("\x01"):
            sha, *fields = entry.strip("\n").split("\0")
            if len(fields) == 2 and fields[1].strip():
                found += [Named(sha, one.strip()) for one in fields[0].split("\x1f") if one.strip()]
        return found

    def remove(self, review_id: str, commit: str) -> None:
        """Take a branch away that is no longer needed; commits of others on it stay reachable by a rescue ref."""
        ref = _ref(review_id)
        present = self._git.text("rev-parse", "--verify", "--quiet", ref)
        if present is None:
            return
        if present != commit and not self.contains(present):
            self.rescue(f"review/{review_id}", present)
        self._git.ask("update-ref", "-d", ref, present)

    def drop(self, review_id: str) -> None:
        """Take a branch away with all that is on it: what it proposed is purged."""
        self._git.ask("update-ref", "-d", _ref(review_id))

    def follow(self, review_id: str, old: str, new: str) -> None:
        """Let a branch stand where people pushed it to."""
        self._git.ask("update-ref", _ref(review_id), new, old)

    def rescue(self, name: str, commit: str) -> str:
        """Keep a commit reachable under `refs/rescue/`. Returns the ref."""
        ref = f"{RESCUE}{name}/{commit[:12]}"  # the same commit is kept once
        self._git.run("update-ref", ref, commit)
        return ref

    def _refs(self, prefix: str, *more: str) -> dict[str, str]:
        out = self._git.ask("for-each-ref", *more, "--format=%(objectname) %(refname)", prefix).out
        lines = (line.split(" ", 1) for line in out.decode("utf-8", "replace").splitlines())
        return {ref.removeprefix(prefix): sha for sha, ref in lines}

    def _known(self, commit: str) -> bool:
        return self._git.ask("cat-file", "-e", f"{commit}^{{commit}}").code == 0


def _ref(review_id: str) -> str:
    if not _NAME.fullmatch(f"review/{review_id}"):
        raise GitTrouble("A review's id makes no name of a branch.")
    return f"{PREFIX}{review_id}"

"""Taking texts out of git's whole history, for an explicit purge: `git fast-export`, a filter, `git fast-import`.

The stream carries no file contents, only their ids: what stays keeps its bytes, and commits before the first change
keep their ids. Signatures of commits and tags do not survive; nothing else of a kept commit changes. The same history
without the same blobs gives the same ids every time, so that a rewriting may be begun anew after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import CannotPurge, GitTrouble
from gateway.vault.git import Git, split_nul
from gateway.vault.history import History

_MARKS = "purge-marks"
# Where rewritten branches stand until those of that name are moved, all at once.
_STAGED = "refs/purge/"
_EXPORT = (
    "fast-export", "--no-data", "--show-original-ids", "--reencode=no", "--signed-tags=strip",
    "--tag-of-filtered-object=rewrite", "--use-done-feature",
    "--exclude=refs/remotes/*", f"--exclude={_STAGED}*", "--all",
)  # fmt: skip
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}
_CHANGE = re.compile(rb"M [0-7]+ ([0-9a-f]{40,64}) (.+)")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ENDING = b".md"
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten history that stands by: new commit ids by old ones, and where the refs stand that are to be moved."""

    commits: Mapping[str, str]
    refs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Placed:
    """A blob that a commit gave to a path."""

    path: str
    blob: str


class Names:
    """Paths of notes, to be found in texts: in one pass, however many there are."""

    def __init__(self, names: Collection[str], instead: str) -> None:
        self._names = {name.encode("utf-8", "surrogateescape") for name in names if name.endswith(_ENDING.decode())}
        self._lengths = sorted({len(name) for name in self._names}, reverse=True)
        self._instead = instead.encode("utf-8")

    def within(self, text: bytes) -> bool:
        """Whether a text says one of them."""
        return next(self._found(text), None) is not None

    def replaced(self, text: bytes) -> bytes:
        """The text with something else in their place; the longest that fits counts."""
        parts: list[bytes] = []
        at = 0
        for start, end in self._found(text):
            if start >= at:
                parts += [text[at:start], self._instead]
                at = end
        return b"".join((*parts, text[at:]))

    def _found(self, text: bytes) -> Iterator[tuple[int, int]]:
        end = text.find(_ENDING)
        while end >= 0:
            end += len(_ENDING)
            fitting = (length for length in self._lengths if length <= end and text[end - length : end] in self._names)
            if (length := next(fitting, None)) is not None:
                yield end - length, end
            end = text.find(_ENDING, end)


class Rewriting:
    """One rewriting of the vault's history. Nobody else may commit meanwhile."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._git: Git = history.runner

    def check(self, *, despite_remote: bool, commits: Collection[str]) -> None:
        """Make sure that the history may be rewritten.

        Args:
            commits: those that hold what is to go.

        Raises:
            CannotPurge: a remote has it, a stash or another worktree would be lost, or git waits for a person.
        """
        if self._history.prefix:
            raise CannotPurge(
                "The vault lies in a larger repository, whose history is not the gateway's to rewrite.",
                advice="Rewrite it yourself, e.g. with git filter-repo.",
            )
        waits = self._history.waits_for()
        if waits is not None:
            raise CannotPurge(f"Git waits: {waits}.", advice="Finish or abort it, then purge.")
        if self._git.text("rev-parse", "--verify", "--quiet", "refs/stash") is not None:
            raise CannotPurge("A stash would be lost.", advice="Apply or drop your stashes, then purge.")
        if len((self._git.text("worktree", "list", "--porcelain") or "").split("\n\n")) > 1:
            raise CannotPurge("The repository has further worktrees.", advice="Remove them, then purge.")
        if not despite_remote and (names := self.remotes_with(commits)):
            raise CannotPurge(
                f"The remote {names[0]!r} has it too; purging here alone would not help.",
                field="despite_remote",
                advice="Repeat with despite_remote to replace the remote's history as well; clones of others keep it.",
            )

    def remotes_with(self, commits: Collection[str]) -> list[str]:
        """Remotes whose branches, as last seen, contain one of these commits."""
        found: set[str] = set()
        ordered = sorted(commits) if self._refs("refs/remotes/") else []
        for start in range(0, len(ordered), _AT_ONCE):
            asked = [word for commit in ordered[start : start + _AT_ONCE] for word in ("--contains", commit)]
            out = self._git.ask("for-each-ref", *asked, "--format=%(refname)", "refs/remotes").out
            found |= {ref.split("/")[2] for ref in out.decode("utf-8", "replace").split()}
        return sorted(found)

    def placed(self) -> list[Placed]:
        """Every blob that any commit of any branch gave to any path, each once."""
        changes = filter(None, map(_CHANGE.fullmatch, self._export().split(b"\n")))
        found = dict.fromkeys((match[2], match[1]) for match in changes)
        return [Placed(unquoted(path).decode("utf-8", "surrogateescape"), blob.decode("ascii")) for path, blob in found]

    def blobs(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of blobs, a few hundred at a time."""
        ordered = list(dict.fromkeys(blob_ids))
        for start in range(0, len(ordered), _AT_ONCE):
            asked = ordered[start : start + _AT_ONCE]
            out = self._git.run("cat-file", "--batch", send="".join(f"{one}\n" for one in asked).encode("ascii"))
            at = 0
            for blob_id in asked:
                end = out.index(b"\n", at)
                size = int(out[at:end].rpartition(b" ")[2])
                yield blob_id, out[end + 1 : end + 1 + size]
                at = end + 1 + size + 1

    def without(self, traces: Collection[Placed], unsaid: Names) -> Rewritten:
        """Rewrite all branches and tags without these blobs at their paths; the same bytes stay where they are
        another's. They stand by; `move` puts them in place.

        Args:
            unsaid: what commit messages no longer say.

        Raises:
            GitTrouble: git refused; all refs are as they were.
        """
        self._drop_staged()
        refs = self._refs()
        stream = self._export()
        marks = self._history.staging() / _MARKS
        gone = {(one.path.encode("utf-8", "surrogateescape"), one.blob.encode("ascii")) for one in traces}
        filtered, originals = _filtered(stream, gone, unsaid)
        try:
            self._git.run("fast-import", "--quiet", "--force", "--done", f"--export-marks={marks}", send=filtered)
            commits = _commits(marks, originals)
        except GitTrouble:
            self.take_back(Rewritten({}, refs))
            raise
        finally:
            marks.unlink(missing_ok=True)
        return Rewritten(commits, refs)

    def move(self, done: Rewritten) -> None:
        """Let all branches stand at their rewritten commits, in one transaction of git.

        Raises:
            GitTrouble: one of them was moved by somebody meanwhile; none is moved.
        """
        staged = {ref.replace(_STAGED, "refs/", 1): sha for ref, sha in self._refs(_STAGED).items()}
        lines = [f"update {ref} {sha} {done.refs[ref]}\n" for ref, sha in staged.items() if ref in done.refs]
        self._git.run("update-ref", "--stdin", send="".join(lines).encode("utf-8"))
        self._drop_staged()

    def take_back(self, done: Rewritten) -> None:
        """Let go of the rewritten history; all refs stand where they stood."""
        self._drop_staged()
        for ref, sha in done.refs.items():
            self._git.ask("update-ref", ref, sha)  # annotated tags do not wait

    def replace_at(self, remote: str, done: Rewritten, gone: Sequence[str]) -> None:
        """Replace the branches of a remote by the rewritten ones, if it still has what was last seen there.

        Args:
            gone: branches that are taken away there.

        Raises:
            GitTrouble: it refused; nothing of it changed.
        """
        prefix = f"refs/remotes/{remote}/"
        out = self._git.ask("for-each-ref", "--format=%(refname) %(objectname)", prefix).out.decode("utf-8", "replace")
        theirs = dict(line.split(" ", 1) for line in out.splitlines() if not line.startswith(f"{prefix}HEAD "))
        specs: list[str] = []
        leases: list[str] = []
        for ref, seen in theirs.items():
            branch = ref.removeprefix(prefix)
            if branch in gone:
                specs.append(f":refs/heads/{branch}")
            elif (new := done.commits.get(seen)) is not None and new != seen:
                specs.append(f"{new}:refs/heads/{branch}")
            else:
                continue
            leases.append(f"--force-with-lease=refs/heads/{branch}:{seen}")
        if specs:
            self._git.run("push", "--quiet", "--atomic", *leases, remote, *specs)

    def forget_old(self, blobs: Collection[str]) -> None:
        """Let git drop what no branch needs any more: reflogs of the old history, its objects, and what the index still
        names of these blobs."""
        self._unstage(set(blobs))
        for ref in self._refs("refs/remotes/"):
            self._git.ask("update-ref", "-d", ref)  # the next fetch brings the present ones
        for name in ("ORIG_HEAD", "FETCH_HEAD"):
            (self._history.git_dir / name).unlink(missing_ok=True)
        self._git.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self._git.run("gc", "--quiet", "--prune=now")

    def still_there(self, blobs: Collection[str]) -> list[str]:
        """Of these blobs, those that git still has though no branch gives them to any path."""
        others = {one.blob for one in self.placed()}
        return [one for one in blobs if one not in others and self._git.ask("cat-file", "-e", one).code == 0]

    def _unstage(self, blobs: set[str]) -> None:
        """Where the index has one of these blobs and HEAD does not, it follows HEAD."""
        entries = [
            entry.decode("utf-8", "surrogateescape") for entry in split_nul(self._git.run("ls-files", "-s", "-z"))
        ]
        named = [entry.partition("\t") for entry in entries]
        self._history.resync_index([path for head, _, path in named if head.split(" ")[1] in blobs])

    def _export(self) -> bytes:
        return self._git.run(*_EXPORT)

    def _drop_staged(self) -> None:
        for ref in self._refs(_STAGED):
            self._git.ask("update-ref", "-d", ref)

    def _refs(self, prefix: str = "") -> dict[str, str]:
        wanted = [prefix] if prefix else []
        out = self._git.run("for-each-ref", "--format=%(refname) %(objectname)", *wanted).decode("utf-8", "replace")
        found = dict(line.split(" ", 1) for line in out.splitlines())
        hidden = () if prefix else ("refs/remotes/", _STAGED)
        return {ref: sha for ref, sha in found.items() if not ref.startswith(hidden)}


def unquoted(path: bytes) -> bytes:
    """A path of the stream as it is in the tree."""
    if not path.startswith(b'"'):
        return path

    def plain(match: re.Match[bytes]) -> bytes:
        code = match[1].decode("latin-1")
        return bytes([int(code, 8)]) if code.isdigit() else _ESCAPES.get(code, match[1])

    return _QUOTED.sub(plain, path[1:-1])


def _filtered(stream: bytes, gone: set[tuple[bytes, bytes]], unsaid: Names) -> tuple[bytes, dict[bytes, str]]:
    """The stream without the (path, blob)s, and which commit each of its marks was."""
    gone_blobs = {blob for _, blob in gone}
    parts: list[bytes] = []
    originals: dict[bytes, str] = {}
    mark = b""
    at = 0
    while at < len(stream):
        end = stream.find(b"\n", at)
        line = stream[at : end if end >= 0 else len(stream)]
        at += len(line) + 1
        if line.startswith(b"data "):
            size = int(line[5:])
            message = unsaid.replaced(stream[at : at + size])
            at += size
            parts.append(b"data %d\n%s" % (len(message), message))
            continue
        if line.startswith((b"commit refs/", b"reset refs/")):
            line = line.replace(b" refs/", b" " + _STAGED.encode("ascii"), 1)
        if line.startswith(b"mark "):
            mark = line[5:]
        elif line.startswith(b"original-oid "):
            originals[mark] = line[13:].decode("ascii")
        change = _CHANGE.fullmatch(line)
        if change is not None and change[1] in gone_blobs and (unquoted(change[2]), change[1]) in gone:
            line = b"D " + change[2]
        parts.append(line + b"\n")
    return b"".join(parts), originals


def _commits(marks: Path, originals: Mapping[bytes, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in marks.read_bytes().split(b"\n"):
        mark, _, sha = line.partition(b" ")
        if (old := originals.get(mark)) is not None:
            found[old] = sha.decode("ascii")
    return found

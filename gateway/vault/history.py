"""The vault's git history: commits of exactly the given bytes, and what a note was before.

Commits are made by `git fast-import`: no index, no hooks, no filters, no signing, and it refuses when the branch moved.
A person's staged and unstaged work is never touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import GitTrouble
from gateway.vault.git import Git, config_value, split_nul
from gateway.vault.log import LoggedVersion, log_of_memory, texts

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
COMMITTER = ("Memory Gateway", "gateway@memory.local")
_LOOSE_OBJECTS = 6_700
_UNFOLDED_BYTES = 16 * 1024 * 1024
STAGING_NAME = "memory-gateway"
_UNTIDY = "untidy-index"
_CRASH_REPORTS = "fast_import_crash_*"


@dataclass(frozen=True, slots=True)
class Change:
    """One path of a commit; `data` None removes it."""

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to make; `at` in ms since 1970 UTC."""

    author_name: str
    author_email: str
    at: int
    message: str
    changes: tuple[Change, ...]


class History:
    """The repository that holds the vault."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._git = Git(root)
        self._lock = threading.Lock()
        self._repacking = threading.Lock()
        self.git_dir: Path = root / ".git"
        self._prefix = ""
        self._hash_name = "sha1"
        self._file_modes = True

    @property
    def runner(self) -> Git:
        """Git in the vault's folder, for branches and sync."""
        return self._git

    @property
    def prefix(self) -> str:
        """The vault's folder within its repository, with a slash at the end; empty where they are the same."""
        return self._prefix

    def ensure(self) -> None:
        """Make the vault a repository if it lies in none, and learn where its git folder is.

        Raises:
            GitTrouble: git is missing, too old, or refuses the folder.
        """
        version = self._git.text("version") or ""
        numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
        if numbers < [2, 36]:
            raise GitTrouble(f"Git 2.36 or newer is needed; found: {version or 'none'}.", advice="Install git.")
        outside = self._git.text("rev-parse", "--git-dir") is None
        if outside or self._git.ignores_folder():  # another repository that ignores it
            self._git.run("init", "--quiet", "--initial-branch=main")
        self.git_dir = Path(self._git.text("rev-parse", "--absolute-git-dir") or self.git_dir)
        self._prefix = self._git.text("rev-parse", "--show-prefix") or ""
        self._hash_name = self._git.text("rev-parse", "--show-object-format") or "sha1"
        self._file_modes = self._git.text("config", "--type=bool", "--get", "core.fileMode") != "false"

    def staging(self) -> Path:
        """A folder on the vault's file system that people do not see; outside the watched tree."""
        inside = self.git_dir / STAGING_NAME
        if self.git_dir.is_dir() and self.git_dir.stat().st_dev == self.root.stat().st_dev:
            return inside
        fallback = self.root / f".{STAGING_NAME}"
        fallback.mkdir(exist_ok=True)
        exclude = self.git_dir / "info" / "exclude"
        exclude.parent.mkdir(parents=True, exist_ok=True)
        line = f"/{self._prefix}.{STAGING_NAME}/\n"
        present = exclude.read_text(encoding="utf-8") if exclude.exists() else ""
        if line not in present:
            exclude.write_text(present + line, encoding="utf-8")
        return fallback

    def waits_for(self) -> str | None:
        """Why the gateway must not commit right now; None when it may."""
        for name, what in _IN_PROGRESS.items():
            if (self.git_dir / name).exists():
                return f"{what} is in progress"
        if self._git.text("symbolic-ref", "--quiet", "HEAD") is None:
            return "HEAD is detached"
        filtered = self._git.text("check-attr", "filter", "--", "note.md") or ""
        if not filtered.endswith(("unspecified", "unset")):
            return "a content filter (LFS, git-crypt) is set on notes"
        return None

    def head(self) -> str | None:
        """The commit HEAD stands at; None in a repository without commits."""
        return self._git.text("rev-parse", "--verify", "--quiet", "HEAD")

    def person(self) -> tuple[str, str] | None:
        """Name and e-mail of the person, as git knows them."""
        name, email = config_value(self._git, "user.name"), config_value(self._git, "user.email")
        return (name, email) if name and email else None

    def committed(self, paths: Collection[str]) -> dict[str, str]:
        """Blob ids at HEAD of those of the paths that are there."""
        found: dict[str, str] = {}
        ordered = [path for path in paths if "\n" not in path]
        if not paths or self.head() is None:
            return found
        for path in set(paths) - set(ordered):  # `cat-file` is asked line by line
            listed = self._git.ask("ls-tree", "-z", "HEAD", "--", path).out
            if listed:
                found[path] = listed.split(b"\t")[0].split(b" ")[2].decode("ascii")
        if not ordered:
            return found
        request = "".join(f"HEAD:{self._prefix}{path}\n" for path in ordered).encode("utf-8", "surrogateescape")
        answer = self._git.run("cat-file", "--batch-check", send=request)
        for path, line in zip(ordered, answer.split(b"\n"), strict=False):
            words = line.split(b" ")
            if len(words) == 3 and words[1] == b"blob":
                found[path] = words[0].decode("ascii")
        return found

    def blob_id(self, data: bytes) -> str:
        """The id git gives to these bytes."""
        return hashlib.new(self._hash_name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def commit(self, commits: Sequence[Commit]) -> list[str]:
        """Make commits on the current branch, in order, of exactly these bytes. Returns their ids.

        Raises:
            GitTrouble: git waits for a person, the branch moved, or git refused; nothing was committed then.
        """
        if not commits:
            return []
        with self._lock:
            reason = self.waits_for()
            if reason:
                raise GitTrouble(
                    f"Commits wait: {reason}.", advice="Finish or abort it in git; they follow by themselves."
                )
            branch = self._git.text("symbolic-ref", "HEAD") or "refs/heads/main"
            stream = self._stream(commits, branch)
            out = self._fast_import(stream)
            ids = out.decode("ascii").split()
            if len(ids) != len(commits):
                raise GitTrouble("Git did not confirm the commits.")
            self._sync_index([change for commit in commits for change in commit.changes])
            return ids

    def commit_to(self, ref: str, commit: Commit) -> str:
        """Make one commit on top of HEAD under a branch that does not exist yet. Returns its id.

        Raises:
            GitTrouble: there is no commit to stand on, or git refused.
        """
        with self._lock:
            if self.head() is None:
                raise GitTrouble("The vault has no commit yet.")
            ids = self._fast_import(self._stream([commit], ref)).decode("ascii").split()
            if len(ids) != 1:
                raise GitTrouble("Git did not confirm the commit.")
            return ids[0]

    def show(self, revision: str, path: str) -> bytes | None:
        """The bytes of a path at a commit; None where it was not there."""
        if not _SHA.fullmatch(revision):
            return None
        answer = self._git.ask("cat-file", "blob", f"{revision}:{self._prefix}{path}")
        return answer.out if answer.code == 0 else None

    def log_of_memory(self, note_id: str, path: str, tip: str | None = None) -> list[LoggedVersion]:
        """Commits of a memory under a path and what it was called before, newest first, from a commit (or HEAD) on."""
        start = tip if tip is not None and _SHA.fullmatch(tip) else "HEAD"
        return log_of_memory(self._git, self._prefix, note_id, path, start)

    def holds(self, paths: Collection[str]) -> bool:
        """Whether any commit of any branch ever touched one of these paths."""
        return bool(self._git.ask("log", "-1", "--all", "--format=%H", "--end-of-options", "--", *paths).out.strip())

    def texts(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The bytes of paths at commits, in order; None where there is no such file."""
        return texts(self._git, self._prefix, wanted)

    def changed_paths(self, old: str, new: str) -> list[str]:
        """Paths of the vault that differ between two commits."""
        if not (_SHA.fullmatch(old) and _SHA.fullmatch(new)):
            return []
        out = self._git.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--relative", old, new).out
        return [name.decode("utf-8", "surrogateescape") for name in split_nul(out)]

    def keys_since(self, limit: int) -> dict[str, str]:
        """`Memory-Key` trailers of the newest commits: key → commit id. Tells after a crash what git already has."""
        if self.head() is None:
            return {}
        form = "%H%x00%(trailers:key=Memory-Key,valueonly,separator=%x00)%x01"
        out = self._git.run("log", f"--max-count={limit}", f"--format={form}", "HEAD").decode("utf-8", "replace")
        found: dict[str, str] = {}
        for record in out.split("\x01"):
            sha, *keys = record.strip("\n").split("\0")
            for key in keys:
                if key:
                    found.setdefault(key, sha)
        return found

    def resync_index(self, paths: Collection[str]) -> None:
        """After a crash between commit and index: make `git status` agree with HEAD for these paths."""
        at_head = self.committed(paths)
        self._update_index({path: at_head.get(path) for path in paths if "\0" not in path})

    def staged(self, base: str, paths: Collection[str]) -> set[str]:
        """Of these paths, those for which a person has staged something other than a commit holds."""
        out = self._git.ask("diff-index", "--cached", "--name-only", "-z", "--relative", base, "--").out
        return {one.decode("utf-8", "surrogateescape") for one in split_nul(out)} & set(paths)

    def tidy_index(self) -> None:
        """Bring up to date what another tool's `index.lock` kept from the index."""
        try:
            waiting = [one.decode("utf-8", "surrogateescape") for one in split_nul(self._untidy.read_bytes())]
        except FileNotFoundError:
            return
        self._untidy.unlink()
        self.resync_index(waiting)

    def needs_upkeep(self, most_packs: int) -> bool:
        """Whether there are too many packs or loose objects, and nothing that a person is in the middle of.

        Small packs hold whole trees that a fold makes deltas of: much in them counts like many.
        """
        if any((self.git_dir / name).exists() for name in _IN_PROGRESS):
            return False
        packs: list[int] = []
        for pack in (self.git_dir / "objects" / "pack").glob("*.pack"):
            with contextlib.suppress(FileNotFoundError):  # another git folds them at this moment
                packs.append(pack.stat().st_size)
        unfolded = sum(packs) - max(packs, default=0)
        # As `git gc --auto` estimates it: by the objects in one of 256 folders.
        loose = sum(1 for _ in (self.git_dir / "objects" / "17").glob("*"))
        return len(packs) > most_packs or unfolded > max(_UNFOLDED_BYTES, *packs, 0) or loose * 256 > _LOOSE_OBJECTS

    def upkeep(self) -> None:
        """Fold packs and loose objects into few packs, and keep history queries fast; git may be used meanwhile.

        Nothing is lost by it: a geometric repack takes what is unreachable along, and reflogs are left alone.

        Raises:
            GitTrouble: with git's own words.
        """
        with self._repacking:
            self._git.run("repack", "-d", "--geometric=2", "-q")
            self._git.run("commit-graph", "write", "--reachable", "--split", "--changed-paths")

    @property
    def _untidy(self) -> Path:
        return self.staging() / _UNTIDY

    def _sync_index(self, changes: Sequence[Change]) -> None:
        final = {change.path: change.data for change in changes}
        self._update_index({path: None if data is None else self.blob_id(data) for path, data in final.items()})

    def _update_index(self, blobs: Mapping[str, str | None]) -> None:
        """Best effort: another tool's `index.lock` is left alone, and the paths are remembered for `tidy_index`."""
        lines = [_index_line(self._prefix + path, self._mode(path), blob) for path, blob in blobs.items()]
        if lines and self._git.ask("update-index", "-z", "--add", "--index-info", send=b"".join(lines)).code != 0:
            self._untidy.parent.mkdir(exist_ok=True)
            with self._untidy.open("ab") as file:
                file.write(b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in blobs))

    def _mode(self, path: str) -> str:
        """Notes from other systems are often marked executable; that is theirs to say."""
        try:
            found = os.lstat(self.root / path).st_mode
        except OSError:
            found = 0
        return "100755" if self._file_modes and found & stat.S_IXUSR else "100644"

    def _fast_import(self, stream: bytes) -> bytes:
        before = set(self.git_dir.glob(_CRASH_REPORTS))
        try:
            return self._git.run("fast-import", "--quiet", "--done", "--date-format=raw", send=stream)
        except GitTrouble:
            for report in set(self.git_dir.glob(_CRASH_REPORTS)) - before:
                report.unlink(missing_ok=True)
            raise

    def _stream(self, commits: Sequence[Commit], branch: str) -> bytes:
        parts: list[bytes] = []
        parent = self.head()
        for number, commit in enumerate(commits, start=1):
            parts += _commit_head(commit, number, branch)
            if number == 1 and parent is not None:
                parts.append(f"from {parent}\n".encode("ascii"))
            for change in commit.changes:
                parts.append(_file_command(self._prefix + change.path, self._mode(change.path), change.data))
            parts.append(b"\n")
        for number in range(1, len(commits) + 1):
            parts.append(f"get-mark :{number}\n".encode("ascii"))
        parts.append(b"done\n")
        return b"".join(parts)


def _commit_head(commit: Commit, number: int, branch: str) -> list[bytes]:
    seconds = commit.at // 1000
    message = commit.message.encode("utf-8", "replace")
    return [
        f"commit {branch}\nmark :{number}\n".encode(),
        f"author {_ident(commit.author_name, commit.author_email)} {seconds} +0000\n".encode("utf-8", "replace"),
        f"committer {_ident(*COMMITTER)} {seconds} +0000\n".encode(),
        b"data %d\n%s\n" % (len(message), message),
    ]


def _index_line(path: str, mode: str, blob: str | None) -> bytes:
    mode, identifier = (mode, blob) if blob else ("0", "0" * 40)
    return f"{mode} {identifier}\t{path}".encode("utf-8", "surrogateescape") + b"\0"


def _file_command(path: str, mode: str, data: bytes | None) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in raw.split(b"/")):
        raise GitTrouble("A path that git must not store.", file=path)  # fast-import itself would take `.git/hooks/x`
    quoted = b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    if data is None:
        return b"D " + quoted + b"\n"
    return b"M " + mode.encode("ascii") + b" inline " + quoted + b"\ndata %d\n" % len(data) + data + b"\n"


def _ident(name: str, email: str) -> str:
    clean = re.sub(r"[<>\x00-\x1f]", "", name).strip() or "unknown"
    address = re.sub(r"[<>\s\x00-\x1f]", "", email)
    return f"{clean} <{address}>"

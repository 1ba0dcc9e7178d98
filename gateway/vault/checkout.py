"""Brings files of the vault to another commit as one person's edits are brought together with another's.

`git checkout` and `git merge` would lose a save that comes at the wrong moment; here each file is exchanged and
verified, and whatever a person changed meanwhile is merged or kept beside.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import BadPath, GitTrouble
from gateway.vault.exchange import ExchangeUnsupported, exchange, rename_no_replace, sync_folder, write_staged
from gateway.vault.git import Git, split_nul
from gateway.vault.merge import merge_bytes
from gateway.vault.paths import open_folder

_FILES = ("100644", "100755")
_TRIES = 5


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two commits; ids of blobs, None where there is no file."""

    path: str
    old: str | None
    new: str | None


@dataclass(slots=True)
class Brought:
    """What was done: paths written or taken away, and conflict copies that were laid beside a person's file."""

    written: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    copies: list[str] = field(default_factory=list[str])


def changes_between(git: Git, old: str | None, new: str) -> list[FileChange]:
    """The files that differ between two commits.

    Raises:
        GitTrouble: the change holds a symbolic link, a submodule or a path that no file of a vault may have.
    """
    base = old or git.run("hash-object", "-t", "tree", "--stdin", send=b"").decode("ascii").strip()
    fields = split_nul(git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", base, new))
    found: list[FileChange] = []
    for head, name in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, _ = head.decode("ascii").lstrip(":").split(" ")
        path = name.decode("utf-8", "surrogateescape")
        if new_mode not in (*_FILES, "000000"):
            raise GitTrouble(
                f"`{path}` is a symbolic link or a submodule; the gateway does not bring it into the vault.",
                advice="Merge it yourself with git, or take it out of the remote.",
            )
        _check(path)
        found.append(FileChange(path, old_id if old_mode in _FILES else None, new_id if new_mode in _FILES else None))
    return found


class Checkout:
    """Writes files of commits into the vault."""

    def __init__(self, root: Path, staging: Path, git: Git) -> None:
        self._root = root
        self._staging = staging
        self._git = git

    def bring(self, changes: Sequence[FileChange], label: str) -> Brought:
        """Carry changes over into the files.

        Args:
            label: what a conflict copy is called after the note's name.

        Raises:
            GitTrouble: a file was saved again and again meanwhile; what was done so far is done.
        """
        done = Brought()
        for change in changes:
            for _ in range(_TRIES):
                if self._bring_one(change, label, done):
                    break
            else:
                raise GitTrouble("A file is being saved all the time; the sync goes on later.", file=change.path)
        return done

    def _bring_one(self, change: FileChange, label: str, done: Brought) -> bool:
        """Whether it is done; False where somebody saved this very moment."""
        present = self._read(change.path)
        old = self._blob(change.old)
        new = self._blob(change.new)
        if present == new:
            return True
        if new is None:
            if present != old or present is None:
                return True  # changed here, removed there: what a person wrote stays
            if self._remove(change.path, present):
                done.removed.append(change.path)
                return True
            return False
        wanted = new
        if present is not None and present != old:
            merged = merge_bytes(present, old or b"", new) if old is not None else None
            if merged is None:
                done.copies.append(self._beside(change.path, new, label))
                return True
            wanted = merged
        if self._write(change.path, present, wanted):
            done.written.append(change.path)
            return True
        return False

    def _write(self, path: str, present: bytes | None, wanted: bytes) -> bool:
        target = self._target(path)
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o644
        staged = self._stage(wanted, mode)
        try:
            if present is None:
                rename_no_replace(staged, target)
            else:
                self._exchange(staged, target)
        except (FileExistsError, FileNotFoundError):
            staged.unlink(missing_ok=True)
            return False
        if present is not None and staged.read_bytes() != present:
            exchange(staged, target)  # a save that we had not seen goes back
            staged.unlink(missing_ok=True)
            return False
        staged.unlink(missing_ok=True)
        sync_folder(target.parent)
        return True

    def _exchange(self, staged: Path, target: Path) -> None:
        try:
            exchange(staged, target)
        except ExchangeUnsupported:
            kept = staged.with_name(staged.name + ".old")
            kept.write_bytes(target.read_bytes())
            staged.replace(target)
            kept.replace(staged)

    def _remove(self, path: str, present: bytes) -> bool:
        target = self._target(path)
        aside = self._staging / f"sync_{uuid.uuid4().hex}"
        try:
            target.rename(aside)
        except FileNotFoundError:
            return True
        if aside.read_bytes() != present:
            with contextlib.suppress(FileExistsError):
                rename_no_replace(aside, target)
            return False
        aside.unlink()
        return True

    def _beside(self, path: str, data: bytes, label: str) -> str:
        for number in range(1, 100):
            copy = copy_name(path, label if number == 1 else f"{label} {number}")
            if self._read(copy) == data or self._write(copy, None, data):
                return copy
        raise GitTrouble("There is no free name for a conflict copy.", file=path)

    def _stage(self, data: bytes, mode: int) -> Path:
        staged = self._staging / f"sync_{uuid.uuid4().hex}"
        write_staged(staged, data, mode)
        return staged

    def _target(self, path: str) -> Path:
        os.close(open_folder(self._root, path.rpartition("/")[0], create=True))
        target = self._root / path
        if target.is_symlink():
            raise BadPath("Symbolic links are not written through.", file=path)
        return target

    def _read(self, path: str) -> bytes | None:
        target = self._root / path
        if target.is_symlink() or not target.is_file():
            return None
        return target.read_bytes()

    def _blob(self, identifier: str | None) -> bytes | None:
        return None if identifier is None else self._git.run("cat-file", "blob", identifier)


def copy_name(path: str, label: str) -> str:
    """The name of a conflict copy, as sync tools make them: `Note (conflicted copy LABEL).md`."""
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending} (conflicted copy {label}){dot}{ending if stem else ''}"


def _check(path: str) -> None:
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.lower() in (".git", "git~1") for part in parts):
        raise GitTrouble("The remote holds a path that no file of a vault may have.", file=path)

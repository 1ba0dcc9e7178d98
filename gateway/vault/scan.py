"""One walk over the vault: names and stat keys of all notes, and what could not be read. Opens no file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import Unavailable

StatKey = tuple[int, int, int, int]
# `stat.S_ISREG` as a comparison: a scan asks it of every note.
_KIND, _REGULAR = 0o170000, 0o100000


@dataclass(slots=True)
class Snapshot:
    """What a walk saw. `files` maps a path in the vault to (mtime_ns, size, inode, ctime_ns)."""

    files: dict[str, StatKey] = field(default_factory=lambda: {})
    unreadable: list[str] = field(default_factory=lambda: [])
    refused: dict[str, str] = field(default_factory=lambda: {})

    def covers(self, path: str) -> bool:
        """Whether the folder of a path could be read, so that its absence means something."""
        return not any(not folder or path == folder or path.startswith(folder + "/") for folder in self.unreadable)


def stat_key(found: os.stat_result) -> StatKey:
    """What tells an unchanged file: ctime changes even where size and mtime were restored."""
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def walk(root: Path, folder: str = "") -> Snapshot:
    """Walk the vault, or one folder of it, for `*.md` files. Dot names are passed over, links never followed.

    Raises:
        Unavailable: the root itself is gone or unreadable.
    """
    snapshot = Snapshot()
    if not folder and not root.is_dir():
        raise Unavailable("The vault's folder is not there.", file=str(root), advice="Is its disk mounted?")
    waiting = [folder]
    while waiting:
        _walk_folder(root, waiting.pop(), snapshot, waiting)
    return snapshot


def _walk_folder(root: Path, folder: str, snapshot: Snapshot, waiting: list[str]) -> None:
    files = snapshot.files
    prefix = folder + "/" if folder else ""
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                if name[-3:] == ".md":
                    found = entry.stat(follow_symlinks=False)
                    if found.st_mode & _KIND == _REGULAR:
                        files[prefix + name] = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
                        continue
                _other(entry, prefix + name, snapshot, waiting)
    except FileNotFoundError:
        return  # gone since its parent was listed
    except OSError:
        snapshot.unreadable.append(folder)


def _other(entry: os.DirEntry[str], path: str, snapshot: Snapshot, waiting: list[str]) -> None:
    if entry.is_symlink():
        if entry.name.endswith(".md") or entry.is_dir():
            snapshot.refused[path] = "a symbolic link"
    elif entry.is_dir(follow_symlinks=False):
        waiting.append(path)
    elif entry.name.endswith(".md"):
        snapshot.refused[path] = "no regular file"

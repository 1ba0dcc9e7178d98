"""Opening files of the vault without ever leaving it: component by component, no symbolic links."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from gateway.errors import BadPath, Unavailable
from gateway.notes.paths import check_vault_path, leaves_vault

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def open_folder(root: Path, path: str, *, create: bool = False) -> int:
    """Open a folder of the vault (`""` is the root) and return its descriptor.

    Raises:
        FileNotFoundError: it does not exist and `create` is false.
        BadPath: the path leaves the vault, or a part is a symbolic link or no folder.
    """
    if leaves_vault(path):
        raise BadPath("The path leaves the vault.", file=path)
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in Path(path).parts:
            following = _step(current, part, path, create=create)
            os.close(current)
            current = following
    except BaseException:
        os.close(current)
        raise
    return current


def open_note(root: Path, path: str) -> int | None:
    """Open a regular file of the vault for reading; None when it is not there.

    Raises:
        BadPath: the path leaves the vault, meets a symbolic link, or names no regular file.
        Unavailable: the file exists but cannot be read.
    """
    folder, _, name = path.rpartition("/")
    try:
        parent = open_folder(root, folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = os.open(name, _FILE, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise BadPath("Symbolic links are not followed in a vault.", file=path) from None
        raise Unavailable(f"The file cannot be read: {error.strerror}.", file=path) from error
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise BadPath("Only regular files are read as notes.", file=path)
    return found


def resolve_for_write(root: Path, path: str) -> Path:
    """Check a path for writing, make its folders, and return where it stands.

    Raises:
        BadPath: the path is unacceptable, or a part of it is a symbolic link.
    """
    check_vault_path(path)
    folder = path.rpartition("/")[0]
    os.close(open_folder(root, folder, create=True))
    target = root / path
    if target.is_symlink():
        raise BadPath("Symbolic links are not written through.", file=path)
    return target


def _step(current: int, part: str, whole: str, *, create: bool) -> int:
    try:
        return os.open(part, _DIRECTORY, dir_fd=current)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise BadPath(f"`{part}` is a symbolic link or no folder.", file=whole) from None
        raise Unavailable(f"The folder cannot be read: {error.strerror}.", file=whole) from error
    try:
        os.mkdir(part, dir_fd=current)
        os.fsync(current)
    except FileExistsError:
        pass  # made by somebody else in between
    return os.open(part, _DIRECTORY, dir_fd=current)

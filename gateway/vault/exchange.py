"""The two renames that POSIX lacks: exchange two names, and rename without replacing."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_LINUX_EXCHANGE, _LINUX_NOREPLACE = 2, 1
_MAC_SWAP, _MAC_EXCL = 2, 4
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


class ExchangeUnsupported(OSError):
    """This system or file system cannot do it."""


def exchange(one: Path, other: Path) -> None:
    """Swap what two names stand for, atomically.

    Raises:
        ExchangeUnsupported: NFS, FAT and old kernels cannot.
        OSError: anything else, e.g. one of the names is gone.
    """
    _rename(one, other, _LINUX_EXCHANGE, _MAC_SWAP)


def rename_no_replace(source: Path, target: Path) -> None:
    """Rename, failing with FileExistsError where the target exists."""
    try:
        _rename(source, target, _LINUX_NOREPLACE, _MAC_EXCL)
    except ExchangeUnsupported:
        link_or_copy(source, target)
        source.unlink()


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or a copy where the disk knows no links; never overwrites."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        with source.open("rb") as reader, target.open("xb") as writer:
            shutil.copyfileobj(reader, writer)
            writer.flush()
            os.fsync(writer.fileno())


def write_staged(staged: Path, data: bytes, mode: int) -> None:
    """Write a file that is to be renamed into place, so that its bytes and mode last through a power cut."""
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make what was renamed into or out of a folder last through a power cut, where the disk can."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError:
        pass  # some network disks refuse to sync folders
    finally:
        os.close(fd)


def _rename(source: Path, target: Path, linux_flag: int, mac_flag: int) -> None:
    call = _system_call()
    if call is None:
        raise ExchangeUnsupported(errno.ENOSYS, "no exchanging rename on this system")
    names = (os.fsencode(source), os.fsencode(target))
    if sys.platform == "darwin":
        failed = call(*names, mac_flag)
    else:
        failed = call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], linux_flag)
    if failed:
        number = ctypes.get_errno()
        kind = ExchangeUnsupported if number in _UNSUPPORTED else OSError
        raise kind(number, os.strerror(number), str(target))


@cache
def _system_call() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "renamex_np" if sys.platform == "darwin" else "renameat2", None)

"""Exactly one process writes a data directory: an flock, which dies with its process, not a PID file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.errors import Busy


class DirectoryLock:
    """Holds `<folder>/lock` until closed. Scripts can take the same lock with `flock(1)`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "lock"
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 64, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise Busy(
                f"Another process (pid {holder or 'unknown'}) holds {folder}.",
                advice="Stop it, or let this command talk to the running server.",
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode("ascii"), 0)

    def close(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_locked(folder: Path) -> bool:
    """Whether some process holds the folder right now."""
    try:
        fd = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False

"""Exactly one process writes a data directory: an flock, which dies with its process, and the address it wrote down."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from gateway.errors import Busy

ADDRESS_FILE = "server.json"


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


def write_address(folder: Path, url: str) -> None:
    """Write down where the server on a data directory is reached, readable by its user only."""
    fd = os.open(folder / ADDRESS_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"url": url, "pid": os.getpid()}, file)


def forget_address(folder: Path) -> None:
    """The server has stopped."""
    (folder / ADDRESS_FILE).unlink(missing_ok=True)


def running_at(folder: Path) -> str | None:
    """The base URL of the server that holds a data directory, as it wrote it down."""
    try:
        found: Any = json.loads((folder / ADDRESS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    address: Any = found.get("url") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return address if isinstance(address, str) else None

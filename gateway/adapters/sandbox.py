"""An agent's sandbox: which way each of its four files goes, and reading and writing them in a directory.

The directions are the table of seed 000, section 4. Deciding is pure; a directory is never left by a link.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gateway.errors import BadPath, Invalid, TooLarge, Unavailable

Mode: TypeAlias = Literal["new_user", "round", "force", "new_session"]
# `push`: vault to sandbox; `pull`: sandbox to vault; `merge`: both changed; `leave`: nothing is done.
Step: TypeAlias = Literal["same", "push", "pull", "merge", "leave"]

# The room of the vault that each file of a sandbox stands for.
ROOMS: Final[Mapping[str, str]] = {"USER.md": "user_file", "SOUL.md": "soul", "MEMORY.md": "memory_file"}
# The platform's rules go one way only: from the template into the sandbox.
RULES: Final = "AGENTS.md"
NAMES: Final = (*ROOMS, RULES)


@dataclass(frozen=True, slots=True)
class FileState:
    """What is known of one file.

    Attributes:
        sandbox: its text in the sandbox; None where it is not there.
        vault: its text in the vault.
        template: the text that every user's file begins with.
        base: hash of the text that both had when they were last the same; None where they never were.
    """

    sandbox: str | None
    vault: str
    template: str
    base: str | None


def text_hash(text: str) -> str:
    """The hash by which texts are compared: line ends and blank lines at the end make no difference."""
    return hashlib.sha256(_comparable(text).encode("utf-8", "surrogatepass")).hexdigest()


def step_for(file: FileState, mode: Mode, *, dirty: bool) -> Step:
    """Which way a file goes.

    Args:
        dirty: the agent says that it may have written to its files since the last round.
    """
    if file.sandbox is None or not file.sandbox.strip():
        return "push"
    here, there = text_hash(file.sandbox), text_hash(file.vault)
    if here == there:
        return "same"
    if mode == "force":
        return "push"
    # A sandbox that still has the template has nothing to say, unless the user went back to it.
    if here == text_hash(file.template) and file.base != here:
        return "push"
    if file.base is None:
        return "leave" if mode == "new_user" else "pull" if dirty or mode == "new_session" else "leave"
    if here == file.base:
        return "push"
    if there != file.base:
        return "merge"
    return "pull" if dirty or mode == "new_session" else "leave"


def check_names(names: Mapping[str, object]) -> None:
    """Refuse other files than the four.

    Raises:
        Invalid: names the first one.
    """
    for name in names:
        if name not in NAMES:
            raise Invalid(
                f"A sandbox has no file {name[:80]!r} that is kept in step.",
                field="files",
                advice=f"Only {', '.join(NAMES)}.",
            )


def read_sandbox(root: Path, *, max_bytes: int) -> dict[str, str]:
    """The texts of the four files in a directory, as far as they are there.

    Raises:
        BadPath: the directory is not there, or a file is a link or no regular file.
        TooLarge, Invalid: a file is too large, or no UTF-8 text.
    """
    if not root.is_dir():
        raise BadPath("There is no such directory.", file=str(root))
    found: dict[str, str] = {}
    for name in NAMES:
        data = _read(root, name, max_bytes)
        if data is None:
            continue
        try:
            found[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise Invalid("The file is not saved as UTF-8.", file=str(root / name)) from None
    return found


def write_sandbox(root: Path, files: Mapping[str, str], seen: Mapping[str, str]) -> list[str]:
    """Write files into a directory, each as a whole or not at all.

    Args:
        seen: what was read there before; a file that says something else by now is left for the next sync.

    Returns:
        The names of files that were left.

    Raises:
        BadPath: a file is a link or no regular file.
        Unavailable: the directory cannot be written.
    """
    check_names(files)
    left: list[str] = []
    for name, text in files.items():
        wanted = text.encode("utf-8")
        present = _read(root, name, None)
        if present == wanted:
            continue
        if present is not None and present != seen.get(name, "").encode("utf-8"):
            left.append(name)
            continue
        try:
            _replace(root, name, wanted)
        except OSError as error:
            raise Unavailable(f"The sandbox cannot be written: {error.strerror}.", file=str(root / name)) from error
    return left


def _read(root: Path, name: str, max_bytes: int | None) -> bytes | None:
    path = root / name
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadPath(f"The file is a link or cannot be read: {error.strerror}.", file=str(path)) from None
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise BadPath("The file is no regular file.", file=str(path))
        data = file.read() if max_bytes is None else file.read(max_bytes + 1)
    if max_bytes is not None and len(data) > max_bytes:
        raise TooLarge(f"A file of a sandbox may have {max_bytes:,} bytes.", file=str(path))
    return data


def _replace(root: Path, name: str, data: bytes) -> None:
    staged = root / f".{name}.new"
    staged.unlink(missing_ok=True)
    opened = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(opened, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(root / name)


def _comparable(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")

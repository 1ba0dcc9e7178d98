"""Reading and writing notes so that nobody's save is lost: exchange, verify what was swapped out, keep it a while.

The order of steps follows design section 2, rule 3: a hash check followed by a plain replace loses people's saves.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import AlreadyExists, BadPath, ChangedElsewhere, TooLarge, Unavailable
from gateway.notes.text import etag_of
from gateway.vault.exchange import (
    ExchangeUnsupported,
    exchange,
    link_or_copy,
    rename_no_replace,
    sync_folder,
    write_staged,
)
from gateway.vault.paths import open_note, resolve_for_write
from gateway.vault.scan import StatKey, stat_key

_READ_TRIES = 5
_RECENT_SECONDS = 10.0
_SWAP_TRIES = 20


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file's bytes, their hash and the stat key they were read under."""

    path: str
    data: bytes
    etag: str
    stat_key: StatKey


class VaultFiles:
    """The vault's files. `staging` lies on the same file system, outside what people see."""

    def __init__(self, root: Path, staging: Path, *, max_bytes: int) -> None:
        self.root = root
        self.staging = staging
        self.max_bytes = max_bytes
        staging.mkdir(parents=True, exist_ok=True)

    def read(self, path: str) -> FileRead | None:
        """Read a note as one consistent state; None when it is not there.

        Raises:
            BadPath: a link, no regular file, or outside the vault.
            Unavailable: unreadable, or never still for as long as it was tried.
        """
        for _ in range(_READ_TRIES):
            opened = open_note(self.root, path)
            if opened is None:
                return None
            with os.fdopen(opened, "rb") as file:
                before = stat_key(os.fstat(file.fileno()))
                data = file.read(self.max_bytes + 1)
                if stat_key(os.fstat(file.fileno())) == before:
                    return FileRead(path, data, etag_of(data), before)
            time.sleep(0.005)
        raise Unavailable("The file is being written right now.", file=path, advice="Try again in a moment.")

    def stat(self, path: str) -> StatKey | None:
        """The stat key of a note, None when there is no regular file."""
        try:
            found = os.lstat(self.root / path)
        except (OSError, ValueError):
            return None
        return stat_key(found) if (found.st_mode & 0o170000) == 0o100000 else None

    def create(self, path: str, data: bytes, intent_id: str) -> None:
        """Write a new note; never overwrites.

        Raises:
            AlreadyExists: the name is taken.
            BadPath, TooLarge: the path or the size is unacceptable.
        """
        target = self._target(path, data)
        staged = self._stage(intent_id, data, mode=0o644)
        try:
            rename_no_replace(staged, target)
        except FileExistsError:
            staged.unlink()
            raise AlreadyExists("There is a file of that name already.", file=path) from None
        sync_folder(target.parent)

    def replace(self, path: str, base_etag: str, data: bytes, intent_id: str) -> None:
        """Replace a note whose present bytes have the hash `base_etag`. What was swapped out stays as a spare.

        Raises:
            ChangedElsewhere: the file has other bytes by now; it is as it was found.
        """
        target = self._target(path, data)
        mode = _mode_of(target, path)
        spare = self._stage(intent_id, data, mode=mode)
        try:
            exchange(spare, target)
        except ExchangeUnsupported:
            self._replace_without_exchange(path, target, spare, base_etag)
            return
        except FileNotFoundError:
            spare.unlink()
            raise ChangedElsewhere("The note is gone from the vault.", file=path) from None
        if _etag_at(spare) != base_etag:
            self._swap_back(spare, target, etag_of(data))
            raise ChangedElsewhere("The note was changed in the vault meanwhile.", file=path)
        sync_folder(target.parent)

    def remove(self, path: str, base_etag: str, intent_id: str) -> None:
        """Take a note whose bytes have the hash `base_etag` out of the vault; it stays as a spare.

        Raises:
            ChangedElsewhere: the file has other bytes by now; it is back in its place.
            BadPath: no regular file stands there.
        """
        target = resolve_for_write(self.root, path)
        spare = self.staging / intent_id
        try:
            _mode_of(target, path, linked=True)
            target.rename(spare)
        except (FileNotFoundError, ChangedElsewhere):
            return
        if _etag_at(spare) != base_etag:
            self.give_back(intent_id, path)
            raise ChangedElsewhere("The note was changed in the vault meanwhile.", file=path)
        sync_folder(target.parent)

    def move(self, path: str, new_path: str, base_etag: str) -> None:
        """Give a note whose bytes have the hash `base_etag` another path; never overwrites.

        Raises:
            AlreadyExists: the new name is taken.
            ChangedElsewhere: the file has other bytes by now, or is gone; it stands where it was found.
            BadPath: a path is unacceptable, or no regular file stands there.
        """
        source, target = resolve_for_write(self.root, path), resolve_for_write(self.root, new_path)
        _mode_of(source, path, linked=True)
        try:
            rename_no_replace(source, target)
        except FileExistsError:
            raise AlreadyExists("There is a file of that name already.", file=new_path) from None
        except FileNotFoundError:
            raise ChangedElsewhere("The note is gone from the vault.", file=path) from None
        if _etag_at(target) != base_etag:
            with contextlib.suppress(FileExistsError):  # a save made the old name anew: both texts stay
                rename_no_replace(target, source)
            raise ChangedElsewhere("The note was changed in the vault meanwhile.", file=path)
        sync_folder(target.parent)
        sync_folder(source.parent)

    def spare(self, intent_id: str) -> bytes | None:
        """What an intent swapped out, while it is still kept."""
        try:
            return (self.staging / intent_id).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None

    def spares(self) -> list[str]:
        """The intents whose spare or staged file is still there."""
        return [entry.name for entry in os.scandir(self.staging) if entry.is_file() and entry.name.startswith("int_")]

    def drop_spare(self, intent_id: str) -> None:
        """The spare is no longer needed."""
        (self.staging / intent_id).unlink(missing_ok=True)

    def give_back(self, intent_id: str, path: str) -> None:
        """Put a spare back under its name; beside it where the name was taken meanwhile."""
        spare = self.staging / intent_id
        target = resolve_for_write(self.root, path)
        for attempt in range(100):
            name = target if attempt == 0 else target.with_name(f"{target.stem} (kept {attempt}){target.suffix}")
            with contextlib.suppress(FileExistsError):
                rename_no_replace(spare, name)
                sync_folder(target.parent)
                return
        raise Unavailable("There is no free name to give a file back.", file=path)

    def undo_exchange(self, intent_id: str, path: str, own_etag: str | None) -> None:
        """Swap a spare back into its place. What stands there goes only if it is still our own text, `own_etag`."""
        self._swap_back(self.staging / intent_id, self.root / path, own_etag)

    def discard_part(self, path: str, whole: bytes) -> bool:
        """Take away a beginning of `whole` that a crash left under a name, where a disk knows only copying.

        Returns:
            Whether nothing of it is left; False where the file holds something else.
        """
        found = self.read(path)
        if found is None:
            return True
        if len(found.data) < len(whole) and whole.startswith(found.data):
            (self.root / path).unlink()
            return True
        return False

    def _swap_back(self, spare: Path, target: Path, own_etag: str | None) -> None:
        """Undo an exchange. A person may have saved once more since: the newest of their texts stays in the vault."""
        for _ in range(_SWAP_TRIES):
            put_back = _etag_at(spare)
            try:
                exchange(spare, target)
            except FileNotFoundError:  # the target was deleted or renamed meanwhile
                with contextlib.suppress(FileExistsError):
                    rename_no_replace(spare, target)
                    return
                continue
            except ExchangeUnsupported:
                spare.replace(target)
                return
            if _etag_at(spare) == own_etag:
                spare.unlink(missing_ok=True)
                return
            # A save came in between and is what we hold now: it is the newest, so it goes back once more.
            own_etag = put_back
        self.give_back(spare.name, str(target.relative_to(self.root)))

    def _target(self, path: str, data: bytes) -> Path:
        if len(data) > self.max_bytes:
            raise TooLarge(f"A note may have {self.max_bytes} bytes; this has {len(data)}.", file=path)
        return resolve_for_write(self.root, path)

    def _stage(self, intent_id: str, data: bytes, *, mode: int) -> Path:
        staged = self.staging / intent_id
        write_staged(staged, data, mode)
        return staged

    def _replace_without_exchange(self, path: str, target: Path, staged: Path, base_etag: str) -> None:
        """For disks without exchange: keep a link to the old file, check it, replace, leave it as the spare."""
        if time.time() - os.lstat(target).st_mtime < _RECENT_SECONDS:
            staged.unlink()
            raise ChangedElsewhere(
                "The note was changed a moment ago, and this disk cannot exchange files.",
                file=path,
                advice="Try again in ten seconds.",
            )
        old = staged.with_name(staged.name + ".old")
        old.unlink(missing_ok=True)
        link_or_copy(target, old)
        if _etag_at(old) != base_etag:
            old.unlink()
            staged.unlink()
            raise ChangedElsewhere("The note was changed in the vault meanwhile.", file=path)
        staged.replace(target)
        old.replace(staged)
        sync_folder(target.parent)


def _mode_of(target: Path, path: str, *, linked: bool = False) -> int:
    """The permissions of a note that may be replaced; `linked`: a second name does not matter."""
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        raise ChangedElsewhere("The note is gone from the vault.", file=path) from None
    if not stat.S_ISREG(found.st_mode):
        raise BadPath("Only regular files are written to.", file=path)
    if found.st_nlink > 1 and not linked:
        raise BadPath("The note has a second name (hard link); it is not written to.", file=path)
    return found.st_mode & 0o7777


def _etag_at(file: Path) -> str | None:
    """The hash of a regular file; None for anything else that was swapped in: links, folders, pipes."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as opened:
        return etag_of(opened.read())

"""Backup and restore: the ledger by its online backup, the vault with its git history; the index is rebuilt."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway import __version__
from gateway.config import SETTINGS_FILE, Settings
from gateway.errors import AlreadyExists, Invalid, Unavailable
from gateway.ledger import Ledger, events, meta
from gateway.services.still_forgotten import keep_forgotten
from gateway.vault.history import STAGING_NAME

_MANIFEST = "manifest.json"
_FORMAT = 1
_LEDGER = "ledger.db"


def backup(settings: Settings, target: Path, *, tell: Callable[[int], None] = lambda _files: None) -> int:
    """Write a `.tar.gz` of ledger, vault and settings, also while a server runs. Returns the number of files.

    The ledger comes first: what is written to the vault after that is found by the first scan after a restore.
    API keys are in it as hashes only; `admin.key` is not.

    Raises:
        AlreadyExists: the target exists.
        Unavailable: the ledger is not SQLite.
    """
    if not settings.vault_root.is_dir():
        raise Unavailable(
            "The vault's folder is not there.", file=str(settings.vault_root), advice="Is its disk mounted?"
        )
    if target.exists():
        raise AlreadyExists("The backup's file exists already.", file=str(target), advice="Choose another name.")
    staged = target.with_name(target.name + ".part")
    count = 0
    with tempfile.TemporaryDirectory(prefix="memory-gateway-") as folder, tarfile.open(staged, "w:gz") as archive:
        copy = Path(folder) / _LEDGER
        Ledger(settings.ledger, read_only=True).copy_to(copy)
        manifest = {
            "format": _FORMAT,
            "version": __version__,
            "made": int(time.time()),
            "vault": str(settings.vault_root),
            "data_dir": str(settings.data_dir),
        }
        _add_bytes(archive, _MANIFEST, json.dumps(manifest).encode("utf-8"))
        archive.add(copy, _LEDGER)
        if (settings.data_dir / SETTINGS_FILE).is_file():
            archive.add(settings.data_dir / SETTINGS_FILE, SETTINGS_FILE)
        for path in _vault_files(settings.vault_root):
            try:
                archive.add(path, f"vault/{path.relative_to(settings.vault_root)}", recursive=False)
            except FileNotFoundError:
                continue  # gone since it was listed
            count += 1
            tell(count)
    staged.chmod(0o600)
    staged.replace(target)
    return count


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored: where its vault was, and how many memories stay forgotten that were forgotten since.

    Attributes:
        forgotten_of: the data directory whose tombstones were taken over; None where there was none to ask.
    """

    vault: str | None
    forgotten_of: Path | None
    kept_forgotten: int


def restore(archive_path: Path, data_dir: Path, *, forgotten_of: Path | None = None) -> Restored:
    """Unpack a backup into a new data directory. What was forgotten since the backup was made stays forgotten.

    Args:
        forgotten_of: the data directory that knows what was forgotten since; where it is not given, the one that the
            backup was made of, if it is still there.

    Raises:
        AlreadyExists: the directory holds a ledger or a vault already.
        Invalid: the file is no backup of ours, or `forgotten_of` holds no ledger.
    """
    if forgotten_of is not None and not (forgotten_of / _LEDGER).is_file():
        raise Invalid(f"There is no ledger in {forgotten_of}.", field="forgotten_of")
    for name in (_LEDGER, "vault"):
        if (data_dir / name).exists():
            raise AlreadyExists(f"There is a {name} in {data_dir} already.", advice="Restore into a new directory.")
    try:
        with tarfile.open(archive_path, "r:gz") as archive:
            member = archive.extractfile(_MANIFEST)
            manifest: dict[str, Any] = json.loads(member.read()) if member else {}
            if manifest.get("format") != _FORMAT:
                raise Invalid("The backup has a format that this version does not read.", file=str(archive_path))
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            archive.extractall(data_dir, filter="data")
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError) as error:
        raise Invalid(f"This is no backup of a memory gateway: {error}.", file=str(archive_path)) from error
    (data_dir / _MANIFEST).unlink(missing_ok=True)
    (data_dir / _LEDGER).chmod(0o600)
    before = Path(str(manifest.get("data_dir", "")))
    known = forgotten_of or (before if manifest.get("data_dir") and (before / _LEDGER).is_file() else None)
    ledger = Ledger.open(f"sqlite:///{data_dir / _LEDGER}")
    try:
        with ledger.write() as tx:
            meta.remove(tx, meta.VAULT_ROOT)  # the vault is in the new data directory now
            events.restart(tx)
            gone = keep_forgotten(tx, known / _LEDGER, data_dir / "vault") if known is not None else 0
    finally:
        ledger.close()
    return Restored(manifest.get("vault"), known, gone)


def _vault_files(root: Path) -> Iterator[Path]:
    """Git's refs before its objects, so that no ref of the copy lacks its objects; then everything else."""
    git = root / ".git"
    early = [git / "HEAD", git / "packed-refs", *sorted((git / "refs").rglob("*"))]
    yield from (path for path in early if path.is_file())
    for path in sorted(root.rglob("*")):
        if STAGING_NAME in path.parts[-3:] or f".{STAGING_NAME}" in path.parts or path in early:
            continue
        if path.is_symlink() or path.is_file() or (path.is_dir() and not any(path.iterdir())):
            yield path


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mtime = int(time.time())
    archive.addfile(member, io.BytesIO(data))

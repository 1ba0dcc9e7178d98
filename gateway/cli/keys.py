"""`key`: make, list and end API keys."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import rich_click as click

from gateway.bootstrap import write_key
from gateway.cli.console import data_dir_option, errors_in_words, out, settings_for
from gateway.config import Settings
from gateway.errors import NotFound
from gateway.ledger import Ledger, Transaction, keys
from gateway.services.records import text_time
from gateway.vault.lock import DirectoryLock


@click.group()
def key() -> None:
    """Make, list and end API keys. Making and ending one needs the server to be stopped."""


@key.command("new")
@data_dir_option
@click.option("--label", default="made by hand", show_default=True, help="What the key is for.")
def new(data_dir: Path | None, label: str) -> None:
    """Make an admin key, print it once, and put it into `admin.key`."""
    with errors_in_words():
        settings = settings_for(data_dir)
        with _writing(settings) as tx:
            made, secret = keys.issue(tx, keys.NewKey(role="admin", label=label))
            write_key(settings.admin_key_path, secret)
        out.print(f"{made.id}\n{secret}", markup=False)


@key.command("list")
@data_dir_option
def list_keys(data_dir: Path | None) -> None:
    """List all keys, without their secrets."""
    with errors_in_words():
        for one in _listed(settings_for(data_dir)):
            state = "revoked" if one.revoked_at else "live"
            used = text_time(one.last_used_at) or "never used"
            out.print(f"{one.id}  {one.prefix}…  {one.role}  {state}  {used}  {one.label}", markup=False)


@key.command("revoke")
@data_dir_option
@click.argument("key_id")
def revoke(data_dir: Path | None, key_id: str) -> None:
    """End a key."""
    with errors_in_words():
        with _writing(settings_for(data_dir)) as tx:
            ended = keys.revoke(tx, key_id)
        if not ended:
            raise NotFound(f"There is no live key {key_id!r}.", advice="`memory-gateway key list` shows them.")
        out.print(f"{key_id} is revoked", markup=False)


@contextmanager
def _writing(settings: Settings) -> Generator[Transaction]:
    """A transaction on the ledger of a data directory that no server holds."""
    lock = DirectoryLock(settings.data_dir)
    try:
        ledger = Ledger.open(settings.ledger)
        with ledger.write() as tx:
            yield tx
        ledger.close()
    finally:
        lock.close()


def _listed(settings: Settings) -> list[keys.ApiKey]:
    with Ledger(settings.ledger, read_only=True).read() as tx:
        return keys.listed(tx)

"""`backup` and `restore`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path

import rich_click as click
from rich.progress import Progress

from gateway.cli.console import data_dir_option, err, errors_in_words, out, settings_for
from gateway.config import default_data_dir
from gateway.services import backups


@click.command()
@data_dir_option
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
def backup(data_dir: Path | None, target: Path) -> None:
    """Write ledger, vault (with its git history) and settings to TARGET (.tar.gz); also while the server runs."""
    with errors_in_words():
        settings = settings_for(data_dir)
        with Progress(console=err, transient=True) as progress:
            task = progress.add_task("Backing up", total=None)
            count = backups.backup(settings, target, tell=lambda done: progress.update(task, completed=done))
        out.print(f"{count:,} files of the vault and the ledger are in {target}", markup=False)


@click.command()
@data_dir_option
@click.option(
    "--forgotten-of",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="A data directory that knows what was forgotten since. Default: the one that the backup was made of.",
)
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(data_dir: Path | None, archive: Path, forgotten_of: Path | None) -> None:
    """Unpack a backup into a new data directory. The index is rebuilt at the first start.

    What was forgotten since the backup was made stays forgotten: the tombstones are taken over.
    """
    with errors_in_words():
        target = (data_dir or default_data_dir()).expanduser().resolve()
        done = backups.restore(archive, target, forgotten_of=forgotten_of)
        out.print(f"restored to {target}; its vault was at {done.vault}", markup=False)
        if done.forgotten_of is None:
            out.print("No data directory knows what was forgotten since; name one with --forgotten-of.", markup=False)
        elif done.kept_forgotten:
            out.print(f"{done.kept_forgotten:,} memories were forgotten since, and stay so", markup=False)
        out.print("Next: `memory-gateway serve`, and `memory-gateway key new` for a key, if `admin.key` is lost.")

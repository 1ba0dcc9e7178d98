"""`audit`: verify the hash chain."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path

import rich_click as click

from gateway.cli.console import data_dir_option, errors_in_words, out, settings_for
from gateway.ledger import Ledger
from gateway.ledger import audit as entries


@click.group()
def audit() -> None:
    """Look at the audit."""


@audit.command("verify")
@data_dir_option
def verify(data_dir: Path | None) -> None:
    """Walk the audit's hash chain; exit code 1 where an entry was changed or taken out. Reads only."""
    with errors_in_words():
        settings = settings_for(data_dir)
        with Ledger(settings.ledger, read_only=True).read() as tx:
            broken = entries.verify(tx)
        out.print("the chain is intact" if broken is None else f"entry {broken} does not fit the chain")
        raise SystemExit(0 if broken is None else 1)

"""The command line: `memory-gateway`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import sys

import rich_click as click

from gateway import __version__
from gateway.cli import auditing, backups, checking, importing, keys, mcp, searching, serving
from gateway.cli.console import errors_in_words

click.rich_click.TEXT_MARKUP = "markdown"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memory-gateway")
def cli() -> None:
    """One long-term memory for many agents and people, kept as Markdown in an Obsidian vault."""


for command in (
    serving.init,
    serving.serve,
    serving.doctor,
    importing.import_command,
    checking.rebuild,
    checking.check,
    searching.search,
    keys.key,
    auditing.audit,
    mcp.mcp,
    backups.backup,
    backups.restore,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; a known error is one clear message and exit code 2."""
    with errors_in_words():
        cli(prog_name="memory-gateway")
    sys.exit(0)

"""The command line: `memory-gateway`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import importlib
import sys
from typing import Any

import rich_click as click

from gateway import __version__
from gateway.cli.console import errors_in_words

click.rich_click.TEXT_MARKUP = "markdown"

# Where each command is. A module is imported when its command is used: `mcp` must not wait for LanceDB.
_COMMANDS = {
    "init": "serving:init",
    "serve": "serving:serve",
    "doctor": "serving:doctor",
    "import": "importing:import_command",
    "rebuild": "checking:rebuild",
    "check": "checking:check",
    "review": "reviewing:review",
    "sync": "syncing:sync",
    "consolidate": "consolidating:consolidate",
    "search": "searching:search",
    "sandbox": "sandboxing:sandbox",
    "forget": "forgetting:forget",
    "log": "history:log",
    "diff": "history:diff",
    "revert": "history:revert",
    "key": "keys:key",
    "audit": "auditing:audit",
    "mcp": "mcp:mcp",
    "backup": "backups:backup",
    "restore": "backups:restore",
}


class LazyCommands(click.RichGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        found: Any = getattr(importlib.import_module(f"gateway.cli.{module}"), attribute)
        return found


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memory-gateway")
def cli() -> None:
    """One long-term memory for many agents and people, kept as Markdown in an Obsidian vault."""


def main() -> None:
    """Run the command line; a known error is one clear message and exit code 2."""
    with errors_in_words():
        cli(prog_name="memory-gateway")
    sys.exit(0)

"""`mcp`: a stdio MCP server that talks to the running gateway."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import os
from pathlib import Path

import rich_click as click

from gateway.cli.console import data_dir_option, errors_in_words
from gateway.config import load_settings
from gateway.errors import BadSettings, Unavailable
from gateway.vault.lock import running_at


@click.command()
@data_dir_option
@click.option("--url", default=None, help="The gateway's base URL. Default: the server on this data directory.")
@click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="The file that holds the API key. Default: $MEMORY_GATEWAY_KEY, else agent.key of the data directory.",
)
def mcp(data_dir: Path | None, url: str | None, key_file: Path | None) -> None:
    """Serve MCP on standard input and output, for hosts that start a process. Needs a running gateway."""
    from gateway.mcp.stdio import serve_stdio

    with errors_in_words():
        key = os.environ.pop("MEMORY_GATEWAY_KEY", None)
        settings = load_settings(data_dir=data_dir)
        address = url or running_at(settings.data_dir)
        if address is None:
            raise Unavailable("No gateway is running.", advice="Start `memory-gateway serve`, or name one with --url.")
        chosen = key_file or settings.data_dir / "agent.key"
        if key is None or key_file is not None:
            try:
                key = chosen.read_text(encoding="ascii").strip()
            except OSError:
                raise BadSettings("There is no key to use.", file=str(chosen), advice="Give --key-file.") from None
        serve_stdio(address, key)

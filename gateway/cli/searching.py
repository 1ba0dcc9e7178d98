"""`search`: what an agent would find, in the terminal."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import open_gateway
from gateway.cli.console import data_dir_option, errors_in_words, out, running_server, settings_for, shown
from gateway.config import Settings
from gateway.services import search as searches
from gateway.services.requests import Search


@click.command()
@data_dir_option
@click.option("--user", "user_id", default=None, help="Whose memories. Default: the vault's owner.")
@click.option("--limit", type=click.IntRange(1, 200), default=5, show_default=True)
@click.option("--mode", type=click.Choice(["hybrid", "fts", "vector"]), default="hybrid", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
@click.argument("query")
def search(data_dir: Path | None, *, user_id: str | None, limit: int, mode: Any, as_json: bool, query: str) -> None:
    """Find memories."""
    with errors_in_words():
        settings = settings_for(data_dir)
        asked = {"query": query, "user_id": user_id or settings.vault.owner, "limit": limit, "mode": mode}
        wanted = Search.model_validate(asked)
        answer = _ask(settings, wanted)
        if as_json:
            out.print_json(json.dumps(answer, ensure_ascii=False))
            return
        for one in answer["results"]:
            memory = one["memory"]
            out.print(shown(f"{one['score']:.3f}  {memory['title']}  ({memory['path']})"), markup=False)
            out.print(shown(f"       {memory['content'].strip()[:300]}"), markup=False)
        out.print(
            f"{answer['total']} found" + (f"; without: {', '.join(answer['degraded'])}" if answer["degraded"] else "")
        )


def _ask(settings: Settings, wanted: Search) -> dict[str, Any]:
    server = running_server(settings)
    if server is not None:
        return server.call("POST", "/v1/memory/search", json=wanted.model_dump(mode="json", exclude_none=True))
    gateway = open_gateway(settings)
    try:
        gateway.settle()
        return asdict(searches.search(LOCAL_OPERATOR, gateway.parts, gateway.query_vectors, wanted))
    finally:
        gateway.close()

"""`sync`: the vault and its git remote, now."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from gateway.access.principal import LOCAL_OPERATOR
from gateway.cli.console import data_dir_option, errors_in_words, out, running_server, settings_for, shown
from gateway.config import Settings

# A fetch and a push may each take `git.sync_timeout_seconds`, and are repeated where the remote moves meanwhile.
_ROUNDS = 12


@click.command()
@data_dir_option
@click.option(
    "--accept-rewrite", is_flag=True, help="The remote's history was rewritten, and that is right: merge it with ours."
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
def sync(data_dir: Path | None, accept_rewrite: bool, as_json: bool) -> None:
    """Sync the vault with its git remote now: fetch, merge, carry out what was decided in git, push."""
    with errors_in_words():
        done = _sync(settings_for(data_dir), accept_rewrite)
        if as_json:
            out.print_json(json.dumps(done, ensure_ascii=False))
            return
        out.print(shown(_in_words(done)), markup=False)
        for path in done["conflicts"]:
            out.print(shown(f"  both sides changed: {path} holds the other one; merge it into its note"), markup=False)


def _sync(settings: Settings, accept_rewrite: bool) -> dict[str, Any]:
    server = running_server(settings)
    if server is not None:
        body = {"accept_rewrite": accept_rewrite}
        return server.call("POST", "/v1/sync", json=body, seconds=_ROUNDS * settings.git.sync_timeout_seconds)
    from gateway.bootstrap import open_gateway  # late: beside a running server nothing waits for the index's libraries
    from gateway.services import sync as syncs

    gateway = open_gateway(settings)
    try:
        done = syncs.sync(LOCAL_OPERATOR, gateway.parts, gateway.branches, accept_rewrite=accept_rewrite)
        gateway.settle()
        return asdict(done)
    finally:
        gateway.close()


def _in_words(done: dict[str, Any]) -> str:
    did = [word for word in ("merged", "pushed") if done[word]]
    if done["decided"]:
        did.append(f"{done['decided']:,} drafts decided")
    what = ", ".join(did) or "nothing to do"
    where = f"synced with {done['remote']}" if done["remote"] else "no remote is set (`git.remote`); looked at branches"
    return f"{where}: {what}; the vault is at {(done['head'] or 'no commit')[:10]}"

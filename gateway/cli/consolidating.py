"""`consolidate`: one pass over what changed, now."""

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

_SPARE_SECONDS = 60.0


@click.command()
@data_dir_option
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing, ask no language model.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
def consolidate(data_dir: Path | None, dry_run: bool, as_json: bool) -> None:
    """Run one pass of consolidation: extract, score, merge, show contradictions, archive, propose for profiles."""
    with errors_in_words():
        done = _consolidate(settings_for(data_dir), dry_run)
        if as_json:
            out.print_json(json.dumps(done, ensure_ascii=False))
            return
        for line in _in_words(done):
            out.print(shown(line), markup=False)


def _consolidate(settings: Settings, dry_run: bool) -> dict[str, Any]:
    server = running_server(settings)
    seconds = settings.consolidation.seconds_per_pass + _SPARE_SECONDS
    if server is not None:
        return server.call("POST", "/v1/consolidate", json={"dry_run": dry_run}, seconds=seconds)
    from gateway.bootstrap import open_gateway  # late: beside a running server nothing waits for the index's libraries

    gateway = open_gateway(settings)
    try:
        if not dry_run:
            gateway.settle()
            gateway.parts.feed.fill_vectors()
        done = gateway.consolidation.consolidate(LOCAL_OPERATOR, dry_run=dry_run)
        if not dry_run:
            gateway.settle()
        return asdict(done)
    finally:
        gateway.close()


def _in_words(done: dict[str, Any]) -> list[str]:
    head = "would have " if done["dry_run"] else ""
    lines = [
        f"{done['items']:,} items looked at in {done['seconds']:.1f} s; {done['model_calls']:,} model calls; "
        f"{done['waiting']:,} wait",
        f"{head}extracted {done['extracted']:,} candidates",
    ]
    lines += [f"  score {one['factors']['score']:.2f}  {one['content']}" for one in done["scored"]]
    lines += [f"{head}merged {', '.join(one['others'])} into {one['leader']}" for one in done["merged"]]
    lines += [f"{head}added evidence to {one['leader']} ({one['reason']})" for one in done["supported"]]
    lines += [f"{head}written {one}" for one in done["promoted"]]
    lines += [f"{head}proposed: {one['proposal']} in {one['namespace']}: {one['why']}" for one in done["proposed"]]
    lines += [f"{head}archived {one['id']}: {one['reason']}" for one in done["archived"]]
    lines += [f"faded: {one['id']} {one['before']:.2f} -> {one['after']:.2f}" for one in done["faded"]]
    lines += [f"left {one['kind']} {one['key']}: {one['reason']}" for one in done["skipped"]]
    return lines + [f"failed: {one['kind']} {one['key']}: {one['reason']}" for one in done["failed"]]

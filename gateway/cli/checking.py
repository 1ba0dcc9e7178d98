"""`check` and `rebuild`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.progress import Progress

from gateway.access.principal import LOCAL_OPERATOR
from gateway.cli.console import (
    RunningServer,
    data_dir_option,
    err,
    errors_in_words,
    out,
    running_server,
    settings_for,
    shown,
)
from gateway.services.note_check import NoteFinding, check_notes
from gateway.vault.lock import is_locked

if TYPE_CHECKING:
    from gateway.services.check import CheckReport


@click.command()
@data_dir_option
@click.option(
    "--notes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Only read the notes of this vault, without data directory, ledger and index: a check for pull requests.",
)
@click.option("--since", default=None, metavar="REV", help="With --notes: only what differs from this git revision.")
@click.option("--owner", default="owner", show_default=True, help="With --notes: whose notes `Memories/` holds.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--github", is_flag=True, help="With --notes: print findings as annotations of GitHub Actions.")
def check(data_dir: Path | None, *, notes: Path | None, as_json: bool, **given: Any) -> None:
    """Compare vault, ledger and index. Exit code 1 and a list where they disagree; reads only."""
    if notes is None and (given["since"] is not None or given["github"]):
        raise click.UsageError("--since and --github need --notes.")
    with errors_in_words():
        if notes is not None:
            _check_notes(
                notes,
                since=given["since"],
                owner=given["owner"],
                shape="json" if as_json else "github" if given["github"] else "text",
            )
            return
        from gateway.services import check as checks  # late: a check of notes needs no index

        settings = settings_for(data_dir)
        report = checks.check(settings, patient=is_locked(settings.data_dir))
        if as_json:
            out.print_json(json.dumps(asdict(report), ensure_ascii=False))
        else:
            _tell(report)
        raise SystemExit(1 if report.findings else 0)


@click.command()
@data_dir_option
def rebuild(data_dir: Path | None) -> None:
    """Build the index anew from the vault. The old one serves until the new one is complete; vectors are reused."""
    with errors_in_words():
        settings = settings_for(data_dir)
        server = running_server(settings)
        if server is not None:
            _rebuild_remotely(server)
            return
        from gateway.bootstrap import open_gateway
        from gateway.services import rebuild as rebuilds

        gateway = open_gateway(settings)
        try:
            with Progress(console=err, transient=True) as progress:
                task = progress.add_task("Rebuilding", total=None)
                done = rebuilds.rebuild(
                    LOCAL_OPERATOR,
                    gateway.parts,
                    tell=lambda state: progress.update(task, completed=state.done, total=state.total),
                )
            out.print(f"rebuilt from {done.total:,} notes")
        finally:
            gateway.close()


def _rebuild_remotely(server: RunningServer) -> None:
    before = server.call("POST", "/v1/rebuild")["generation"]
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("Rebuilding", total=None)
        while True:
            state = server.call("GET", "/v1/health")["index"]
            running = state["rebuild"]
            if running is None:
                break
            progress.update(task, completed=running["done"], total=running["total"] or None)
            time.sleep(0.2)
    if state["generation"] == before:
        err.print("[bold red]The rebuild failed; the old index serves on. The server's log says why.[/]")
        raise SystemExit(1)
    out.print(f"rebuilt; generation {state['generation']} serves")


def _check_notes(notes: Path, *, since: str | None, owner: str, shape: str) -> None:
    report = check_notes(notes, owner=owner, since=since)
    if shape == "json":
        out.print_json(json.dumps(asdict(report), ensure_ascii=False))
        raise SystemExit(1 if report.findings else 0)
    for one in report.findings:
        if shape == "github":
            out.print(_annotation(notes, one), markup=False)
        else:
            where = f"{one.path}:{one.line}" if one.line else one.path
            out.print(shown(f"{where}: {one.message} {one.advice} [{one.kind}]").replace("\n", " "), markup=False)
    out.print(_verdict(report.notes, len(report.findings)))
    raise SystemExit(1 if report.findings else 0)


def _annotation(notes: Path, one: NoteFinding) -> str:
    """A workflow command of GitHub Actions, escaped as its toolkit does; the file as seen from the job's folder."""
    file = os.path.relpath(notes / one.path)
    given = {"file": file, "line": str(one.line) if one.line else "", "title": one.kind}
    told = ",".join(f"{name}={_property(value)}" for name, value in given.items() if value)
    return f"::error {told}::{_data(f'{one.message} {one.advice}')}"


def _data(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")


def _tell(report: CheckReport) -> None:
    for finding in report.findings:
        out.print(f"{finding.where}: {finding.what}", markup=False)
    for finding in report.problems:
        out.print(f"note: {finding.where}: {finding.what}", markup=False)
    out.print(_verdict(report.notes, len(report.findings)))


def _verdict(notes: int, findings: int) -> str:
    found = f"{findings:,} finding{'' if findings == 1 else 's'}" if findings else "clean"
    return f"{notes:,} notes checked: {found}"

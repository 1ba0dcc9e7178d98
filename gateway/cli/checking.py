"""`check` and `rebuild`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import time
from pathlib import Path

import rich_click as click
from rich.progress import Progress

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import open_gateway
from gateway.cli.console import RunningServer, data_dir_option, err, errors_in_words, out, running_server, settings_for
from gateway.services import check as checks
from gateway.services import rebuild as rebuilds
from gateway.services.check import CheckReport
from gateway.vault.lock import is_locked


@click.command()
@data_dir_option
@click.option(
    "--vault",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Only read this vault's notes, without ledger and index: a linter for pull requests.",
)
@click.option("--owner", default="owner", show_default=True, help="With --vault: whose notes `Memories/` holds.")
def check(data_dir: Path | None, vault: Path | None, owner: str) -> None:
    """Compare vault, ledger and index. Exit code 1 and a list where they disagree; reads only."""
    with errors_in_words():
        if vault is not None:
            report = checks.lint(vault, owner=owner)
        else:
            settings = settings_for(data_dir)
            report = checks.check(settings, patient=is_locked(settings.data_dir))
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


def _tell(report: CheckReport) -> None:
    for finding in report.findings:
        out.print(f"{finding.where}: {finding.what}", markup=False)
    for finding in report.problems:
        out.print(f"note: {finding.where}: {finding.what}", markup=False)
    verdict = f"{len(report.findings):,} findings" if report.findings else "clean"
    out.print(f"{report.notes:,} notes checked: {verdict}")

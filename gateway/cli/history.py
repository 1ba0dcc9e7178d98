"""`log`, `diff`, `revert`: the history of one memory, in the terminal."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import rich_click as click

from gateway.access.principal import LOCAL_OPERATOR
from gateway.cli.console import (
    RunningServer,
    data_dir_option,
    errors_in_words,
    out,
    running_server,
    settings_for,
    shown,
)
from gateway.config import Settings

if TYPE_CHECKING:  # beside a running server nothing waits for the index's libraries
    from gateway.bootstrap import Gateway

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@data_dir_option
@_JSON
@click.argument("memory_id")
def log(data_dir: Path | None, as_json: bool, memory_id: str) -> None:
    """Every version of a memory, newest first: number, commit, time, what sort of author, who, and where."""
    with errors_in_words(), _source(settings_for(data_dir)) as source:
        answer = source.history(memory_id)
        if as_json:
            _print_json(answer)
            return
        for one in answer["versions"]:
            number = "-" if one["version"] is None else str(one["version"])
            commit = (one["commit"] or "not in git")[:10]
            line = (
                f"{number:>4}  {commit}  {one['at'][:19]}  {one['kind']:<7}  {one['author']}  {one['op']} {one['path']}"
            )
            out.print(shown(line), markup=False)


@click.command()
@data_dir_option
@_JSON
@click.argument("memory_id")
@click.argument("from", required=False)
@click.argument("to", required=False)
def diff(data_dir: Path | None, *, as_json: bool, memory_id: str, **ends: str | None) -> None:
    """What changed between two versions of a memory, named by number or commit; by default between the last two."""
    with errors_in_words(), _source(settings_for(data_dir)) as source:
        answer = source.difference(memory_id, ends["from"], ends["to"])
        if as_json:
            _print_json(answer)
            return
        for line in answer["diff"].splitlines():
            heading = line.startswith(("+++ ", "--- "))
            out.print(shown(line), markup=False, style="bold" if heading else _STYLES.get(line[:1], ""))


@click.command()
@data_dir_option
@_JSON
@click.argument("memory_id")
@click.argument("to")
def revert(data_dir: Path | None, as_json: bool, memory_id: str, to: str) -> None:
    """Make a memory say again what it said in a version, named by number or commit. All versions in between stay."""
    with errors_in_words(), _source(settings_for(data_dir)) as source:
        before, answer = source.revert(memory_id, to)
        if as_json:
            _print_json(answer)
        elif "version" not in answer:
            out.print("a draft waits for a person's decision; nothing was written")
        elif answer["version"] == before:
            out.print(f"version {before} says that already; nothing was written")
        else:
            out.print(f"version {answer['version']} says again what {shown(to)} said", markup=False)


class _Server:
    """A running server."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def history(self, memory_id: str) -> dict[str, Any]:
        return self._server.call("GET", f"{_path(memory_id)}/history")

    def difference(self, memory_id: str, start: str | None, end: str | None) -> dict[str, Any]:
        asked = {name: value for name, value in (("from", start), ("to", end)) if value is not None}
        return self._server.call("GET", f"{_path(memory_id)}/diff?{urlencode(asked)}")

    def revert(self, memory_id: str, to: str) -> tuple[int, dict[str, Any]]:
        present = self._server.call("GET", _path(memory_id))
        headers = {"If-Match": f'"{present["etag"]}"'}
        return present["version"], self._server.call(
            "POST", f"{_path(memory_id)}/revert", json={"to": to}, headers=headers
        )


class _Directory:
    """The data directory itself."""

    def __init__(self, gateway: Gateway) -> None:
        self._parts = gateway.parts

    def history(self, memory_id: str) -> dict[str, Any]:
        from gateway.services import history as histories

        found = histories.history(LOCAL_OPERATOR, self._parts, memory_id, with_diff=False)
        return {"id": memory_id, "versions": [asdict(one) for one in found]}

    def difference(self, memory_id: str, start: str | None, end: str | None) -> dict[str, Any]:
        from gateway.services import history as histories

        found = histories.changes_between(LOCAL_OPERATOR, self._parts, memory_id, start, end)
        first = found["from"]
        return dict(found) | {"from": asdict(first) if first else None, "to": asdict(found["to"])}

    def revert(self, memory_id: str, to: str) -> tuple[int, dict[str, Any]]:
        from gateway.services import history as histories
        from gateway.services import memories
        from gateway.services.requests import Precondition, Revert

        present = memories.get(LOCAL_OPERATOR, self._parts, memory_id)
        based_on = Precondition((present.etag,))
        done: Any = histories.revert(
            LOCAL_OPERATOR, self._parts, memory_id, Revert.model_validate({"to": to}), based_on
        )
        return present.version, asdict(done)


@contextmanager
def _source(settings: Settings) -> Generator[_Server | _Directory]:
    server = running_server(settings)
    if server is not None:
        yield _Server(server)
        return
    from gateway.bootstrap import open_gateway

    gateway = open_gateway(settings)
    try:
        gateway.settle()
        yield _Directory(gateway)
    finally:
        gateway.close()


def _path(memory_id: str) -> str:
    return f"/v1/memory/{quote(memory_id, safe='')}"


def _print_json(answer: dict[str, Any]) -> None:
    out.print_json(json.dumps(answer, ensure_ascii=False))

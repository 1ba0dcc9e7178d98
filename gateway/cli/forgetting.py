"""`forget`: forget a memory or a whole scope, purge what git still has, or have a forgotten text back."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import rich_click as click

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
from gateway.config import Settings
from gateway.errors import Invalid

_SCOPES = ("user", "agent", "workspace", "session")
_POLL_SECONDS = 0.3


@click.command()
@data_dir_option
@click.option("--keep-duplicates", is_flag=True, help="Forget this memory only, though others there say the same.")
@click.option("--all-of", default=None, metavar="SCOPE:ID", help="Clear a whole scope: `user:tom`, `agent:hermes`, …")
@click.option("--directives", is_flag=True, help="With --all-of: standing directives too.")
@click.option("--purge", is_flag=True, help="Also take it out of git's history; alone: all that was forgotten so far.")
@click.option("--despite-remote", is_flag=True, help="With --purge: replace the history of remotes as well.")
@click.option(
    "--undo", default=None, metavar="FILE", help="Have a forgotten text back whose FILE is in the vault again."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.argument("memory_id", required=False)
def forget(data_dir: Path | None, *, memory_id: str | None, as_json: bool, yes: bool, **how: Any) -> None:
    """Forget MEMORY_ID everywhere, and say of each place what became of it there."""
    with errors_in_words():
        settings = settings_for(data_dir)
        if [memory_id is not None, how["all_of"] is not None, how["undo"] is not None].count(True) > 1:
            raise Invalid("Give a memory, --all-of or --undo: one of them.")
        if not any((memory_id, how["all_of"], how["undo"], how["purge"])):
            raise Invalid("Nothing to forget.", advice="Give a memory's id, --all-of, --purge or --undo.")
        _confirm(memory_id, how, yes=yes)
        with _gateway(settings) as gateway:
            answer = _carry_out(gateway, memory_id, how)
        if as_json:
            out.print_json(json.dumps(answer, ensure_ascii=False))
        else:
            _tell(answer)
        # Without a server nobody goes on with a job that met trouble.
        if any(answer[name]["status"] != "done" for name in ("cleared", "purged") if name in answer):
            raise SystemExit(1)


class _Forgetting(Protocol):
    """What `forget` asks of a gateway, whether a server runs or not."""

    def memory(self, memory_id: str, duplicates: str) -> dict[str, Any]: ...

    def undo(self, path: str) -> dict[str, Any]: ...

    def clear(self, body: dict[str, Any]) -> dict[str, Any]: ...

    def purge(self, body: dict[str, Any]) -> dict[str, Any]: ...


class _Remote:
    """A running server."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def memory(self, memory_id: str, duplicates: str) -> dict[str, Any]:
        path = f"/v1/memory/{quote(memory_id, safe='')}?duplicates={duplicates}"
        return self._server.call("DELETE", path, headers={"If-Match": "*"})

    def undo(self, path: str) -> dict[str, Any]:
        return self._server.call("POST", "/v1/problems/restore", json={"path": path})

    def clear(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._followed(self._server.call("POST", "/v1/clear", json=body)["job_id"])

    def purge(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._followed(self._server.call("POST", "/v1/purge", json=body)["job_id"])

    def _followed(self, job_id: str) -> dict[str, Any]:
        with err.status("Working") as status:
            while True:
                job = self._server.call("GET", f"/v1/jobs/{job_id}")
                if job["status"] in ("done", "failed"):
                    return job
                status.update(shown(f"Working; tried again: {job['error']}" if job["error"] else "Working"))
                time.sleep(_POLL_SECONDS)


class _Local:
    """The data directory, opened for this command."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._parts = gateway.parts

    def memory(self, memory_id: str, duplicates: str) -> dict[str, Any]:
        from gateway.services import forgetting
        from gateway.services.requests import Precondition

        anyhow = Precondition(("*",), None)
        forgetting.forget(LOCAL_OPERATOR, self._parts, memory_id, anyhow, alone=duplicates == "keep")
        self._gateway.settle()
        return asdict(forgetting.erasure_of(LOCAL_OPERATOR, self._parts, memory_id))

    def undo(self, path: str) -> dict[str, Any]:
        from gateway.services import forgetting

        return asdict(forgetting.undo(LOCAL_OPERATOR, self._parts, path))

    def clear(self, body: dict[str, Any]) -> dict[str, Any]:
        from gateway.services import clearing

        return self._done(clearing.order(LOCAL_OPERATOR, self._parts, clearing.ClearRequest.model_validate(body)).id)

    def purge(self, body: dict[str, Any]) -> dict[str, Any]:
        from gateway.services import purging

        return self._done(purging.order(LOCAL_OPERATOR, self._parts, purging.PurgeRequest.model_validate(body)).id)

    def _done(self, job_id: str) -> dict[str, Any]:
        from gateway.services import jobs as following
        from gateway.workers import jobs

        with err.status("Working"):
            jobs.run(self._parts)
            self._gateway.settle()
        return asdict(following.get(LOCAL_OPERATOR, self._parts, job_id))


@contextmanager
def _gateway(settings: Settings) -> Generator[_Forgetting]:
    server = running_server(settings)
    if server is not None:
        yield _Remote(server)
        return
    from gateway.bootstrap import open_gateway  # late: beside a running server nothing waits for the index's libraries

    gateway = open_gateway(settings)
    try:
        gateway.settle()
        yield _Local(gateway)
    finally:
        gateway.close()


def _carry_out(gateway: _Forgetting, memory_id: str | None, how: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if how["undo"] is not None:
        answer["restored"] = gateway.undo(how["undo"])
    if memory_id is not None:
        answer["forgotten"] = gateway.memory(memory_id, "keep" if how["keep_duplicates"] else "forget")
    if how["all_of"] is not None:
        scope, _, identifier = how["all_of"].partition(":")
        if scope not in _SCOPES or not identifier:
            raise Invalid(
                "--all-of takes a scope and an id.", field="all-of", advice=f"One of {_SCOPES}, e.g. user:tom."
            )
        answer["cleared"] = gateway.clear({"scope": scope, "id": identifier, "include_directives": how["directives"]})
    if how["purge"]:
        only = {"memory_ids": [memory_id]} if memory_id is not None else {}
        answer["purged"] = gateway.purge(only | {"despite_remote": how["despite_remote"]})
    return answer


def _confirm(memory_id: str | None, how: dict[str, Any], *, yes: bool) -> None:
    """Whole scopes and git's history are not taken away by a slip."""
    if yes or not (how["all_of"] or how["purge"]):
        return
    what = f"all memories of {how['all_of']}" if how["all_of"] else "what was forgotten, from git's whole history"
    click.confirm(f"This removes {memory_id or what} for good. Go on?", abort=True, err=True)


def _tell(answer: dict[str, Any]) -> None:
    if restored := answer.get("restored"):
        out.print(shown(f"{restored['id']} is recalled again ({restored['path']})"), markup=False)
    if forgotten := answer.get("forgotten"):
        for one in forgotten.get("erasure", []):
            out.print(f"{one['place']:<14} {one['state']}", markup=False)
    for name in ("cleared", "purged"):
        if job := answer.get(name):
            reason = f": {job['error']}" if job["error"] else ""
            out.print(
                shown(f"{name}: {job['status']}, {job['done']} of {job['total'] or 0} memories{reason}"), markup=False
            )

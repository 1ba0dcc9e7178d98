"""`sandbox sync`: brings a directory that an agent works in and the vault to the same agent files."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from gateway.access.principal import LOCAL_OPERATOR
from gateway.adapters.sandbox import read_sandbox, write_sandbox
from gateway.cli.console import data_dir_option, errors_in_words, out, running_server, settings_for, shown
from gateway.config import Settings

_MODES = ["round", "new_session", "new_user", "force"]


@click.group()
def sandbox() -> None:
    """Sandboxes of agents."""


@sandbox.command("sync")
@data_dir_option
@click.option("--user", "user_id", default=None, help="Whose agent files. Default: the vault's owner.")
@click.option("--mode", type=click.Choice(_MODES), default="round", show_default=True, help="On which occasion.")
@click.option("--id", "sandbox_id", default=None, help="Name of the sandbox. Default: made from the directory's path.")
@click.option("--clean", is_flag=True, help="The agent wrote nothing since the last round.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def sync(
    data_dir: Path | None, *, directory: Path, user_id: str | None, sandbox_id: str | None, as_json: bool, **how: Any
) -> None:
    """Sync USER.md, SOUL.md and MEMORY.md of DIRECTORY with the vault; AGENTS.md comes from the platform."""
    with errors_in_words():
        settings = settings_for(data_dir)
        root = directory.resolve()
        files = read_sandbox(root, max_bytes=settings.vault.max_note_bytes)
        body = {"files": files, "mode": how["mode"], "dirty": not how["clean"]}
        name = sandbox_id or f"dir-{hashlib.sha256(str(root).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
        answer = _ask(settings, name, body | ({"user_id": user_id} if user_id is not None else {}))
        left = write_sandbox(root, answer["files"], files)
        if as_json:
            out.print_json(json.dumps(answer | {"left": left}, ensure_ascii=False))
            return
        for one in answer["files"]:
            out.print(f"{one}  " + ("changed meanwhile, left as it is" if one in left else "written"), markup=False)
        for one in answer["written_back"]:
            out.print(f"{one}  taken into the vault", markup=False)
        for one in answer["reviews"]:
            out.print(f"{one['name']}  waits for a person: {one['review']['id']}", markup=False)
        for one in answer["conflicts"]:
            draft = f" ({one['review']['path']})" if one["review"] else ""
            out.print(shown(f"{one['name']}  not taken: {one['reason']}{draft}"), markup=False)
        if not any(answer[name] for name in ("files", "written_back", "reviews", "conflicts")):
            out.print("nothing to do")


def _ask(settings: Settings, sandbox_id: str, body: dict[str, Any]) -> dict[str, Any]:
    server = running_server(settings)
    if server is not None:
        return server.call("POST", f"/v1/sandboxes/{sandbox_id}/sync", json=body)
    from gateway.bootstrap import open_gateway  # late: beside a running server nothing waits for the index's libraries
    from gateway.services import sandboxes

    gateway = open_gateway(settings)
    try:
        gateway.settle()
        wanted = sandboxes.SandboxSync.model_validate(body)
        answer = asdict(sandboxes.sync(LOCAL_OPERATOR, gateway.parts, sandbox_id, wanted))
        gateway.settle()
        return answer
    finally:
        gateway.close()

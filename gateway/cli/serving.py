"""`init`, `serve`, `doctor`."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import platform
import shutil
from pathlib import Path

import rich_click as click

from gateway import __version__, asgi, log
from gateway.bootstrap import Gateway, open_gateway
from gateway.cli.console import data_dir_option, errors_in_words, out, settings_for, with_known_vault
from gateway.config import Settings, load_settings
from gateway.errors import GatewayError
from gateway.importer.places import Places
from gateway.notes.secrets import mask
from gateway.vault.git import Git
from gateway.vault.lock import is_locked
from gateway.vault.scan import walk

_LEAST_FREE = 500 * 1024 * 1024


@click.command()
@data_dir_option
@click.option(
    "--vault", "vault_path", type=click.Path(file_okay=False, path_type=Path), help="An existing vault to use."
)
def init(data_dir: Path | None, vault_path: Path | None) -> None:
    """Make the data directory, the vault and the first key, without serving."""
    with errors_in_words():
        settings = settings_for(data_dir, vault_path=vault_path)
        gateway = open_gateway(settings)
        gateway.settle()
        gateway.close()
        out.print(f"The vault is at {settings.vault_root}")
        _say_key(gateway, settings)


@click.command()
@data_dir_option
@click.option("--host", default=None, help="Address to listen on. Default 127.0.0.1.")
@click.option("--port", type=int, default=None, help="Port to listen on. Default 8765; 0 takes a free one.")
@click.option(
    "--vault",
    "vault_path",
    type=click.Path(file_okay=False, path_type=Path),
    help="The vault. Default: `vault` in the data directory, or the one it was served with before.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default=None)
def serve(
    data_dir: Path | None, host: str | None, port: int | None, vault_path: Path | None, log_level: str | None
) -> None:
    """Serve the REST API and keep vault, ledger and index in step. The first start makes everything that is missing."""
    with errors_in_words():
        given = {"host": host, "port": port, "vault_path": vault_path, "log_level": log_level}
        settings = with_known_vault(load_settings(data_dir=data_dir, **given))
        log.configure(level=settings.log_level, shape=settings.log_format, mask=mask)
        gateway = open_gateway(settings)
        asgi.serve(gateway, ready=lambda url: _welcome(gateway, settings, url))


@click.command()
@data_dir_option
def doctor(data_dir: Path | None) -> None:
    """Look at everything the gateway needs, change nothing, and say what to do."""
    with errors_in_words():
        settings = settings_for(data_dir)
        worst = 0
        for good, text in _examine(settings):
            out.print(f"{'[green]ok[/]  ' if good else '[red]!![/]  '} {text}")
            worst |= not good
        raise SystemExit(int(worst))


def _welcome(gateway: Gateway, settings: Settings, url: str) -> None:
    out.print(f"\nMemory Gateway {__version__} serves {url}")
    out.print(f"  Vault (open it in Obsidian): {settings.vault_root}")
    _say_key(gateway, settings)
    out.print("  Write a memory:")
    out.print(f"    curl -s {url}/v1/memory -H \"Authorization: Bearer $(cat '{settings.admin_key_path}')\" \\")
    out.print("      -H 'Content-Type: application/json' -H 'Prefer: wait=5' \\")
    out.print('      -d \'{"content": "Tea is served at four.", "summary": "Tea time"}\'')
    out.print("  Find it:")
    out.print(f"    curl -s {url}/v1/memory/search -H \"Authorization: Bearer $(cat '{settings.admin_key_path}')\" \\")
    out.print("      -H 'Content-Type: application/json' -d '{\"query\": \"tea\"}'")
    agent_key = settings.data_dir / "agent.key"
    if agent_key.exists():
        out.print(f"  For an agent (REST, or MCP at {url}/mcp): the key in {agent_key}")
    out.print(f"  API documentation: {url}/schema\n  Stop: Ctrl-C\n")
    if gateway.parts.embedding_note:
        out.print(f"  {gateway.parts.embedding_note}")


def _say_key(gateway: Gateway, settings: Settings) -> None:
    if gateway.first_key is not None:
        out.print(f"  Admin key, shown once: {gateway.first_key}")
    out.print(f"  Admin key file: {settings.admin_key_path}")


def _examine(settings: Settings) -> list[tuple[bool, str]]:
    found = [(True, f"Python {platform.python_version()}, memory-gateway {__version__}")]
    version = Git(Path.cwd()).text("version") if shutil.which("git") else None
    found.append((version is not None, version or "git is not installed; install it"))
    found.append((settings.data_dir.is_dir(), f"data directory {settings.data_dir}"))
    if settings.data_dir.is_dir():
        free = shutil.disk_usage(settings.data_dir).free
        found.append((free > _LEAST_FREE, f"{free // 2**20:,} MiB free"))
        mode = settings.admin_key_path.stat().st_mode & 0o777 if settings.admin_key_path.exists() else None
        if mode is not None:
            found.append((mode == 0o600, f"{settings.admin_key_path} has mode {mode:o} (wanted: 600)"))
        found.append((True, "a server is running" if is_locked(settings.data_dir) else "no server is running"))
    found.append(_vault(settings))
    found.append(_watches())
    found.append((True, f"embedding provider: {settings.embedding.provider}"))
    return found


def _vault(settings: Settings) -> tuple[bool, str]:
    try:
        snapshot = walk(settings.vault_root)
    except GatewayError as error:
        return False, f"vault: {error}"
    places = Places(settings.vault.owner, settings.vault.sources)
    notes = sum(places.place_of(path) is not None for path in snapshot.files)
    unreadable = f", unreadable folders: {', '.join(snapshot.unreadable)}" if snapshot.unreadable else ""
    return not snapshot.unreadable, f"vault {settings.vault_root}: {notes:,} notes of memories{unreadable}"


def _watches() -> tuple[bool, str]:
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    if not limit.exists():
        return True, "file watching: no inotify here"
    number = int(limit.read_text(encoding="ascii"))
    return (
        number >= 8_192,
        f"inotify watches: {number:,} (raise fs.inotify.max_user_watches if the vault has more folders)",
    )

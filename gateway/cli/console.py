"""What all commands share: options, the console, errors in words, a running server to talk to."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import rich_click as click
from rich.console import Console

from gateway import log
from gateway.config import Settings, load_settings
from gateway.errors import Busy, GatewayError, Unavailable
from gateway.notes.secrets import mask
from gateway.vault.lock import is_locked, running_at

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_F = TypeVar("_F", bound=Callable[..., Any])


def data_dir_option(function: _F) -> _F:
    """`--data-dir`, for every command."""
    option = click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=None,
        help="The data directory. Default: MEMORY_GATEWAY_DATA_DIR, else the platform's data home.",
    )
    return option(function)


def settings_for(data_dir: Path | None, **given: Any) -> Settings:
    """The settings, with logging set up as they say (warnings and errors only, except for the server)."""
    settings = with_known_vault(load_settings(data_dir=data_dir, **given))
    log.configure(level="warning", shape=settings.log_format, mask=mask)
    return settings


def with_known_vault(settings: Settings) -> Settings:
    """The settings with the vault that this data directory was last served with, where they name none themselves."""
    file = settings.data_dir / "ledger.db"
    if settings.vault_path is not None or settings.ledger_url is not None or not file.is_file():
        return settings
    from gateway.ledger import Ledger, meta  # late: a command that only talks to a server needs no database

    ledger = Ledger(settings.ledger, read_only=True)
    try:
        with ledger.read() as tx:
            known = meta.get(tx, meta.VAULT_ROOT)
    except Unavailable:
        return settings
    finally:
        ledger.close()
    return settings if known is None else settings.model_copy(update={"vault_path": Path(known)})


def shown(text: str) -> str:
    """Text of a note as a terminal may show it: signs that move the cursor or turn the direction are escaped."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)


@contextmanager
def errors_in_words() -> Generator[None]:
    """A known error becomes one message on standard error and exit code 2."""
    try:
        yield
    except GatewayError as error:
        tell(error)
        sys.exit(2)


def tell(error: GatewayError) -> None:
    """Say on standard error what is wrong, and what to do."""
    err.print(f"[bold red]{error.title}.[/] {_escaped(error.detail)}")
    for value in (error.file, error.advice):
        if value:
            err.print(f"  {_escaped(value)}")


class RunningServer:
    """The server that holds the data directory, spoken to over HTTP with the admin key."""

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False)

    def call(
        self, method: str, path: str, *, json: Any = None, headers: dict[str, str] | None = None, seconds: float = 120
    ) -> Any:
        """The JSON answer of a route.

        Args:
            seconds: how long the answer may take.

        Raises:
            GatewayError: what the server says, in its words.
        """
        return self._send(method, path, json, headers, seconds)[0]

    def write(self, path: str, *, json: Any, headers: dict[str, str]) -> tuple[Any, bool]:
        """POST; also says whether the answer is the replay of an earlier one.

        Raises:
            GatewayError: what the server says, in its words.
        """
        return self._send("POST", path, json, headers)

    def _send(
        self, method: str, path: str, json: Any, headers: dict[str, str] | None, seconds: float = 120
    ) -> tuple[Any, bool]:
        try:
            answer = self._client.request(method, path, json=json, headers=headers, timeout=seconds)
        except httpx.HTTPError as error:
            raise Unavailable(f"The running server does not answer: {type(error).__name__}.") from error
        body: Any = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        if answer.status_code >= 400 and not path.startswith("/v1/health"):
            raise _as_error(answer.status_code, body)
        return body, "idempotent-replayed" in answer.headers


class ServerRefused(GatewayError):
    """The running server refused a request; `code` says why."""

    title = "Refused"


def running_server(settings: Settings) -> RunningServer | None:
    """The server that runs on a data directory, or None when nothing holds it.

    Raises:
        Busy: something holds it that cannot be talked to.
    """
    if not is_locked(settings.data_dir):
        return None
    url = running_at(settings.data_dir)
    if url is None:
        raise Busy(f"Another process holds {settings.data_dir}, and it is no server.", advice="Wait until it is done.")
    try:
        key = settings.admin_key_path.read_text(encoding="ascii").strip()
    except OSError:
        raise Busy(
            "A server runs on this data directory, but its admin key is not in `admin.key`.",
            file=str(settings.admin_key_path),
            advice="Stop the server first, or put the key there.",
        ) from None
    return RunningServer(url, key)


def _as_error(status: int, body: Any) -> ServerRefused:
    detail = body.get("detail", f"HTTP {status}") if isinstance(body, dict) else f"HTTP {status}"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    advice = body.get("advice") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return ServerRefused(str(detail), advice=str(advice) if advice else None)  # pyright: ignore[reportUnknownArgumentType]


def _escaped(text: str) -> str:
    return shown(text).replace("[", "\\[")

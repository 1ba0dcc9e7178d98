"""A server started as a person starts it: by the command line, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

COMMAND = str(Path(sys.executable).parent / "memory-gateway")
_T = TypeVar("_T")


def environment() -> dict[str, str]:
    """The environment of a user who has set nothing but "no embeddings"."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")}
    return {**kept, "MEMORY_GATEWAY_EMBEDDING__PROVIDER": "none"}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command of the product to its end."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)


def eventually(check: Callable[[], _T], seconds: float = 15.0) -> _T:
    """The first true answer of `check` within a deadline."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.03)
    return found


class Server:
    """A running `memory-gateway serve` and a client with its admin key."""

    def __init__(self, data: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        self.data = data
        self.vault = data / "vault"
        self.process = process
        self.log = log
        self.url = eventually(self._address)
        self.key = (data / "admin.key").read_text("ascii").strip()
        self.http = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, trust_env=False)
        eventually(self._ready)

    def find(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        """The memories that a search returns."""
        answer = self.http.post("/v1/memory/search", json={"query": query, **fields})
        assert answer.status_code == 200, answer.text
        return [one["memory"] for one in answer.json()["results"]]

    def texts(self, query: str, **fields: Any) -> list[str]:
        """Their texts."""
        return [memory["content"] for memory in self.find(query, **fields)]

    def problems(self) -> list[dict[str, Any]]:
        """What is wrong with which file."""
        return self.http.get("/v1/problems").json()["problems"]

    def stop(self) -> float:
        """SIGTERM; the seconds until the process ended."""
        self.http.close()
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        return time.monotonic() - started

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text("utf-8")
        try:
            return self.http.get("/v1/health").json()["ready"]
        except httpx.TransportError:
            return False

    def _address(self) -> str | None:
        assert self.process.poll() is None, self.log.read_text("utf-8")
        try:
            written = json.loads((self.data / "server.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return written["url"] if written["pid"] == self.process.pid else None


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Server]:
    """A server on a free port; it is gone at the end, whatever happens."""
    log = data.with_name(f"{data.name}.log")
    command = [COMMAND, "serve", "--data-dir", str(data), "--port", "0", *options]
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment(), stdout=output, stderr=output)
    try:
        server = Server(data, process, log)
        yield server
        if process.poll() is None:
            server.stop()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

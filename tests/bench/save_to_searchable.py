"""How long after a save in an editor a note can be found, over a real server.

    python tests/bench/save_to_searchable.py [--saves 60] [--writes 200] [--notes 500]

Saves are made in both ways that editors have: into the file in place (as Obsidian does), and by writing a temporary
file and renaming it over the note. The goal is p50 up to 300 ms and p95 up to 1 s. Keywords only, no embedding.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

FOLDER = "Memories/LongTerm"
DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and a client with its key."""

    pid: int
    vault: Path
    http: httpx.Client

    def finds(self, word: str) -> bool:
        """Whether a search for a word finds a note that has it."""
        answer = self.http.post("/v1/memory/search", json={"query": word, "mode": "fts", "limit": 1}).json()
        return any(word in one["memory"]["content"] for one in answer["results"])


def main() -> None:
    """Print the table."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="memory-gateway-bench-") as folder, _serving(Path(folder)) as server:
        _fill(server, arguments.notes)
        print(f"{'what':<44}{'n':>5}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}")
        _print("save in place to searchable", _saves(server, _in_place, arguments.saves, "place"))
        _print("save by rename to searchable", _saves(server, _by_rename, arguments.saves, "rename"))
        _print("new note to searchable", _new_notes(server, arguments.saves))
        _print("draft accepted in the note to searchable", _accepted(server, arguments.saves, in_note=True))
        _print("draft accepted over REST to searchable", _accepted(server, arguments.saves, in_note=False))
        waited = _writes(server, arguments.writes, {"Prefer": "wait=5"})
        _print("POST /v1/memory with Prefer: wait=5", waited)
        plain = _writes(server, arguments.writes, {})
        _print("POST /v1/memory", plain)
        print(f"writes a second, one client: {_rate(plain):.0f}; with wait: {_rate(waited):.0f}")
        print(f"resident memory of the server: {_resident_mb(server.pid):.0f} MB with {_notes(server):,} notes")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="From a save to a hit.")
    parser.add_argument("--saves", type=int, default=60)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--notes", type=int, default=500, help="notes that are there already")
    return parser.parse_args()


@contextmanager
def _serving(folder: Path) -> Iterator[Server]:
    data = folder / "data"
    command = [str(Path(sys.executable).parent / "memory-gateway"), "serve", "--data-dir", str(data), "--port", "0"]
    settings = {"MEMORY_GATEWAY_EMBEDDING__PROVIDER": "none", "MEMORY_GATEWAY_LOG_LEVEL": "warning"}
    process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL)
    try:
        _until(lambda: (data / "server.json").exists() and (data / "admin.key").exists())
        url = json.loads((data / "server.json").read_text("utf-8"))["url"]
        key = (data / "admin.key").read_text("ascii").strip()
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http:
            _until(lambda: http.get("/v1/health").json()["ready"])
            yield Server(process.pid, data / "vault", http)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _fill(server: Server, notes: int) -> None:
    for number in range(notes):
        (server.vault / FOLDER / f"old {number}.md").write_text(f"# Old {number}\n\nNothing new here.\n", "utf-8")
    _until(lambda: _notes(server) >= notes and _queue(server) == 0)


def _saves(server: Server, save: Callable[[Path, bytes], None], count: int, name: str) -> list[float]:
    path = server.vault / FOLDER / f"Diary {name}.md"
    text = f"# Diary {name}\n\nBegun.\n"
    path.write_text(text, "utf-8")
    times: list[float] = []
    for number in range(count):
        word = f"zq{name}{number:03d}x"
        text += f"- {word} happened\n"
        save(path, text.encode("utf-8"))
        times.append(_time_to(server, word))
        time.sleep(0.05)
    return times


def _new_notes(server: Server, count: int) -> list[float]:
    times: list[float] = []
    for number in range(count):
        word = f"zqnew{number:03d}x"
        (server.vault / FOLDER / f"New {number}.md").write_text(f"About {word}.\n", "utf-8")
        times.append(_time_to(server, word))
    return times


def _accepted(server: Server, count: int, *, in_note: bool) -> list[float]:
    key = (server.vault.parent / "agent.key").read_text("ascii").strip()
    times: list[float] = []
    for number in range(count):
        word = f"zqdraft{int(in_note)}{number:03d}x"
        guess = {"content": f"The owner likes {word}.", "source": "conversation", "confidence": 0.7}
        answer = server.http.post("/v1/memory", json=guess, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 202, answer.text
        review = answer.json()["review"]
        time.sleep(0.3)  # a person reads first
        started = time.perf_counter()
        if in_note:
            path = server.vault / review["path"]
            _in_place(path, path.read_bytes().replace(b"\ndecision:\n", b"\ndecision: accept\n", 1))
        else:
            assert server.http.post(f"/v1/reviews/{review['id']}/accept", json={}).status_code == 200
        _until(lambda word=word: server.finds(word))
        times.append((time.perf_counter() - started) * 1000)
    return times


def _in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def _by_rename(path: Path, data: bytes) -> None:
    staged = path.with_name(f"{path.name}.tmp")
    staged.write_bytes(data)
    staged.replace(path)


def _time_to(server: Server, word: str) -> float:
    started = time.perf_counter()
    _until(lambda: server.finds(word))
    return (time.perf_counter() - started) * 1000


def _writes(server: Server, count: int, headers: dict[str, str]) -> list[float]:
    times: list[float] = []
    for number in range(count):
        body = {"content": f"Memory {number} of {len(headers)} about zw{number:04d}{len(headers)}x."}
        started = time.perf_counter()
        answer = server.http.post("/v1/memory", json=body, headers=headers)
        times.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 201, answer.text
        assert not headers or answer.json()["receipt"]["fts"] == "done", answer.text
    return times


def _health(server: Server) -> dict[str, Any]:
    return server.http.get("/v1/health").json()


def _notes(server: Server) -> int:
    return sum(folder["on_disk"] for folder in _health(server)["folders"] or [])


def _queue(server: Server) -> int:
    return _health(server)["queue"]["fts"]


def _resident_mb(pid: int) -> float:
    """Of the server's own process; 0 where there is no /proc."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text("ascii")) if status.exists() else None
    return int(found.group(1)) / 1024 if found else 0.0


def _until(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not check():
        if time.monotonic() > deadline:
            sys.exit(f"not within {DEADLINE_SECONDS:.0f} s")
        time.sleep(0.005)


def _rate(times: Sequence[float]) -> float:
    return 1000 * len(times) / sum(times)


def _print(name: str, times: Sequence[float]) -> None:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    print(f"{name:<44}{len(times):>5}{cuts[49]:>10.0f}{cuts[94]:>10.0f}{max(times):>10.0f}")


if __name__ == "__main__":
    main()

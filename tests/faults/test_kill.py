"""kill -9 at random moments, mixed writes over HTTP, a person who edits meanwhile: nothing lost or doubled."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import httpx
import pytest

from gateway.config import load_settings
from gateway.services.check import check
from tests.nightly import NIGHTLY

WRITES, KILLS = (2_000, 150) if NIGHTLY else (200, 15)
COMMAND = [sys.executable, "-c", "from gateway.cli import main; main()"]


class Server:
    """The real server as a process, which can be killed and started again."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.log = data_dir.parent / "server.log"
        self.environment = {**os.environ, "MEMORY_GATEWAY_EMBEDDING__PROVIDER": "none"}
        self.http = httpx.Client(timeout=30, trust_env=False)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.data_dir / "server.json").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--data-dir", str(self.data_dir), "--port", "0"],
                stdout=log,
                stderr=log,
                env=self.environment,
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            url = json.loads((self.data_dir / "server.json").read_text())["url"]
            self.http.base_url = httpx.URL(url)
            key = (self.data_dir / "admin.key").read_text().strip()
            self.http.headers["Authorization"] = f"Bearer {key}"
            return self.http.get("/v1/health").status_code == 200
        except (OSError, ValueError, httpx.TransportError):
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(timeout=60) in (0, -signal.SIGTERM)  # uvicorn stops in order, then raises it again
        self.http.close()


class Agent:
    """Sends one write after the other and remembers what was acknowledged."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.latest: dict[str, tuple[str, str]] = {}
        self.deleted: set[str] = set()
        self.versions: dict[str, str] = {}
        self.kill_in: float | None = None
        self.kills = 0

    def one(self, number: int) -> None:
        kind = self.random.choice(["create", "create", "change", "change", "delete"]) if self.latest else "create"
        text = f"write {number} {uuid.uuid4().hex}"
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        if self.random.random() < 0.3:
            headers["Prefer"] = "wait=2"
        match kind:
            case "create":
                answer = self.send("POST", "/v1/memory", headers, {"content": text, "summary": f"note {number}"})
                self._accepted(answer, text)
            case "change":
                note_id = self.random.choice(sorted(self.latest))
                headers["If-Match"] = f'"{self.latest[note_id][1]}"'
                self._accepted(self.send("PATCH", f"/v1/memory/{note_id}", headers, {"content": text}), text)
            case _:
                note_id = self.random.choice(sorted(self.latest))
                headers["If-Match"] = f'"{self.latest[note_id][1]}"'
                answer = self.send("DELETE", f"/v1/memory/{note_id}", headers, None)
                assert answer.status_code == 200, answer.text
                del self.latest[note_id]
                self.deleted.add(note_id)

    def send(self, method: str, path: str, headers: dict[str, str], body: dict[str, str] | None) -> httpx.Response:
        """Send until answered, with the same key; a planned kill comes while the request is under way."""
        killer = None
        if self.kill_in is not None:
            killer = threading.Timer(self.kill_in, self.server.kill)
            self.kill_in = None
            self.kills += 1
            killer.start()
        for _ in range(50):
            try:
                answer = self.server.http.request(method, path, headers=headers, json=body)
                if answer.status_code not in (500, 503, 423) and answer.json().get("type", "").find("busy") < 0:
                    break
            except httpx.TransportError:
                pass
            if killer is not None:
                killer.join()
                killer = None
                self.server.start()
            time.sleep(0.05)
        else:
            raise AssertionError("never answered")
        if killer is not None:
            killer.join()
            self.server.start()
        return answer

    def _accepted(self, answer: httpx.Response, text: str) -> None:
        assert answer.status_code in (200, 201), answer.text
        written = answer.json()
        self.latest[written["id"]] = (text, written["etag"])
        self.versions[written["etag"]] = text


class Person(threading.Thread):
    """Edits notes of their own in place all the while, in two writes each as editors do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.last: dict[str, str] = {}
        self.done = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.done.wait(0.03):
            number += 1
            name, text = f"mine {number % 5}.md", f"mine {number}\n" + "and more\n" * 50
            with (self.folder / name).open("w") as file:
                file.write(text[:20])
                file.flush()
                time.sleep(0.002)
                file.write(text[20:])
            self.last[name] = text


@pytest.mark.timeout(3600 if NIGHTLY else 280)
def test_killed_at_random_every_acknowledged_write_is_there_exactly_once(tmp_path: Path):
    server = Server(tmp_path / "data")
    seed = random.SystemRandom().randrange(10**6)
    agent = Agent(server, seed)
    server.start()
    vault = tmp_path / "data" / "vault"
    person = Person(vault / "Memories" / "LongTerm")
    person.start()
    kill_at = set(agent.random.sample(range(WRITES), KILLS))
    for number in range(WRITES):
        if number in kill_at:
            agent.kill_in = agent.random.choice([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3])
        agent.one(number)
    person.done.set()
    person.join()
    assert agent.kills == KILLS

    for note_id, (text, etag) in agent.latest.items():
        answer = server.http.get(f"/v1/memory/{note_id}")
        assert answer.status_code == 200, (seed, note_id, answer.text)
        assert (answer.json()["content"].strip(), answer.json()["etag"]) == (text, etag)
    for note_id in agent.deleted:
        assert server.http.get(f"/v1/memory/{note_id}").status_code == 404
    _wait_for_commits(server)
    server.stop()

    on_disk = Counter(
        next((line for line in path.read_text().splitlines() if line.startswith("write ")), path.name)
        for path in person.folder.glob("*.md")
    )
    assert max(on_disk.values()) == 1, "a write was done twice"
    assert {text for text, _ in agent.latest.values()} == {text for text in on_disk if text.startswith("write ")}
    for name, text in person.last.items():
        assert (person.folder / name).read_text() == text, "a person's text was lost"
    assert check(load_settings(data_dir=tmp_path / "data"), patient=False).findings == []
    done = subprocess.run([*COMMAND, "check", "--data-dir", str(tmp_path / "data")], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=vault, text=True) == ""
    _assert_history(vault, agent)


def _wait_for_commits(server: Server) -> None:
    deadline = time.monotonic() + 60
    while True:
        queue = server.http.get("/v1/health").json()["queue"]
        if not queue["commits"] and not queue["files"] and not queue["fts"]:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"still waiting: {queue}")
        time.sleep(0.2)


def _assert_history(vault: Path, agent: Agent) -> None:
    log = subprocess.check_output(["git", "log", "--format=%(trailers:key=Memory-Key,valueonly)"], cwd=vault, text=True)
    assert max(Counter(log.split()).values()) == 1, "a version is in git twice"
    patch = subprocess.check_output(["git", "log", "-p", "--format=", "--no-renames"], cwd=vault, text=True)
    committed = {line[1:].strip() for line in patch.splitlines() if line.startswith("+write ")}
    assert set(agent.versions.values()) <= committed, "an acknowledged version is not in git"

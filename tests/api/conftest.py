"""A real server on a loopback port, on a real vault, with keyword search only."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from gateway import asgi
from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings


class Server:
    """A running server: its gateway, and a client that carries the admin key."""

    def __init__(self, gateway: Gateway, url: str, key: str) -> None:
        self.gateway = gateway
        self.url = url
        self.key = key
        self.vault: Path = gateway.parts.files.root
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False)

    def write(self, content: str, **fields) -> dict:
        answer = self.http.post("/v1/memory", json={"content": content, **fields}, headers={"Prefer": "wait=5"})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def find(self, query: str, **fields) -> list[str]:
        answer = self.http.post("/v1/memory/search", json={"query": query, **fields})
        assert answer.status_code == 200, answer.text
        return [one["memory"]["content"] for one in answer.json()["results"]]


def eventually(check, seconds: float = 10.0):
    """The first true answer of `check` within a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def start(data_dir: Path, **settings) -> tuple[Server, uvicorn.Server, threading.Thread, socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    settings.setdefault("embedding", {"provider": "none"})
    gateway = open_gateway(load_settings(data_dir=data_dir, port=port, **settings))
    config = uvicorn.Config(asgi.build(gateway), log_config=None, lifespan="on")
    server = asgi.Server(config, gateway)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    key = (data_dir / "admin.key").read_text("ascii").strip()
    running = Server(gateway, f"http://127.0.0.1:{port}", key)
    eventually(lambda: _ready(running))
    return running, server, thread, listener


def _ready(running: Server) -> bool:
    try:
        return running.http.get("/v1/health").json()["ready"]
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A data directory as the first start makes it; copied for each test, since making it takes most of a second."""
    data = tmp_path_factory.mktemp("template") / "data"
    open_gateway(load_settings(data_dir=data, embedding={"provider": "none"})).close()
    return data


@pytest.fixture
def server(tmp_path, template) -> Iterator[Server]:
    shutil.copytree(template, tmp_path / "data", symlinks=True)
    running, uvicorn_server, thread, listener = start(tmp_path / "data")
    running.http.post("/v1/users", json={"user_id": "tom", "display_name": "Tom"})
    running.http.post("/v1/users", json={"user_id": "ann", "display_name": "Ann"})
    yield running
    running.http.close()
    uvicorn_server.should_exit = True
    thread.join(timeout=20)
    listener.close()
    assert not thread.is_alive()

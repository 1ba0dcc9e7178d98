"""An OpenAI-compatible embedding service on loopback: two models, countable, and down on demand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

DIMENSIONS = {"old-model": 16, "new-model": 24, "same-size": 16}


class Provider:
    """What the service does and was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: dict[str, int] = {}
        self.down: set[str] = set()
        # Texts after which a model stops answering.
        self.most: dict[str, int] = {}


def vector(model: str, text: str) -> list[float]:
    """A direction for each word, different for each model."""
    total = np.full(DIMENSIONS[model], 0.01)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(f"{model} {word}".encode()).digest()[:4], "big")
        total += np.random.default_rng(seed).standard_normal(DIMENSIONS[model])
    return total.tolist()


@contextmanager
def providing() -> Iterator[Provider]:
    """The service, while it runs."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model, texts = asked["model"], asked["input"]
            texts = [texts] if isinstance(texts, str) else texts
            spent = provider.asked.get(model, 0)
            if model in provider.down or spent + len(texts) > provider.most.get(model, 10**9):
                self._answer(503, {"error": "down"})
                return
            provider.asked[model] = spent + len(texts)
            data = [{"index": number, "embedding": vector(model, text)} for number, text in enumerate(texts)]
            self._answer(200, {"data": data})

        def _answer(self, status: int, body: dict) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

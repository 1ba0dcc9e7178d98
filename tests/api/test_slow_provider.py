"""A provider of embeddings that is slow or down costs a search no more than its deadline, and then nothing."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gateway.skills.query_vectors import FAILURES_TO_OPEN
from tests.api.conftest import eventually
from tests.servers import must, served


class Provider(ThreadingHTTPServer):
    """An OpenAI-compatible embedding service on loopback; `slow` seconds before each answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.slow = 0.0
        self.asked = 0
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join(timeout=10)


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked += 1
        time.sleep(self.server.slow)
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"index": at, "embedding": [1.0, float(len(text) % 7), 1.0]} for at, text in enumerate(texts)]
        answer = json.dumps({"data": data}).encode()
        try:
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            pass  # the caller has given up

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def provider():
    found = Provider()
    yield found
    found.stop()


def test_keywords_answer_within_the_deadline_and_then_at_once(provider, tmp_path, template):
    embedding = {"provider": "openai", "base_url": provider.url, "model": "m", "dimension": 3}
    with served(tmp_path / "data", template, embedding=embedding) as server:
        must(server, "POST", "/v1/users", json={"user_id": "tom"})
        made = server.write("Tom likes the pangolin.", user_id="tom")
        eventually(lambda: must(server, "GET", f"/v1/memory/{made['id']}/receipt")["receipt"]["vector"] == "done")
        search = {"user_id": "tom", "query": "pangolin one"}
        assert must(server, "POST", "/v1/memory/search", json=search)["degraded"] == []
        deadline = server.gateway.query_vectors.deadline(server.gateway.parts.feed.embedder)
        provider.slow = 5.0
        for number in range(FAILURES_TO_OPEN):
            started = time.monotonic()
            answer = must(server, "POST", "/v1/memory/search", json=search | {"query": f"pangolin again {number}"})
            took = time.monotonic() - started
            assert answer["degraded"] == ["embedding_timeout"]
            assert answer["total"] == 1
            assert took < deadline + 1.0, "the deadline, and the time of a busy machine"
            deadline = 2.0  # one miss widens the next
        asked = provider.asked
        answer = must(server, "POST", "/v1/memory/search", json=search | {"query": "pangolin at last"})
        assert answer["degraded"] == ["embedding_resting"]
        assert answer["total"] == 1
        assert provider.asked == asked, "it is left alone"
        provider.slow = 0.0

"""A chat service on loopback that answers from recorded, self-written replies, and misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPLIES = Path(__file__).resolve().parent.parent / "data" / "consolidation" / "replies.json"
MISBEHAVIOURS = ("prose", "truncated", "429", "500", "401", "slow", "wrong schema", "empty", "cut", "no choices")
_STATUSES = {"429": 429, "500": 500, "401": 401}


class ModelServer(ThreadingHTTPServer):
    """Answers `/chat/completions` as `behaviour` says.

    Attributes:
        asked: what the user message of each request said, in order.
        before: called before each answer.
    """

    daemon_threads = True

    def __init__(self, behaviour: str = "good", slow_seconds: float = 2.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour = behaviour
        self.slow_seconds = slow_seconds
        self.asked: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.recorded: dict[str, Any] = json.loads(REPLIES.read_text("utf-8"))
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def llm(self) -> dict[str, Any]:
        """The settings that lead to it."""
        url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        return {"provider": "openai", "base_url": url, "model": "recorded", "timeout_seconds": 1.0}

    def stop(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()
        self._thread.join(timeout=10)

    def reply(self, order: str, text: str) -> dict[str, Any]:
        """The recorded reply to a request: of a transcript its candidates, of statements which are the same."""
        if '"same"' in order:
            given = json.loads(text)
            family = self._family(given["statement"])
            same = [int(number) for number, one in given["others"].items() if family and self._family(one) == family]
            return {"same": same}
        found = [one for said, one in self.recorded["transcripts"].items() if said in text]
        return {"candidates": found}

    def _family(self, text: str) -> str | None:
        return next((name for name, texts in self.recorded["same"].items() if text.strip() in texts), None)


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        order, framed = (message["content"] for message in body["messages"])
        text = framed.removeprefix("<transcript>\n").removesuffix("\n</transcript>")
        self.server.asked.append(text)
        self.server.before()
        behaviour = self.server.behaviour
        if behaviour == "slow":
            time.sleep(self.server.slow_seconds)
        if behaviour == "cut":
            self.close_connection = True
            return
        content = _spoilt(behaviour, json.dumps(self.server.reply(order, text), ensure_ascii=False))
        answer = {} if behaviour == "no choices" else {"choices": [{"message": {"content": content}}]}
        self._send(_STATUSES.get(behaviour, 200), json.dumps(answer).encode())

    def _send(self, status: int, data: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # the caller has given up

    def log_message(self, *arguments: object) -> None:
        pass


def _spoilt(behaviour: str, good: str) -> str:
    return {
        "prose": f"Sure, here it is: {good}",
        "truncated": good[:-4],
        "wrong schema": json.dumps({"candidates": [{"content": 7}], "same": ["one"]}),
        "empty": "",
    }.get(behaviour, good)

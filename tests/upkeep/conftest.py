"""Streams of events as a listener meets them: real server-sent events over loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.api.conftest import Server, eventually
from tests.api.conftest import server as server  # noqa: PLC0414 - the fixtures of the API's tests
from tests.api.conftest import template as template  # noqa: PLC0414


class Listener:
    """One stream, read in a thread; `said` are its events, in order."""

    def __init__(self, server: Server, key: str, **options) -> None:
        self._client = httpx.Client(base_url=server.url, timeout=httpx.Timeout(30, read=None), trust_env=False)
        headers = {"Authorization": f"Bearer {key}"} | options.pop("headers", {})
        self._request = self._client.build_request("GET", "/v1/events", headers=headers, **options)
        self._answer: httpx.Response | None = None
        self.status = 0
        self.said: list[dict] = []
        self.comments: list[str] = []
        self.ended_after: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Listener:
        self._answer = self._client.send(self._request, stream=True)
        self.status = self._answer.status_code
        self._thread.start()
        if self.status == 200:
            eventually(lambda: self.said)
        return self

    def __exit__(self, *_error) -> None:
        assert self._answer is not None
        if self.ended_after is None:
            # A reader in another thread is woken only by the socket's own end.
            self._answer.extensions["network_stream"].get_extra_info("socket").shutdown(2)
        self._thread.join(timeout=10)
        self._answer.close()
        self._client.close()
        assert not self._thread.is_alive()

    def of(self, *names: str) -> list[dict]:
        """Events of these names."""
        return [one for one in self.said if one["event"] in names]

    def ids(self) -> list[str]:
        """What the events were about."""
        return [one["id"] for one in self.said if "id" in one]

    def _run(self) -> None:
        assert self._answer is not None
        started = time.monotonic()
        try:
            self._lines(self._answer.iter_lines())
        except (httpx.HTTPError, OSError):
            pass
        self.ended_after = time.monotonic() - started

    def _lines(self, lines: Iterator[str]) -> None:
        fields: dict[str, str] = {}
        for line in lines:
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                self.said.append({"event": fields["event"], "seq": int(fields["id"]), **json.loads(fields["data"])})
                fields = {}
            else:
                fields = {}


@pytest.fixture
def listen() -> Callable[..., Listener]:
    """Opens streams."""
    return Listener


@contextmanager
def quiet_for(seconds: float, check: Callable[[], bool]) -> Iterator[None]:
    """What is inside, and nothing of the kind for a while after it."""
    yield
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert not check()
        time.sleep(0.05)

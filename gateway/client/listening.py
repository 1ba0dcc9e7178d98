"""Server-sent events as values: which request asks for them, and what the lines of the answer mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import httpx

from .answers import Happened

# The gateway breaks its silence every 15 seconds: a connection that says nothing for longer is dead.
SILENCE_SECONDS = 45.0
# A gateway that restarts is back before these are used up (about 50 seconds).
TRIES = 8


class Listening:
    """One listener across its connections: where it is, and what to ask for next."""

    def __init__(self, kinds: Sequence[str], last_event_id: int | None) -> None:
        self._kinds = kinds
        self._last = last_event_id
        self._fields: dict[str, str] = {}
        self.failures = 0

    def request(self, timeout: float) -> dict[str, Any]:
        """The options of the request that goes on from the last event."""
        self._fields = {}
        headers = {} if self._last is None else {"Last-Event-ID": str(self._last)}
        return {
            "headers": headers | {"Accept": "text/event-stream"},
            "params": {"kinds": ",".join(self._kinds)} if self._kinds else {},
            "timeout": httpx.Timeout(timeout, read=SILENCE_SECONDS),
        }

    def heard(self, line: str) -> Happened | None:
        """Take in a line. Returns the event that it completes; the greeting of a stream is none."""
        self.failures = 0
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if fields.get("id", "").isdigit():
            self._last = int(fields["id"])
        if "data" not in fields or fields.get("event") == "ready":
            return None
        said: dict[str, Any] = json.loads(fields["data"])
        return cast("Happened", {"event": fields.get("event", "message"), "seq": self._last or 0, **said})

    def failed(self) -> bool:
        """A connection ended or did not come about. Returns whether to try again."""
        self.failures += 1
        return self.failures < TRIES

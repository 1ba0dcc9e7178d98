"""Who is logged in to the page: opaque ids in memory, each standing for a key's id, never for the key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass, field

LIFETIME_SECONDS = 12 * 3600
_MOST = 1_000
_MOST_OF_ONE_KEY = 10


@dataclass(slots=True)
class PageSession:
    """A login that lasts until it ends.

    Attributes:
        csrf: what each form of this session carries.
        told: names of messages, with their values, that the next page shows.
    """

    key_id: str
    csrf: str
    ends_at: float
    told: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    def knows(self, token: str) -> bool:
        """Whether a form's token is this session's."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.csrf.encode("ascii"))


class PageSessions:
    """The logins of one application; a restart ends them all."""

    def __init__(self) -> None:
        self._sessions: dict[str, PageSession] = {}
        self._lock = threading.Lock()

    def open(self, key_id: str) -> tuple[str, PageSession]:
        """Begin a session. The first value is its id, which only the browser keeps."""
        session_id = secrets.token_urlsafe(32)
        session = PageSession(key_id, secrets.token_urlsafe(32), time.monotonic() + LIFETIME_SECONDS)
        with self._lock:
            self._make_room(key_id)
            self._sessions[_hidden(session_id)] = session
        return session_id, session

    def find(self, session_id: str | None) -> PageSession | None:
        """The session of this id, if it has not ended."""
        if not session_id:
            return None
        name = _hidden(session_id)
        with self._lock:
            session = self._sessions.get(name)
            if session is not None and session.ends_at <= time.monotonic():
                del self._sessions[name]
                return None
        return session

    def close(self, session_id: str | None) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_hidden(session_id or ""), None)

    def _make_room(self, key_id: str) -> None:
        """The oldest sessions of the same key go first, so that one key cannot log out all the others."""
        now = time.monotonic()
        self._sessions = {name: one for name, one in self._sessions.items() if one.ends_at > now}
        own = [name for name, one in self._sessions.items() if one.key_id == key_id]
        for name in own[: max(0, len(own) - _MOST_OF_ONE_KEY + 1)]:
            del self._sessions[name]
        for name in list(self._sessions)[: max(0, len(self._sessions) - _MOST + 1)]:
            del self._sessions[name]


def _hidden(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()

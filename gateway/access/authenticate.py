"""From a bearer key to a principal."""

from __future__ import annotations

import threading
from typing import cast

from gateway.access.principal import Principal, Role
from gateway.clock import now_ms
from gateway.errors import NotAuthenticated
from gateway.ledger import Ledger, keys


class Authenticator:
    """Finds the principal of a key; notes when keys were used, written in batches."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()

    def principal(self, authorization: str | None, request_id: str | None) -> Principal:
        """The principal of an `Authorization` header.

        Raises:
            NotAuthenticated: no bearer key, or one that is unknown, revoked or expired.
        """
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise NotAuthenticated(
                "This needs an API key.",
                field="Authorization",
                advice="Send `Authorization: Bearer <key>`; the first key is in `admin.key` of the data directory.",
            )
        with self._ledger.read() as tx:
            key = keys.find(tx, secret.strip())
        return self._principal(key, request_id)

    def holder(self, key_id: str, request_id: str | None) -> Principal:
        """The principal of a key that was shown before, e.g. at a page's login; it must be valid still.

        Raises:
            NotAuthenticated: the key was revoked, or has expired.
        """
        with self._ledger.read() as tx:
            key = keys.live(tx, key_id)
        return self._principal(key, request_id)

    def _principal(self, key: keys.ApiKey | None, request_id: str | None) -> Principal:
        if key is None:
            raise NotAuthenticated("The API key is unknown, revoked or expired.", field="Authorization")
        with self._lock:
            self._used[key.id] = now_ms()
        role = cast("Role", key.role)
        return Principal(key.id, role, key.user_id, key.agent_id, tuple(key.workspace_ids), request_id)

    def flush(self) -> None:
        """Write down when keys were last used."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            with self._ledger.write() as tx:
                keys.touch(tx, used)

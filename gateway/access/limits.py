"""A token bucket per key: bursts are fine, floods are not."""

from __future__ import annotations

import threading
import time

from gateway.errors import RateLimited

# So many buckets are kept; beyond that, those that are full again say nothing and go.
_MOST_BUCKETS = 10_000


class RateLimit:
    """Allows `per_minute` requests a minute and key, `burst` of them at once."""

    def __init__(self, per_minute: int, burst: int) -> None:
        self._rate = per_minute / 60.0
        self._burst = float(burst)
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, key_id: str) -> None:
        """Count a request.

        Raises:
            RateLimited: too many; `retry_after` says how many seconds to wait.
        """
        now = time.monotonic()
        with self._lock:
            if len(self._buckets) >= _MOST_BUCKETS and key_id not in self._buckets:
                self._forget_full(now)
            level, at = self._buckets.get(key_id, (self._burst, now))
            level = min(self._burst, level + (now - at) * self._rate)
            if level >= 1:
                self._buckets[key_id] = (level - 1, now)
                return
            self._buckets[key_id] = (level, now)
        wait = max(1, round((1 - level) / self._rate + 0.5))
        raise RateLimited("Too many requests with this key.", advice=f"Wait {wait} s.", retry_after=wait)

    def _forget_full(self, now: float) -> None:
        seconds = self._burst / self._rate
        self._buckets = {name: (level, at) for name, (level, at) in self._buckets.items() if now - at < seconds}

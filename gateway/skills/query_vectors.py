"""Vectors of queries: cached, within a deadline that follows the provider's pace, behind a circuit breaker.

Seed 002, the reading path: a query's vector may cost a turn between 0.8 and 2 seconds and no more, and a provider that
is down costs nothing after a few tries.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.errors import EmbeddingBusy, EmbeddingFailed
from gateway.index.embed import Embedder, Vector, embed_query_within

CACHED_QUERIES = 512
FLOOR_SECONDS = 0.8
CEILING_SECONDS = 2.0
# The deadline is this many times the smoothed latency.
HEADROOM = 3.0
_SMOOTHING = 0.3
FAILURES_TO_OPEN = 3
FAILURE_WINDOW_SECONDS = 60.0
OPEN_SECONDS = 15.0


@dataclass(slots=True)
class _Circuit:
    """What is known of one provider and model; `latency` is smoothed, in seconds."""

    latency: float | None = None
    missed: bool = False
    failures: list[float] = field(default_factory=list[float])
    open_until: float = 0.0
    probing: bool = False


class QueryVectors:
    """Vectors of recent queries. Only failures and misses of a provider count against it, nothing local does.

    Args:
        ceiling: longest deadline in seconds.
        monotonic: the clock that deadlines and rests are measured by.
    """

    def __init__(self, ceiling: float = CEILING_SECONDS, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ceiling = ceiling
        self._now = monotonic
        self._kept: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._circuits: dict[str, _Circuit] = {}
        self._lock = threading.Lock()

    def of(self, query: str, embedder: Embedder | None) -> tuple[Vector | None, list[str]]:
        """The vector of a query, or None and why: `embedding_timeout`, `embedding_resting`, `embedding_busy`."""
        if embedder is None:
            return None, []
        identity = embedder.identity.slug
        key = (identity, query)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key], []
            circuit = self._circuits.setdefault(identity, _Circuit())
            if not self._admitted(circuit):
                return None, ["embedding_resting"]
            deadline = self._deadline(circuit)
        return self._asked(query, embedder, circuit, deadline)

    def reset(self) -> None:
        """Forget all that is known of providers: their configuration changed."""
        with self._lock:
            self._circuits.clear()
            self._kept.clear()

    def deadline(self, embedder: Embedder) -> float:
        """How long the next query may take, in seconds."""
        with self._lock:
            return self._deadline(self._circuits.setdefault(embedder.identity.slug, _Circuit()))

    def _asked(
        self, query: str, embedder: Embedder, circuit: _Circuit, deadline: float
    ) -> tuple[Vector | None, list[str]]:
        started = self._now()
        try:
            vector = embed_query_within(embedder, query, deadline)
        except EmbeddingBusy:  # our own queue is full: that says nothing of the provider
            with self._lock:
                circuit.probing = False
            return None, ["embedding_busy"]
        except EmbeddingFailed:
            with self._lock:
                self._failed(circuit)
            return None, ["embedding_timeout"]
        except BaseException:  # cancelled: neither a success nor a failure
            with self._lock:
                circuit.probing = False
            raise
        with self._lock:
            self._succeeded(circuit, self._now() - started)
            self._kept[(embedder.identity.slug, query)] = vector
            while len(self._kept) > CACHED_QUERIES:
                self._kept.popitem(last=False)
        return vector, []

    def _admitted(self, circuit: _Circuit) -> bool:
        """Whether a query may be sent: always while the circuit is closed; after a rest, one at a time as a probe."""
        if not circuit.open_until:
            return True
        if self._now() < circuit.open_until or circuit.probing:
            return False
        circuit.probing = True
        return True

    def _deadline(self, circuit: _Circuit) -> float:
        if circuit.missed or circuit.latency is None:
            return self._ceiling
        return min(self._ceiling, max(min(FLOOR_SECONDS, self._ceiling), circuit.latency * HEADROOM))

    def _succeeded(self, circuit: _Circuit, seconds: float) -> None:
        before = circuit.latency
        circuit.latency = seconds if before is None else before + _SMOOTHING * (seconds - before)
        circuit.missed = circuit.probing = False
        circuit.open_until = 0.0
        circuit.failures.clear()

    def _failed(self, circuit: _Circuit) -> None:
        now = self._now()
        circuit.missed = True  # the next one may take as long as any
        circuit.failures = [at for at in circuit.failures if now - at < FAILURE_WINDOW_SECONDS] + [now]
        if circuit.probing or len(circuit.failures) >= FAILURES_TO_OPEN:
            circuit.open_until = now + OPEN_SECONDS
        circuit.probing = False

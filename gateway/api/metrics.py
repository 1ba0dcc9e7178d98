"""Prometheus metrics of one application: requests, notes, queues. No label carries a name of a person or note."""

from __future__ import annotations

import time
from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.importer.parts import Parts
from gateway.ledger import journal, problems, registry

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The metrics and their registry; one per application, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "memory_gateway_requests_total", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "memory_gateway_request_seconds", "Time to answer.", ["route"], buckets=_BUCKETS, registry=self.registry
        )
        self._notes = Gauge("memory_gateway_notes", "Memories by state.", ["state"], registry=self.registry)
        self._queue = Gauge("memory_gateway_queue", "Work that waits.", ["kind"], registry=self.registry)
        self._problems = Gauge("memory_gateway_problems", "Problems listed.", registry=self.registry)
        self._ready = Gauge("memory_gateway_ready", "1 once the first scan is done.", registry=self.registry)

    def refresh(self, parts: Parts) -> None:
        """Take the sums from the ledger."""
        with parts.ledger.read() as tx:
            counts = registry.counts_by_namespace(tx).values()
            pending = registry.pending_counts(tx)
            waiting = journal.pending_count(tx)
            self._problems.set(problems.count(tx))
        for state in ("notes", "indexed", "with_vectors", "held"):
            self._notes.labels(state).set(sum(count[state] for count in counts))
        for kind, number in {**pending, "commits": waiting, "files": len(parts.importer.later)}.items():
            self._queue.labels(kind).set(number)
        self._ready.set(1 if parts.scanned.is_set() else 0)


class MeteredApp:
    """Counts every request under the template of its route, never under its path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on and measure."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = _route(scope)
            self._metrics.requests.labels(scope["method"], route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)


def _route(scope: Any) -> str:
    return str(scope.get("path_template") or "unmatched")

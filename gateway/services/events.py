"""What happened, for one listener: only what they may read, ids and kinds without text (docs/adr/0020)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision, Resource, decide
from gateway.errors import Invalid, RateLimited, Unavailable
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, events
from gateway.ledger.events import Event
from gateway.notes.namespace import parse_namespace
from gateway.services.records import text_time

KINDS = (events.MEMORY, events.DRAFT, events.PROBLEM, events.JOB)
_AT_ONCE = 500
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """What a listener is told next.

    Attributes:
        told: events, in order.
        seq: up to where the ledger was read; the listener goes on from there.
        more: there is more to read at once.
    """

    told: list[Event]
    seq: int
    more: bool


class Streams:
    """The open streams of one gateway: how many there may be, when they are woken, and that they end with it.

    Args:
        most, most_per_key: streams in all, and of one key.
    """

    def __init__(self, most: int, most_per_key: int) -> None:
        self._most = most
        self._most_per_key = most_per_key
        self._open: Counter[str] = Counter()
        self._wakes: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self.closed = False

    @contextmanager
    def entered(self, key_id: str, wake: Callable[[], None]) -> Generator[None]:
        """One stream; `wake` is called from any thread whenever something was written.

        Raises:
            RateLimited: the key has as many streams as it may.
            Unavailable: the gateway has as many as it can serve, or is stopping.
        """
        with self._lock:
            if self._open[key_id] >= self._most_per_key:
                raise RateLimited(
                    f"This key listens {self._most_per_key} times already.",
                    advice="End a stream before another is begun.",
                    retry_after=5,
                )
            if self.closed or self._open.total() >= self._most:
                raise Unavailable("There are no more streams to be had.", advice="Try again later.")
            self._open[key_id] += 1
            self._wakes.add(wake)
        try:
            yield
        finally:
            with self._lock:
                self._wakes.discard(wake)
                self._open[key_id] -= 1
                if not self._open[key_id]:
                    del self._open[key_id]

    def wake(self) -> None:
        """Something was written: all streams look."""
        with self._lock:
            wakes = list(self._wakes)
        for one in wakes:
            one()

    def close(self) -> None:
        """The gateway stops: all streams end."""
        self.closed = True
        self.wake()


def kinds_of(text: str | None) -> frozenset[str]:
    """The kinds that a listener names, separated by commas; all without it.

    Raises:
        Invalid: there is no such kind.
    """
    if text is None:
        return frozenset(KINDS)
    named = frozenset(one.strip() for one in text.split(","))
    unknown = sorted(named - set(KINDS))
    if unknown:
        raise Invalid(f"There is no kind of event {unknown[0][:40]!r}.", field="kinds", advice=f"One of {list(KINDS)}.")
    return named


def number_of(header: str | None, query: str | None) -> int | None:
    """The number of the last event that a listener has; the header goes first, as a reconnecting browser sends both.

    Raises:
        Invalid: it is not a number of ours.
    """
    given = header or query
    if not given:
        return None
    if not (given.isascii() and given.isdigit()) or int(given) > _LARGEST:
        raise Invalid("The last event id is a number that the stream gave.", field="Last-Event-ID")
    return int(given)


def beginning(principal: Principal, parts: Parts, last: int | None) -> tuple[int, bool]:
    """Where a stream of the principal begins, and whether something between is lost. That it listens is audited.

    Without a number it begins now. What is older than the oldest event kept, or newer than the newest (the ledger was
    restored from a backup), cannot be resumed from.
    """
    decision = Decision(True, "admin" if principal.is_admin else "each event as its target may be read")
    parts.reads.add(guard.entry(principal, "listen", "gateway", decision=decision))
    with parts.ledger.read() as tx:
        newest, oldest = events.newest(tx), events.oldest(tx)
    if last is None:
        return newest, False
    lost = last > newest or (oldest is not None and last < oldest - 1)
    return (newest, True) if lost else (last, False)


def following(principal: Principal, parts: Parts, after: int, kinds: frozenset[str]) -> Batch:
    """The next events that the principal may hear of. Each is decided as reading its target would be now."""
    with parts.ledger.read() as tx:
        found = events.after(tx, after, _AT_ONCE)
        told = [one for one in found if one.kind in kinds and _may_hear(tx, principal, one)]
    return Batch(told, found[-1].seq if found else after, len(found) == _AT_ONCE)


def shown(event: Event) -> dict[str, Any]:
    """An event as it is sent: no content, only ids."""
    said = {"kind": event.kind, "change": event.change, "id": event.target_id, "namespace": event.namespace}
    return {**said, "at": text_time(event.at), **event.data}


def _may_hear(tx: Transaction, principal: Principal, event: Event) -> bool:
    if principal.is_admin:
        return True
    if event.namespace is None:
        mine = event.kind == events.JOB and principal.agent_id is None
        return mine and event.user_id is not None and event.user_id == principal.user_id
    resource = guard.resource_at(tx, parse_namespace(event.namespace))
    if event.kind == events.DRAFT:
        return _may_see_draft(principal, resource, event)
    if event.visibility is not None:
        resource = replace(resource, visibility=event.visibility)
    return decide(principal, "read", resource).allowed


def _may_see_draft(principal: Principal, resource: Resource, event: Event) -> bool:
    """As `GET /v1/reviews/{id}`: people who could decide it, and the agent that proposed it."""
    if principal.agent_id is not None:
        return event.data.get("agent_id") == principal.agent_id and event.user_id == principal.user_id
    person = replace(principal, role="user") if principal.role == "reader" else principal
    return decide(person, "decide", resource).allowed

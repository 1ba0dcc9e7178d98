"""The steps of maintenance: index, git, retention, cached vectors, ledger."""

from __future__ import annotations

from collections.abc import Callable

from gateway.clock import now_ms
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, audit, events, idempotency, jobs, orphans, sessions, usage
from gateway.workers.maintenance import Maintenance, Step, Turn

Trim = Callable[[Transaction, int], int]

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_INDEX_SECONDS = 60.0
_GIT_SECONDS = 60.0
_RETENTION_SECONDS = 900.0
_VECTOR_SECONDS = 3_600.0
_LEDGER_SECONDS = 600.0
_FREE_PAGES = 2_500  # 10 MB: less is soon used again
_PAGES_AT_ONCE = 2_500
_LOG_BYTES = 16 * 1024 * 1024
_VECTORS_AT_ONCE = 500


def maintenance(parts: Parts) -> Maintenance:
    """All steps of a gateway."""
    return Maintenance(
        parts,
        [
            Step("index", _INDEX_SECONDS, tidy_index),
            Step("git", _GIT_SECONDS, tidy_history),
            Step("sessions", _RETENTION_SECONDS, _retention(_expired_sessions)),
            Step("audit", _RETENTION_SECONDS, _retention(_old_audit)),
            Step("idempotency", _RETENTION_SECONDS, _retention(_old_answers)),
            Step("events", _RETENTION_SECONDS, _retention(_old_events)),
            Step("turns", _RETENTION_SECONDS, _retention(_old_turns)),
            Step("jobs", _RETENTION_SECONDS, _retention(_old_jobs)),
            Step("vectors", _VECTOR_SECONDS, tidy_vectors),
            Step("ledger", _LEDGER_SECONDS, tidy_ledger),
        ],
    )


def tidy_index(parts: Parts, turn: Turn) -> None:
    """Fold fragments, index new rows, and remove versions of the table that no reader needs any more."""
    feed = parts.feed
    if feed.needs_optimise() or feed.needs_cleaning():
        turn.begin(1)
        feed.optimise(force=True)
        turn.did(1)


def tidy_history(parts: Parts, turn: Turn) -> None:
    """Fold git's packs and write its commit-graph; not while a person merges, nor while the history is purged."""
    with parts.ledger.read() as tx:
        if jobs.open_jobs(tx, ("purge",)):
            return
    if parts.history.needs_upkeep(parts.settings.maintenance.repack_packs):
        turn.begin(1)
        parts.history.upkeep()
        turn.did(1)


def tidy_vectors(parts: Parts, turn: Turn) -> None:
    """Remove cached vectors whose text no note has had for a while, and the caches of models no longer used.

    A text that comes back soon (a revert, a file that was moved about) costs no embedding.
    """
    index = parts.feed.index
    until = now_ms() - parts.settings.maintenance.vector_grace_hours * _HOUR_MS
    others = [] if parts.migration is not None else index.other_caches()
    own = index.vectors.name if index.vectors is not None else None
    lonely = index.orphan_vectors()
    with parts.ledger.write() as tx:
        for place in orphans.places(tx):
            if place != own and place not in others:
                orphans.state(tx, place, ())
        for place in others:
            orphans.state(tx, place, (orphans.WHOLE,))
        if own is not None:
            orphans.state(tx, own, lonely)
    for place in others:
        _drop_cache(parts, turn, place, until)
    if own is not None and _drop_vectors(parts, turn, own, until):
        parts.feed.optimise(force=True)


def tidy_ledger(parts: Parts, turn: Turn) -> None:
    """SQLite: statistics for its planner, the write-ahead log folded in, free pages given back to the disk."""
    free, log_bytes = parts.ledger.waste()
    if free < _FREE_PAGES and log_bytes < _LOG_BYTES:
        parts.ledger.tidy(0)
        return
    turn.begin(free)
    parts.ledger.tidy(0)
    while turn.left and (freed := parts.ledger.tidy(_PAGES_AT_ONCE)):
        turn.did(freed)
    turn.more = parts.ledger.waste()[0] >= _FREE_PAGES and not turn.left


def _drop_cache(parts: Parts, turn: Turn, place: str, until: int) -> None:
    with parts.ledger.read() as tx:
        due = orphans.due(tx, place, until, 1)
    if due and turn.left:
        turn.begin()
        parts.feed.index.drop_cache(place)
        with parts.ledger.write() as tx:
            orphans.forget(tx, place, due)
        turn.did(1)


def _drop_vectors(parts: Parts, turn: Turn, place: str, until: int) -> int:
    gone = 0
    while True:
        with parts.ledger.read() as tx:
            due = orphans.due(tx, place, until, _VECTORS_AT_ONCE)
        if not due:
            return gone
        if not turn.left:
            turn.more = True
            return gone
        turn.begin()
        dropped = parts.feed.index.drop_vectors(due)
        with parts.ledger.write() as tx:
            orphans.forget(tx, place, due)
        gone += dropped
        turn.did(dropped)


def _retention(trim: Callable[[Parts], Trim]) -> Callable[[Parts, Turn], None]:
    """A step that removes rows of a certain age, batch by batch."""

    def step(parts: Parts, turn: Turn) -> None:
        remove = trim(parts)
        while turn.left:
            with parts.ledger.write() as tx:
                gone = remove(tx, turn.batch)
            turn.did(gone)
            if gone < turn.batch:
                return
        turn.more = True

    return step


def _expired_sessions(_parts: Parts) -> Trim:
    return lambda tx, most: sessions.purge_expired(tx, now_ms(), most=most)


def _old_audit(parts: Parts) -> Trim:
    """The lineage of memories is not in the audit, and stays."""
    days = parts.settings.policy.audit_days
    return lambda tx, most: audit.trim(tx, now_ms() - days * _DAY_MS, most=most)


def _old_answers(parts: Parts) -> Trim:
    hours = parts.settings.policy.idempotency_hours
    return lambda tx, most: idempotency.expire(tx, now_ms() - hours * _HOUR_MS, most=most)


def _old_events(parts: Parts) -> Trim:
    hours = parts.settings.maintenance.events_hours
    return lambda tx, most: events.trim(tx, now_ms() - hours * _HOUR_MS, most=most)


def _old_turns(_parts: Parts) -> Trim:
    return lambda tx, most: usage.trim_turns(tx, now_ms() - _DAY_MS, most=most)


def _old_jobs(parts: Parts) -> Trim:
    days = parts.settings.maintenance.jobs_days
    return lambda tx, most: jobs.trim(tx, now_ms() - days * _DAY_MS, most=most)

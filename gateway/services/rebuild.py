"""Rebuilding the index from the vault: the old one serves until the new one is complete."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import Busy, EmbeddingFailed
from gateway.importer import rebuilding
from gateway.importer.indexing import IndexFeed
from gateway.importer.migrating import Migration
from gateway.importer.parts import Parts, Progress

_running = threading.Lock()


def rebuild(
    principal: Principal, parts: Parts, *, tell: Callable[[Progress], None] = lambda _progress: None
) -> Progress:
    """Build a new generation of the index beside the old one, then let it take over.

    Raises:
        Busy: a rebuild is running already.
    """
    guard.operate(parts.ledger, principal)
    if not _running.acquire(blocking=False):
        raise Busy("A rebuild is running already.", advice="Its progress is in GET /v1/health.")
    progress = parts.rebuild = Progress("rebuild")

    def count(done: int, total: int) -> None:
        progress.done, progress.total = done, total
        tell(progress)

    def switch(feed: IndexFeed) -> None:
        parts.feed = feed

    try:
        parts.importer.scan(settled=True)
        if parts.migration is not None:  # it builds the index anew anyway
            _to_its_end(parts, parts.migration, count)
        else:
            old = parts.feed
            built = rebuilding.build(parts.importer, old, parts.settings, count)
            rebuilding.take_over(parts.importer, old, built, switch)
    except Exception as error:
        progress.error = str(error)[:200]
        raise
    finally:
        progress.job = None
        _running.release()
    parts.wake()
    return progress


def migrate(parts: Parts) -> bool:
    """One round of a change of the embedding model. Returns whether there is none (any more)."""
    migration = parts.migration
    if migration is None:
        return True

    def switch(feed: IndexFeed) -> None:
        if parts.feed.embedder is not None:
            parts.retired.append(parts.feed.embedder)
        parts.feed = feed

    if not migration.round(switch):
        return False
    parts.migration = None
    parts.wake()
    return True


def close_retired(parts: Parts) -> None:
    """Close the embedders of indices that no longer serve."""
    while parts.retired:
        parts.retired.pop().close()


def close_embedders(parts: Parts) -> None:
    """At the stop: close the embedder that serves, the one that was to take over, and those before."""
    close_retired(parts)
    serving = parts.feed.embedder
    coming = parts.migration.target.embedder if parts.migration is not None else None
    for embedder in (serving, coming):
        if embedder is not None:
            embedder.close()


def _to_its_end(parts: Parts, migration: Migration, tell: Callable[[int, int], None]) -> None:
    while not migrate(parts):
        tell(migration.done, migration.total)
        if migration.error is not None:
            raise EmbeddingFailed(
                migration.error, advice="The old index serves on; try again when the provider answers."
            )


def start(principal: Principal, parts: Parts) -> None:
    """Rebuild in a thread of its own; how it goes is in the health answer.

    Raises:
        Busy: a rebuild is running already.
    """
    guard.operate(parts.ledger, principal)
    if _running.locked():
        raise Busy("A rebuild is running already.", advice="Its progress is in GET /v1/health.")
    threading.Thread(target=rebuild, args=(principal, parts), name="rebuild", daemon=True).start()

"""Rebuilding the index from the vault: the old one serves until the new one is complete."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import Busy
from gateway.importer import rebuilding
from gateway.importer.indexing import IndexFeed
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


def start(principal: Principal, parts: Parts) -> None:
    """Rebuild in a thread of its own; how it goes is in the health answer.

    Raises:
        Busy: a rebuild is running already.
    """
    guard.operate(parts.ledger, principal)
    if _running.locked():
        raise Busy("A rebuild is running already.", advice="Its progress is in GET /v1/health.")
    threading.Thread(target=rebuild, args=(principal, parts), name="rebuild", daemon=True).start()

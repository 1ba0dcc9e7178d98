"""The opened parts that services work with, as one value. Made in `gateway.bootstrap`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from gateway.config import Settings
from gateway.importer.commits import Committer
from gateway.importer.importer import Importer
from gateway.importer.indexing import IndexFeed
from gateway.importer.migrating import Migration
from gateway.importer.watch import Watcher
from gateway.importer.write import WriteRoad
from gateway.index.embed import Embedder
from gateway.ledger import Ledger
from gateway.ledger.audit import ReadBuffer
from gateway.ledger.usage import UseBuffer
from gateway.vault.files import VaultFiles
from gateway.vault.history import History


@dataclass(slots=True)
class Progress:
    """How far a long job has come."""

    job: str | None = None
    done: int = 0
    total: int = 0
    error: str | None = None


@dataclass(slots=True)
class SyncState:
    """How the last sync with the git remote went; `at` in seconds since 1970 UTC."""

    at: float | None = None
    error: str | None = None
    advice: str | None = None
    waiting: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class Parts:
    """Ledger, vault, history, importer, writes, index: open, and belonging together.

    `feed` is replaced as a whole when a rebuilt index takes over.
    """

    settings: Settings
    ledger: Ledger
    files: VaultFiles
    history: History
    importer: Importer
    writes: WriteRoad
    committer: Committer
    feed: IndexFeed
    reads: ReadBuffer
    uses: UseBuffer
    watcher: Watcher | None = None
    embedding_note: str | None = None
    scanned: threading.Event = field(default_factory=threading.Event)
    last_scan_at: float | None = None
    vault_error: str | None = None
    rebuild: Progress = field(default_factory=Progress)
    # The change of the embedding model that is under way.
    migration: Migration | None = None
    # Of indices that were taken over: a search that began before may still ask them.
    retired: list[Embedder] = field(default_factory=list[Embedder])
    # Told the ids of what was just forgotten (None: a whole scope), so that no cache goes on saying it.
    on_forgotten: Callable[[Collection[str] | None], None] = lambda _ids: None
    sync: SyncState = field(default_factory=SyncState)
    wake: Callable[[], None] = lambda: None
    wake_jobs: Callable[[], None] = lambda: None

"""Keeps the search copy at what the ledger says: keywords at once, vectors later. Only this writes the index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from gateway import log
from gateway.config import IndexSettings
from gateway.errors import GatewayError
from gateway.importer.rows import HELD, indexed_note
from gateway.index.embed import Embedder
from gateway.index.schema import IndexedNote
from gateway.index.store import Index, OptimisePolicy
from gateway.ledger import Ledger, registry
from gateway.ledger.registry import NoteRow
from gateway.notes.note import parse
from gateway.vault.files import VaultFiles

_LOG = log.get("index")
_BATCH = 500
_RETRY_SECONDS = 2.0
_VECTORS_A_ROUND = 64


class IndexFeed:
    """Feeds one index. `changed` is notified whenever notes became searchable."""

    def __init__(
        self,
        index: Index,
        ledger: Ledger,
        files: VaultFiles,
        embedder: Embedder | None,
        settings: IndexSettings,
        *,
        batch: int,
    ) -> None:
        self.index = index
        self.embedder = embedder
        self._ledger = ledger
        self._files = files
        self.embed_batch = batch
        self._policy = OptimisePolicy(
            max_unindexed_rows=settings.max_unindexed_rows,
            max_fragments=settings.max_fragments,
            keep_versions_seconds=settings.keep_versions_seconds,
        )
        self._skipped: dict[str, float] = {}
        self._round = threading.Lock()
        self.changed = threading.Condition()
        # Set when somebody waits for what was written: otherwise a moment's writes are gathered into one.
        self.hurry = threading.Event()
        self.embedding_error: str | None = None

    def feed(self) -> int:
        """Index everything that waits. Returns how many notes were written or removed."""
        total = 0
        with self._round:
            while done := self._feed_batch():
                total += done
        return total

    @contextmanager
    def paused(self) -> Generator[None]:
        """Keep the index still while another takes over."""
        with self._round:
            yield

    def wait_searchable(self, note_id: str, seconds: float, *, vectors: bool = False) -> bool:
        """Wait until the newest text of a note can be found. Returns whether it can."""
        deadline = time.monotonic() + seconds
        self.hurry.set()
        with self.changed:
            while True:
                with self._ledger.read() as tx:
                    row = registry.note(tx, note_id)
                if row is None or row.index_error is not None:
                    return False
                reached = row.vector_etag if vectors else row.fts_etag
                if reached == row.etag:
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(min(left, 0.5))

    def fill_vectors(self, *, keep_going: Callable[[], bool] = lambda: True) -> int:
        """Compute missing vectors, oldest first, until none is missing or `keep_going` says no. Returns how many."""
        if self.embedder is None:
            return 0
        total = 0
        while keep_going():
            report = self.index.fill_vectors(self.embedder, limit=_VECTORS_A_ROUND, batch=self.embed_batch)
            if report.completed:
                with self._ledger.write() as tx:
                    registry.mark_vectors(tx, report.completed)
                self._tell()
            total += report.embedded
            self.embedding_error = report.error.detail if report.error else None
            if report.error is not None or report.embedded == 0:
                break
        return total

    def optimise(self, *, force: bool = False) -> bool:
        """Fold fragments and index new rows where the policy asks for it. Returns whether it ran."""
        return self.index.optimise(self._policy, force=force).ran

    def needs_optimise(self) -> bool:
        """Whether the policy asks for it now."""
        return self.index.needs_optimise(self._policy)

    def needs_cleaning(self) -> bool:
        """Whether old versions take up room."""
        return self.index.needs_cleaning(self._policy)

    def _feed_batch(self) -> int:
        now = time.monotonic()
        self._skipped = {note_id: at for note_id, at in self._skipped.items() if at > now}
        with self._ledger.read() as tx:
            removed = registry.removals(tx, _BATCH * 4)
            rows = [
                row for row in registry.unindexed(tx, _BATCH + len(self._skipped)) if row.note_id not in self._skipped
            ]
        if removed:
            self.index.delete(removed)
            with self._ledger.write() as tx:
                registry.settle_removals(tx, removed)
        written = self._write(rows)
        return written + len(removed)

    def _write(self, rows: Sequence[NoteRow]) -> int:
        held = [row for row in rows if row.status == HELD]
        ready: dict[str, tuple[NoteRow, IndexedNote]] = {}
        for row in rows:
            if row.status != HELD and (note := self._load(row)) is not None:
                ready[row.note_id] = (row, note)
        if held:
            self.index.delete([row.note_id for row in held])
        states = [(row.note_id, row.etag, row.updated_at, True) for row in held]
        if ready:
            states += self._upsert(ready)
        if states:
            with self._ledger.write() as tx:
                registry.mark_indexed(tx, states)
            self._tell()
        return len(states)

    def _upsert(self, ready: dict[str, tuple[NoteRow, IndexedNote]]) -> list[tuple[str, str, int, bool]]:
        try:
            done = self.index.upsert([note for _, note in ready.values()])
        except (GatewayError, ValueError, OSError, RuntimeError) as error:
            if len(ready) == 1:
                note_id = next(iter(ready))
                _LOG.warning("a note cannot be indexed", note_id=note_id, reason=str(error)[:200])
                with self._ledger.write() as tx:
                    registry.mark_index_error(tx, note_id, type(error).__name__)
                return []
            # One bad note must not keep the others out: take them one by one.
            return [state for note_id in ready for state in self._upsert({note_id: ready[note_id]})]
        return [(state.note_id, state.etag, ready[state.note_id][0].updated_at, state.complete) for state in done]

    def _load(self, row: NoteRow) -> IndexedNote | None:
        """The text of a revision; None where the file has moved on, whose import will follow."""
        try:
            read = self._files.read(row.path)
        except GatewayError:
            read = None
        if read is None or read.etag != row.etag:
            self._skipped[row.note_id] = time.monotonic() + _RETRY_SECONDS
            return None
        return indexed_note(row, parse(read.data, max_bytes=self._files.max_bytes))

    def _tell(self) -> None:
        with self.changed:
            self.changed.notify_all()

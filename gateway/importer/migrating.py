"""Changing the embedding model while the old index serves: a second table is filled beside it, then takes over.

Two identities never share a table (design section 6). What a kill leaves is gone on with: the table is compared with
the ledger, and vectors are cached by the hash of their text. See docs/adr/0021-embedding-migration.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway import log
from gateway.config import Settings
from gateway.errors import GatewayError
from gateway.importer import rebuilding
from gateway.importer.importer import Importer
from gateway.importer.indexing import IndexFeed
from gateway.importer.rebuilding import Generation
from gateway.importer.rows import HELD
from gateway.index.embed import Embedder
from gateway.index.schema import IndexedNote
from gateway.index.store import Index, NoteState, states_in
from gateway.ledger import Ledger, jobs, meta, registry

KIND = "migrate"
TEXT, VECTORS = "text", "vectors"
NONE = "none"
_LOG = log.get("migration")
_NOTES_A_ROUND = 200
_VECTORS_A_ROUND = 64
# So few notes that changed meanwhile are fed after the take-over, by the usual way.
_FEW = 20
_REFUSALS = (GatewayError, ValueError, OSError, RuntimeError)
_STOPPED = "The settings name another embedding model by now."


@dataclass(slots=True)
class Migration:
    """One change of model, driven round by round. `done` and `total` count notes."""

    importer: Importer
    serving: Callable[[], IndexFeed]
    target: IndexFeed
    source_name: str
    job_id: str
    done: int = 0
    total: int = 0
    phase: str = TEXT
    error: str | None = None
    _behind: list[str] = field(default_factory=list[str])
    _empty: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _wanted: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    # Notes that could not be read or written in this revision: the take-over does not wait for them.
    _skipped: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def target_name(self) -> str:
        """The identity that takes over."""
        return name_of(self.target.index)

    def round(self, switch: Callable[[IndexFeed], None]) -> bool:
        """Do a bounded piece of work. Returns whether the new index has taken over.

        Args:
            switch: makes the given feed the one that serves.
        """
        with self._lock:
            if self._over:  # another thread was first
                return True
            if self.phase == TEXT:
                self._write_text()
                return False
            if self._fill():
                return False
            if self._look() > _FEW:
                self.phase = TEXT
                return False
            self._take_over(switch)
            self._over = True
            return True

    def _write_text(self) -> None:
        if not self._behind:
            self._look()
        batch, self._behind = self._behind[:_NOTES_A_ROUND], self._behind[_NOTES_A_ROUND:]
        loaded = rebuilding.load(self.importer, batch)
        at = {note.note_id: note.updated_at for note in loaded}
        written = self._written(loaded)
        for state in written:
            if not state.chunks:
                self._empty[state.note_id] = (state.etag, at[state.note_id])
            self.done += state.complete or self.target.embedder is None
        there = {state.note_id for state in written}
        self._skipped |= {one: self._wanted[one] for one in batch if one not in there}
        if self.target.needs_optimise():
            self.target.optimise()
        if not self._behind:
            self.phase = VECTORS
        self._tell()

    def _written(self, loaded: Sequence[IndexedNote]) -> list[NoteState]:
        """Write notes into the table; one that it cannot take must not keep the others out."""
        try:
            return self.target.index.upsert(loaded)
        except _REFUSALS:
            written: list[NoteState] = []
            for note in loaded:
                try:
                    written += self.target.index.upsert([note])
                except _REFUSALS as error:
                    _LOG.warning("a note cannot be indexed", note_id=note.note_id, reason=str(error)[:200])
            if not written:
                raise
            return written

    def _fill(self) -> bool:
        """Give vectors to some texts. Returns whether there is more to do, or a provider to wait for."""
        if self.target.embedder is None:
            return False
        report = self.target.index.fill_vectors(
            self.target.embedder, limit=_VECTORS_A_ROUND, batch=self.target.embed_batch
        )
        self.done += len(report.completed)
        before, self.error = self.error, report.error.detail if report.error else None
        if self.error and self.error != before:
            _LOG.warning("the new embedding model does not answer; the old index serves on", reason=self.error)
        self._tell()
        return report.error is not None or report.embedded > 0 or bool(report.completed)

    def _look(self) -> int:
        """Compare ledger and table; remove what is gone. Returns how many notes are to be written."""
        held = states_in(self.target.index.table)
        with self.importer.ledger.read() as tx:
            wanted = {
                note_id: (etag, at) for note_id, etag, at, status in registry.note_revisions(tx) if status != HELD
            }
        gone = [note_id for note_id in held if note_id not in wanted]
        if gone:
            self.target.index.delete(gone)
        known = self._skipped | self._empty | {note_id: state[:2] for note_id, state in held.items()}
        self._wanted = wanted
        self._behind = [note_id for note_id, revision in wanted.items() if known.get(note_id) != revision]
        self.total = len(wanted)
        whole = self.target.embedder is None
        self.done = sum(1 for note_id in wanted if note_id in held and (whole or held[note_id][2]))
        return len(self._behind)

    def _take_over(self, switch: Callable[[IndexFeed], None]) -> None:
        old = self.serving()
        self.target.optimise(force=True)
        states = states_in(self.target.index.table) | {one: (*held, True) for one, held in self._empty.items()}
        rebuilding.take_over(self.importer, old, Generation(self.target, states), switch)
        with self.importer.ledger.write() as tx:
            meta.remove(tx, meta.INDEX_MIGRATION)
            jobs.change(tx, self.job_id, done=self.total, total=self.total)
            jobs.finish(tx, self.job_id)
        self.done = self.total
        _LOG.info("another embedding model has taken over", was=self.source_name, now=self.target_name)

    def _tell(self) -> None:
        with self.importer.ledger.write() as tx:
            jobs.change(
                tx, self.job_id, status=jobs.RUNNING, phase=self.phase, done=self.done, total=self.total,
                error=self.error,
            )  # fmt: skip


def name_of(index: Index) -> str:
    """How the ledger calls an index's identity."""
    return index.identity.slug if index.identity else NONE


def begin(importer: Importer, serving: Callable[[], IndexFeed], target: IndexFeed, source_name: str) -> Migration:
    """Begin a migration, or go on with the one that a stop interrupted: its job is the same."""
    name = name_of(target.index)
    options = {"from": source_name, "to": name}
    with importer.ledger.write() as tx:
        known = [job for job in jobs.open_jobs(tx, (KIND,)) if job.options == options]
        job = known[0] if known else jobs.new(KIND, requested_by="gateway", options=options, phase=TEXT)
        if not known:
            jobs.add(tx, job)
    return Migration(importer, serving, target, source_name, job.id, job.done, job.total or 0)


def open_target(settings: Settings, ledger: Ledger, embedder: Embedder | None, generation: int) -> Index:
    """The table that is filled: the half-filled one of the same model, or a new one; that of any other model goes."""
    identity = embedder.identity if embedder is not None else None
    name = f"{identity.slug if identity else NONE} {generation}"
    abandon(settings, ledger, but=name)
    with ledger.write() as tx:
        meta.put(tx, meta.INDEX_MIGRATION, name)
    return Index.open(settings.index_location, identity, generation=generation)


def abandon(settings: Settings, ledger: Ledger, *, but: str | None = None) -> None:
    """Drop the table of a migration that the settings no longer ask for; its cached vectors stay for a while."""
    with ledger.read() as tx:
        left = meta.get(tx, meta.INDEX_MIGRATION)
    if left is None or left == but:
        return
    slug, _, generation = left.rpartition(" ")
    Index.drop_table(settings.index_location, slug, int(generation))
    with ledger.write() as tx:
        meta.remove(tx, meta.INDEX_MIGRATION)
        for job in jobs.open_jobs(tx, (KIND,)):
            jobs.finish(tx, job.id, error=_STOPPED)

"""The index of one embedding model: writes notes as chunks, fills in vectors, stays tidy. Searching is `search`.

All writes of an Index go through one lock; reads take none. It knows neither vault nor ledger.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gateway.index.direction import CommonDirection
from gateway.index.embed import Embedder, EmbeddingIdentity, Vector
from gateway.index.fill import FillReport, VectorFiller
from gateway.index.rarity import Rarity
from gateway.index.schema import (
    IndexedNote,
    Row,
    arrow_rows,
    chunks_schema,
    note_rows,
    table_name,
    table_name_of,
)
from gateway.index.scope import one_of
from gateway.index.table import Database, Table
from gateway.index.vectors import PREFIX, VectorCache

WRITE_BATCH_NOTES = 2_000
_DELETE_BATCH = 500
# What `note_etags` says of a note whose rows are of two writes (a crash in between): equal to no etag, so that the
# importer writes it again.
TORN_ETAG = ""


@dataclass(frozen=True, slots=True)
class NoteState:
    """What an upsert left of a note: searchable by keyword now, by meaning where its vectors were known."""

    note_id: str
    etag: str
    chunks: int
    with_vectors: int

    @property
    def complete(self) -> bool:
        """Whether every chunk has its vector."""
        return self.chunks == self.with_vectors


@dataclass(frozen=True, slots=True)
class NamespaceCount:
    """Notes of a namespace; `with_vectors` are those whose chunks all have one."""

    namespace: str
    notes: int
    chunks: int
    with_vectors: int


@dataclass(frozen=True, slots=True)
class OptimisePolicy:
    """When tidying pays, and how long readers of old versions may go on.

    Args:
        max_unindexed_rows: keyword search scans such rows: 11 ms with a few, 44 ms with 1,000 (measured).
        keep_versions_seconds: readers in other processes need old versions for a moment.
    """

    max_unindexed_rows: int = 1_000
    max_fragments: int = 40
    max_writes: int = 200
    keep_versions_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class OptimiseReport:
    """What tidying did; `ran` is False where nothing was over the limits."""

    ran: bool
    unindexed_rows: int
    fragments: int
    seconds: float


class Index:
    """Chunks of notes and their vectors for one embedding identity and generation."""

    def __init__(
        self, database: Database, table: Table, identity: EmbeddingIdentity | None, generation: int, *, created: bool
    ) -> None:
        self.identity = identity
        self.generation = generation
        self.created = created
        self.table = table
        self.rarity = Rarity(table)
        self.direction = CommonDirection(table, identity.dimension) if identity else None
        self.lock = threading.RLock()
        self.vectors = VectorCache(database, identity) if identity else None
        self._filler = VectorFiller(table, self.vectors, identity, self.lock) if identity and self.vectors else None
        self._database = database
        self._known: set[str] | None = None
        self._writes = 0

    @classmethod
    def open(cls, uri: str, identity: EmbeddingIdentity | None, *, generation: int = 0) -> Index:
        """Open the index of a model, creating what is missing.

        `created` is True where the table is new, of another format or had other columns: then it is empty and every
        note must be written.

        Args:
            uri: a folder, or `s3://bucket/prefix`.
            identity: None for keywords only.
        """
        database = Database(uri)
        name = table_name(identity, generation)
        schema = chunks_schema(identity.dimension if identity else None)
        if name in database.names():
            table = database.open(name)
            if table.schema.equals(schema):
                return cls(database, table, identity, generation, created=False)
        return cls(database, database.create_chunks(name, schema), identity, generation, created=True)

    @classmethod
    def existing(cls, uri: str, identity: EmbeddingIdentity | None, *, generation: int) -> Index | None:
        """The index of a model if it is there, in this format, and holds something; nothing is created."""
        database = Database(uri)
        name = table_name(identity, generation)
        if name not in database.names():
            return None
        table = database.open(name)
        same = table.schema.equals(chunks_schema(identity.dimension if identity else None))
        return cls(database, table, identity, generation, created=False) if same and table.count() else None

    @staticmethod
    def generations(uri: str, identity: EmbeddingIdentity | None) -> list[int]:
        """The generations of a model's index in this format, oldest first."""
        prefix = table_name(identity, 0)[:-1]
        names = [name for name in Database(uri).names() if name.startswith(prefix)]
        return sorted(int(name.removeprefix(prefix)) for name in names)

    @staticmethod
    def drop_generation(uri: str, identity: EmbeddingIdentity | None, generation: int) -> None:
        """Remove one generation without opening it; its vectors stay in the cache."""
        Database(uri).drop(table_name(identity, generation))

    @staticmethod
    def drop_table(uri: str, slug: str, generation: int) -> None:
        """The same, where only the model's slug is known (`none` for keywords only)."""
        Database(uri).drop(table_name_of(slug, generation))

    def drop_others(self) -> list[str]:
        """Remove every other chunks table: old generations, formats and models. Cached vectors stay."""
        own = table_name(self.identity, self.generation)
        with self.lock:
            names = [name for name in self._database.names() if name.startswith("chunks_") and name != own]
            for name in names:
                self._database.drop(name)
        return names

    def drop(self) -> None:
        """Remove this generation; the Index is not used again."""
        with self.lock:
            self._database.drop(table_name(self.identity, self.generation))

    def upsert(self, notes: Sequence[IndexedNote]) -> list[NoteState]:
        """Write the notes, replacing all their earlier chunks; later ones win where an id comes twice.

        One LanceDB version for new notes, two where earlier rows must go. Unchanged text costs no embedding.
        """
        distinct = list({note.note_id: note for note in notes}.values())
        states: list[NoteState] = []
        for start in range(0, len(distinct), WRITE_BATCH_NOTES):
            states += self._write(distinct[start : start + WRITE_BATCH_NOTES])
        return states

    def delete(self, note_ids: Iterable[str]) -> None:
        """Remove all chunks of the notes; unknown ids are fine."""
        wanted = list(dict.fromkeys(note_ids))
        with self.lock:
            known = self._known_notes()
            self._delete_rows([note_id for note_id in wanted if note_id in known])
            known.difference_update(wanted)

    def note_etags(self) -> dict[str, str]:
        """The etag of every indexed note; `TORN_ETAG` for one that must be written again."""
        return etags_in(self.table)

    def counts(self, namespaces: Sequence[str] | None = None) -> list[NamespaceCount]:
        """Notes and vectors of each namespace, by name."""
        chunks: dict[str, int] = {}
        notes: dict[str, set[str]] = {}
        pending: dict[str, set[str]] = {}
        where = None if namespaces is None else one_of("namespace", namespaces)
        for namespace, note_id, has_vector in self._values("namespace", "note_id", "has_vector", where=where):
            chunks[namespace] = chunks.get(namespace, 0) + 1
            notes.setdefault(namespace, set()).add(note_id)
            if not has_vector:
                pending.setdefault(namespace, set()).add(note_id)
        return [
            NamespaceCount(name, len(ids), chunks[name], len(ids) - len(pending.get(name, ())))
            for name, ids in sorted(notes.items())
        ]

    def needs_optimise(self, policy: OptimisePolicy | None = None) -> bool:
        """Whether a limit of the policy is exceeded."""
        policy = policy or OptimisePolicy()
        state = self.table.state()
        return (
            state.unindexed_rows > policy.max_unindexed_rows
            or state.fragments > policy.max_fragments
            or self._writes > policy.max_writes
        )

    def needs_cleaning(self, policy: OptimisePolicy) -> bool:
        """Whether old versions lie on disk that no reader needs any more."""
        tables = [self.table, *([self.vectors.table] if self.vectors else [])]
        return any(table.stale_versions(policy.keep_versions_seconds) for table in tables)

    def orphan_vectors(self) -> set[str]:
        """Hashes of texts that have a vector in the cache, but stand in no note."""
        if self.vectors is None:
            return set()
        used = {text_hash for (text_hash,) in self._values("text_hash")}
        return self.vectors.hashes() - used

    def drop_vectors(self, hashes: Sequence[str]) -> int:
        """Remove cached vectors, except of texts that stand in a note by now. Returns how many are gone."""
        if self.vectors is None or not hashes:
            return 0
        with self.lock:
            back = {text_hash for (text_hash,) in self._values("text_hash", where=one_of("text_hash", hashes))}
            gone = [text_hash for text_hash in hashes if text_hash not in back]
            self.vectors.remove(gone)
            self._writes += 1
        return len(gone)

    def other_caches(self) -> list[str]:
        """Names of vector caches of other embedding identities."""
        own = self.vectors.name if self.vectors else None
        return sorted(name for name in self._database.names() if name.startswith(PREFIX) and name != own)

    def drop_cache(self, name: str) -> None:
        """Remove the vector cache of another identity."""
        if name in self.other_caches():
            self._database.drop(name)

    def optimise(self, policy: OptimisePolicy | None = None, *, force: bool = False) -> OptimiseReport:
        """Tidy chunks and vector cache where a limit is exceeded or when forced; waits for writes, and they for it."""
        policy = policy or OptimisePolicy()
        started = time.monotonic()
        with self.lock:
            if ran := force or self.needs_optimise(policy):
                self.table.optimise(policy.keep_versions_seconds)
                if self.vectors is not None:
                    self.vectors.table.optimise(policy.keep_versions_seconds)
                self._writes = 0
            state = self.table.state()
        return OptimiseReport(ran, state.unindexed_rows, state.fragments, time.monotonic() - started)

    def missing_vectors(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` distinct `(text_hash, text)` that want a vector, poison left out."""
        return self._filler.missing(limit) if self._filler else []

    def pending_vectors(self) -> int:
        """Chunks that want a vector, poison included."""
        return self.table.count("has_vector = false") if self._filler else 0

    def fill_vectors(self, embedder: Embedder, *, limit: int = 64, batch: int = 8) -> FillReport:
        """Embed at most `limit` pending texts, `batch` at a time; writes and searches go on meanwhile."""
        if self._filler is None:
            return FillReport()
        report = self._filler.fill(embedder, limit=limit, batch=batch)
        if self.direction is not None:
            self.direction.vectors_added(max(report.embedded, len(report.completed)))
        return report

    def _write(self, notes: Sequence[IndexedNote]) -> list[NoteState]:
        write_id = uuid.uuid4().hex[:12]
        # Cutting and tokenising needs no lock.
        rows_of = {note.note_id: note_rows(note, write_id) for note in notes}
        rows = [row for note_rows_ in rows_of.values() for row in note_rows_]
        with self.lock:
            vectors = self._cached_vectors(rows)
            known = self._known_notes()
            if rows:
                self.table.add(arrow_rows(rows, vectors, self.identity.dimension if self.identity else None))
                self._writes += 1
            self._delete_rows([note.note_id for note in notes if note.note_id in known], keep=write_id)
            known.update(note_id for note_id, its_rows in rows_of.items() if its_rows)
        self.rarity.note_written(len(rows))
        if self.direction is not None:
            self.direction.vectors_added(sum(vector is not None for vector in vectors))
        return [_state(note, rows_of[note.note_id]) for note in notes]

    def _cached_vectors(self, rows: Sequence[Row]) -> list[Vector | None]:
        cached = self.vectors.get(row["text_hash"] for row in rows) if self.vectors else {}
        vectors = [cached.get(row["text_hash"]) for row in rows]
        for row, vector in zip(rows, vectors, strict=True):
            row["has_vector"] = vector is not None
        return vectors

    def _delete_rows(self, note_ids: Sequence[str], *, keep: str | None = None) -> None:
        for start in range(0, len(note_ids), _DELETE_BATCH):
            where = one_of("note_id", note_ids[start : start + _DELETE_BATCH])
            self.table.delete(f"{where} AND write_id <> '{keep}'" if keep else where)
            self._writes += 1

    def _known_notes(self) -> set[str]:
        if self._known is None:
            self._known = {note_id for (note_id,) in self._values("note_id")}
        return self._known

    def _values(self, *columns: str, where: str | None = None) -> Iterator[tuple[str, ...]]:
        yield from _values_in(self.table, *columns, where=where)


def etags_in(table: Table) -> dict[str, str]:
    """The etag of every note in a chunks table; `TORN_ETAG` for one whose rows come from two writes."""
    etags: dict[str, str] = {}
    writes: dict[str, str] = {}
    for note_id, etag, write_id in _values_in(table, "note_id", "etag", "write_id"):
        torn = writes.setdefault(note_id, write_id) != write_id
        etags[note_id] = TORN_ETAG if torn else etags.get(note_id, etag)
    return etags


def states_in(table: Table) -> dict[str, tuple[str, int, bool]]:
    """Of every note in a chunks table: etag, `updated_at` of the row it was made from, and whether all its vectors are
    there; notes whose rows come from two writes are left out."""
    found: dict[str, tuple[str, int, bool]] = {}
    writes: dict[str, str] = {}
    torn: set[str] = set()
    columns = ("note_id", "etag", "write_id", "updated_at", "has_vector")
    for note_id, etag, write_id, at, whole in _values_in(table, *columns):
        if writes.setdefault(note_id, write_id) != write_id:
            torn.add(note_id)
        before = found.get(note_id)
        found[note_id] = (etag, int(at), bool(whole) and (before is None or before[2]))
    return {note_id: state for note_id, state in found.items() if note_id not in torn}


def _values_in(table: Table, *columns: str, where: str | None = None) -> Iterator[tuple[str, ...]]:
    for batch in table.scan(columns, where):
        yield from zip(*(batch[column].to_pylist() for column in columns), strict=True)


def _state(note: IndexedNote, rows: Sequence[Row]) -> NoteState:
    with_vectors = sum(bool(row["has_vector"]) for row in rows)
    return NoteState(note.note_id, note.etag, len(rows), with_vectors)

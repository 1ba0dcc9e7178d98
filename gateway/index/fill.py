"""Gives pending chunks their vectors in the background: embed, remember for ever, then update the rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.errors import EmbeddingFailed
from gateway.index.embed import Embedder, EmbeddingIdentity, Vector
from gateway.index.schema import arrow_vector_updates, embedding_text
from gateway.index.scope import one_of
from gateway.index.table import Table
from gateway.index.vectors import VectorCache

MAX_ATTEMPTS = 3
_COLUMNS = ("text_hash", "title", "summary", "heading", "text")


@dataclass(frozen=True, slots=True)
class FillReport:
    """What one round did.

    Args:
        embedded: texts that got a vector now.
        completed: `(note_id, etag)` of notes whose chunks all have vectors now.
        given_up: hashes of texts that failed `MAX_ATTEMPTS` times and are not tried again until a restart.
        error: why the round stopped early, or None.
    """

    embedded: int = 0
    completed: tuple[tuple[str, str], ...] = ()
    given_up: tuple[str, ...] = ()
    error: EmbeddingFailed | None = None


@dataclass(slots=True)
class VectorFiller:
    """Fills the vectors of one chunks table; remembers in memory which texts fail. `lock` serialises the writes."""

    table: Table
    cache: VectorCache
    identity: EmbeddingIdentity
    lock: threading.RLock
    _failures: dict[str, int] = field(default_factory=dict[str, int])
    _round: threading.Lock = field(default_factory=threading.Lock)

    @property
    def given_up(self) -> tuple[str, ...]:
        """Hashes of texts that are not tried again."""
        return tuple(key for key, failures in self._failures.items() if failures >= MAX_ATTEMPTS)

    def missing(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` distinct `(text_hash, text)` that want a vector, those given up left out."""
        texts: dict[str, str] = {}
        given_up = set(self.given_up)
        for batch in self.table.scan(_COLUMNS, "has_vector = false"):
            for row in batch.to_pylist():
                key = row["text_hash"]
                if key not in texts and key not in given_up:
                    texts[key] = embedding_text(row)
                    if len(texts) >= limit:
                        return list(texts.items())
        return list(texts.items())

    def pending(self) -> int:
        """Chunks without a vector."""
        return self.table.count("has_vector = false")

    def fill(self, embedder: Embedder, *, limit: int = 64, batch: int = 8) -> FillReport:
        """One round: at most `limit` texts, embedded `batch` at a time without holding the index's lock."""
        if embedder.identity != self.identity:
            return FillReport(error=EmbeddingFailed("The index belongs to another embedding model."))
        with self._round:
            missing = self.missing(limit)
            # A crash after the cache was written and before the rows were leaves such.
            known = self.cache.get(key for key, _ in missing)
            vectors, error = self._embedded(embedder, [item for item in missing if item[0] not in known], batch)
            completed = self._store(known | vectors)
        return FillReport(len(vectors), completed, self.given_up, error)

    def _embedded(
        self, embedder: Embedder, missing: Sequence[tuple[str, str]], batch: int
    ) -> tuple[dict[str, Vector], EmbeddingFailed | None]:
        """What could be embedded, and the error that ended it early: finished vectors are kept in any case."""
        vectors: dict[str, Vector] = {}
        for start in range(0, len(missing), batch):
            part = missing[start : start + batch]
            try:
                results = embedder.embed_passages([text for _, text in part])
            except EmbeddingFailed as error:
                return vectors, error
            for (key, _), vector in zip(part, results, strict=True):
                if vector is None:
                    self._failures[key] = self._failures.get(key, 0) + 1
                else:
                    vectors[key] = vector
                    self._failures.pop(key, None)
        return vectors, None

    def _store(self, vectors: Mapping[str, Vector]) -> tuple[tuple[str, str], ...]:
        if not vectors:
            return ()
        with self.lock:
            self.cache.add(vectors)
            waiting = self._rows(f"{one_of('text_hash', list(vectors))} AND has_vector = false")
            if waiting:
                chunk_ids = [chunk_id for chunk_id, *_ in waiting]
                found = [vectors[key] for *_, key in waiting]
                self.table.update_matching("chunk_id", arrow_vector_updates(chunk_ids, found, self.identity.dimension))
            notes = {note_id: etag for _, note_id, etag, _ in waiting}
            unfinished = self._unfinished(list(notes))
        return tuple((note_id, etag) for note_id, etag in notes.items() if note_id not in unfinished)

    def _unfinished(self, note_ids: Sequence[str]) -> set[str]:
        if not note_ids:
            return set()
        return {note_id for _, note_id, *_ in self._rows(f"{one_of('note_id', note_ids)} AND has_vector = false")}

    def _rows(self, where: str) -> list[tuple[str, str, str, str]]:
        columns = ("chunk_id", "note_id", "etag", "text_hash")
        return [
            row
            for batch in self.table.scan(columns, where)
            for row in zip(*(batch[column].to_pylist() for column in columns), strict=True)
        ]

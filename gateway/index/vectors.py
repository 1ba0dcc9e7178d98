"""The vector cache: one vector for each text ever embedded with a model. Append only; it outlives rebuilds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gateway.index.embed import EmbeddingIdentity, Vector
from gateway.index.schema import arrow_vectors, vectors_schema
from gateway.index.scope import one_of
from gateway.index.table import Database, Table

PREFIX = "vectors_"
_LOOKUP_BATCH = 500
_KEY = "text_hash"


class VectorCache:
    """Vectors by text hash. Its owner serialises the writes."""

    def __init__(self, database: Database, identity: EmbeddingIdentity) -> None:
        self._dimension = identity.dimension
        self.name = f"{PREFIX}{identity.slug}"
        self._table = _opened(database, self.name, identity.dimension)
        self._hashes: set[str] | None = None

    @property
    def table(self) -> Table:
        """The table, for tidying."""
        return self._table

    def get(self, hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors that are there."""
        known = self._known()
        wanted = [text_hash for text_hash in dict.fromkeys(hashes) if text_hash in known]
        found: dict[str, Vector] = {}
        for start in range(0, len(wanted), _LOOKUP_BATCH):
            where = one_of(_KEY, wanted[start : start + _LOOKUP_BATCH])
            for batch in self._table.scan([_KEY, "vector"], where):
                found.update(zip(batch[_KEY].to_pylist(), _matrix(batch["vector"], self._dimension), strict=True))
        return found

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Store the vectors of texts that have none yet."""
        known = self._known()
        new = {text_hash: vector for text_hash, vector in vectors.items() if text_hash not in known}
        if not new:
            return
        self._table.add(arrow_vectors(list(new), list(new.values()), self._dimension))
        known.update(new)

    def hashes(self) -> set[str]:
        """The hashes of all texts that have a vector here."""
        return set(self._known())

    def remove(self, hashes: Sequence[str]) -> None:
        """Remove vectors."""
        for start in range(0, len(hashes), _LOOKUP_BATCH):
            self._table.delete(one_of(_KEY, hashes[start : start + _LOOKUP_BATCH]))
        self._known().difference_update(hashes)

    def _known(self) -> set[str]:
        if self._hashes is None:
            self._hashes = {text_hash for batch in self._table.scan([_KEY]) for text_hash in batch[_KEY].to_pylist()}
        return self._hashes


def _opened(database: Database, name: str, dimension: int) -> Table:
    schema = vectors_schema(dimension)
    if name in database.names():
        table = database.open(name)
        if table.schema.equals(schema):
            return table
    return database.create_keyed(name, schema, _KEY)


def _matrix(column: Any, dimension: int) -> Sequence[Vector]:
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return list(cast("np.ndarray[Any, np.dtype[np.float32]]", flat).reshape(-1, dimension))

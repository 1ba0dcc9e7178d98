"""Takes out of a query's vector what all passages have in common.

Embedding models put all texts into one narrow cone: every passage is near every query, and one that lies in the middle
of the cone (short, vague) is near all of them. What is left without the mean tells passages apart. Only the query is
changed, so stored vectors stay as they are, and a table's mean may drift.
"""

from __future__ import annotations

import numpy as np

from gateway.index.embed import Vector, unit
from gateway.index.sampled import Sampled
from gateway.index.table import Table

SAMPLE_ROWS = 2_000
# The mean of a few passages is mostly their topic: as if so many more pointed nowhere, it counts little at first.
PRIOR_PASSAGES = 64
_NOTHING_LEFT = 1e-3


class CommonDirection:
    """The mean of a table's vectors."""

    def __init__(self, table: Table, dimension: int) -> None:
        self._table = table
        self._dimension = dimension
        self._mean = Sampled(self._sample, np.zeros(dimension, dtype=np.float32))

    def vectors_added(self, rows: int) -> None:
        """Count vectors that the mean does not know yet."""
        self._mean.grown(rows)

    def taken_out_of(self, query: Vector) -> Vector:
        """The query without the mean, of length one; the query itself where nothing would be left."""
        rest = query - self._mean.value()
        direction = unit(rest) if float(np.linalg.norm(rest)) > _NOTHING_LEFT else None
        return query if direction is None else direction

    def _sample(self) -> tuple[Vector, int]:
        total = np.zeros(self._dimension, dtype=np.float64)
        rows = 0
        for batch in self._table.sample(["vector"], SAMPLE_ROWS):
            # A row whose vector is still to come has none.
            for vectors in getattr(batch["vector"], "chunks", [batch["vector"]]):
                flat = vectors.drop_null().flatten().to_numpy(zero_copy_only=False)
                total += flat.reshape(-1, self._dimension).sum(axis=0, dtype=np.float64)
                rows += len(flat) // self._dimension
        return (total / (rows + PRIOR_PASSAGES)).astype(np.float32), rows

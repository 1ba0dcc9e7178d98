"""How rare a token is among the indexed chunks, from a sample: LanceDB does not tell its document frequencies."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable

from gateway.index.table import Table

SAMPLE_ROWS = 4_000


class Rarity:
    """Inverse document frequencies; the first use reads the sample, later growth refreshes it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._frequencies: Counter[str] = Counter()
        self._sampled = 0
        self._rows_since: float = math.inf

    def note_written(self, rows: int) -> None:
        """Count rows that the sample does not know yet."""
        self._rows_since += rows

    def weights(self, tokens: Iterable[str]) -> dict[str, float]:
        """BM25's idf of each token, always positive; a token that the sample lacks weighs most."""
        frequencies, sampled = self._current()
        return {
            token: math.log1p((sampled - frequencies[token] + 0.5) / (frequencies[token] + 0.5)) for token in tokens
        }

    def _current(self) -> tuple[Counter[str], int]:
        # A sample is good until the table has grown by half; one thread refreshes, others use what is there.
        if self._rows_since > max(100, self._sampled // 2) and self._lock.acquire(blocking=self._sampled == 0):
            try:
                if self._rows_since > max(100, self._sampled // 2):
                    self._sample()
            finally:
                self._lock.release()
        return self._frequencies, self._sampled

    def _sample(self) -> None:
        frequencies: Counter[str] = Counter()
        sampled = 0
        for batch in self._table.sample(["tokens"], SAMPLE_ROWS):
            for tokens in batch["tokens"].to_pylist():
                frequencies.update(set(tokens.split()))
                sampled += 1
        self._rows_since = 0
        self._frequencies, self._sampled = frequencies, sampled

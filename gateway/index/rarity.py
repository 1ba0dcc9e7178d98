"""How much a token tells about a text, from a sample of the table: LanceDB does not give its document frequencies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.index.dates import is_day
from gateway.index.sampled import Sampled
from gateway.index.table import Table
from gateway.index.tokens import is_unspaced

SAMPLE_ROWS = 4_000
# Two characters that stand together by chance still tell a little.
LOOSE_PAIR = 0.1


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """In how many rows each token is; `unspaced` counts the rows that hold a script without blanks."""

    rows: int = 0
    unspaced: int = 0
    of: Counter[str] = field(default_factory=Counter[str])


class Rarity:
    """Weights of tokens by their document frequencies."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._sampled = Sampled(self._sample, _Frequencies())

    def note_written(self, rows: int) -> None:
        """Count rows that the sample does not know yet."""
        self._sampled.grown(rows)

    def weights(self, tokens: Iterable[str]) -> dict[str, float]:
        """The weight of each token, always positive; one that the sample lacks weighs most.

        A word weighs its idf squared, so that the many common words of a question do not outweigh its few rare ones.
        A pair of unspaced characters weighs its idf times what its characters tell about each other (pointwise mutual
        information): a pair across two words is rare too, but by chance. A day weighs as much as a word that is
        nowhere: who asks for a day means that day, however much was written on it.
        """
        known = self._sampled.value()
        return {token: _weight(token, known) for token in tokens}

    def _sample(self) -> tuple[_Frequencies, int]:
        frequencies: Counter[str] = Counter()
        rows = unspaced = 0
        for batch in self._table.sample(["tokens"], SAMPLE_ROWS):
            for tokens in batch["tokens"].to_pylist():
                distinct = set(tokens.split())
                frequencies.update(distinct)
                rows += 1
                unspaced += any(len(token) == 1 and is_unspaced(token) for token in distinct)
        return _Frequencies(rows, unspaced, frequencies), rows


def _weight(token: str, known: _Frequencies) -> float:
    if len(token) == 2 and is_unspaced(token):
        first, second, pair = (_idf(known.of[part], known.unspaced) for part in (token[0], token[1], token))
        return pair * max(LOOSE_PAIR, first + second - pair)
    return _idf(0 if is_day(token) else known.of[token], known.rows) ** 2


def _idf(frequency: int, rows: int) -> float:
    return math.log1p((max(0, rows - frequency) + 0.5) / (frequency + 0.5))

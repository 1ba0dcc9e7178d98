"""Something that is learnt from a sample of the table: read at first use, and again when the table has grown."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

# A sample is good until the table has grown by half; a small one costs little to read again.
_SMALL = 20

T = TypeVar("T")


class Sampled(Generic[T]):
    """A value and how many rows it was learnt from.

    Args:
        read: reads the sample: the value, and its number of rows.
        unknown: the value as long as nothing was read.
    """

    def __init__(self, read: Callable[[], tuple[T, int]], unknown: T) -> None:
        self._read = read
        self._value = unknown
        self._rows = 0
        self._rows_since: float = math.inf
        self._lock = threading.Lock()

    def grown(self, rows: int) -> None:
        """Count rows that the sample does not know yet."""
        self._rows_since += rows

    def value(self) -> T:
        """The value, read anew where it is due; one thread reads, others use what is there."""
        if self._due() and self._lock.acquire(blocking=self._rows == 0):
            try:
                if self._due():
                    self._rows_since = 0
                    self._value, self._rows = self._read()
            except BaseException:
                self._rows_since = math.inf
                raise
            finally:
                self._lock.release()
        return self._value

    def _due(self) -> bool:
        return self._rows_since > max(_SMALL, self._rows // 2)

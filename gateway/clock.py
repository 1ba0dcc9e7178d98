"""The clock of everything that is dated: one for the process, replaceable where a test lives a day in a minute.

Deadlines and measurements use `time.monotonic`, which nobody replaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime

Clock = Callable[[], int]


def wall_clock() -> int:
    """Milliseconds since 1970 UTC by the machine's clock."""
    return time.time_ns() // 1_000_000


_clock: list[Clock] = [wall_clock]


def now_ms() -> int:
    """The time in milliseconds since 1970 UTC, the unit of every time in the ledger."""
    return _clock[0]()


def now() -> datetime:
    """The time, in UTC, to the millisecond."""
    return datetime.fromtimestamp(now_ms() / 1000, UTC)


def use_clock(clock: Clock) -> None:
    """Go by another clock from now on; it gives milliseconds since 1970 UTC."""
    _clock[0] = clock


@contextmanager
def clock_set(clock: Clock) -> Generator[None]:
    """Go by another clock for a while."""
    before = _clock[0]
    _clock[0] = clock
    try:
        yield
    finally:
        _clock[0] = before

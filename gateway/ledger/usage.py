"""How often a memory was shown, and when last: what is used stays, what nobody asks for fades (seed 004 section H)."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Ledger, Transaction, inserting
from gateway.ledger.schema import notes
from gateway.ledger.schema_upkeep import turns, usage

_MOST_REMEMBERED = 50_000
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Use:
    """Turns in which a memory was shown, and the time of the last one (ms since 1970 UTC)."""

    hits: int
    last_hit_at: int


def count(tx: Transaction, hits: Mapping[str, int]) -> None:
    """Add hits by note id."""
    if not hits:
        return
    at = now_ms()
    statement = inserting(tx, usage)
    more = {"hits": usage.c.hits + statement.excluded.hits, "last_hit_at": statement.excluded.last_hit_at}
    rows = [{"note_id": note_id, "hits": number, "last_hit_at": at} for note_id, number in hits.items()]
    tx.execute(statement.on_conflict_do_update(index_elements=["note_id"], set_=more), rows)


def of(tx: Transaction, note_ids: Collection[str]) -> dict[str, Use]:
    """The use of memories that were ever shown."""
    query = sa.select(usage.c.note_id, usage.c.hits, usage.c.last_hit_at).where(usage.c.note_id.in_(list(note_ids)))
    return {row[0]: Use(row[1], row[2]) for row in tx.execute(query)}


def turn_of(*parts: str | None) -> str:
    """The key of a turn: whose, in which session, and what the caller calls it."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def trim_turns(tx: Transaction, older_than: int, *, most: int = 100_000) -> int:
    """Forget which memories were shown in turns from before a time (ms), at most so many. Returns how many."""
    key = sa.tuple_(turns.c.turn, turns.c.note_id)
    old = sa.select(turns.c.turn, turns.c.note_id).where(turns.c.at < older_than).limit(most)
    return tx.execute(sa.delete(turns).where(key.in_(old))).rowcount


class UseBuffer:
    """What was shown, written at most a second later and at the stop: a search must not wait for a disk.

    Bounded: what comes while very much waits already is not counted.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._shown: list[tuple[str | None, str]] = []
        self._lock = threading.Lock()

    def shown(self, turn: str | None, note_ids: Iterable[str]) -> None:
        """These memories were shown in a turn (`turn_of`); None: the request is a turn by itself."""
        with self._lock:
            if len(self._shown) < _MOST_REMEMBERED:
                self._shown.extend((turn, note_id) for note_id in dict.fromkeys(note_ids))

    def flush(self) -> int:
        """Count what is remembered. Returns how many hits were counted."""
        with self._lock:
            shown, self._shown = self._shown, []
        if not shown:
            return 0
        with self._ledger.write() as tx:
            known = _known(tx, {note_id for _, note_id in shown})
            free = [note_id for turn, note_id in shown if turn is None and note_id in known]
            named = {(turn, note_id) for turn, note_id in shown if turn is not None and note_id in known}
            hits = Counter([*free, *(note_id for _, note_id in _first_time(tx, named))])
            count(tx, hits)
        return hits.total()


def _known(tx: Transaction, note_ids: Collection[str]) -> set[str]:
    """Those that are still there: what was forgotten since must not be counted into being."""
    found: set[str] = set()
    ordered = list(note_ids)
    for start in range(0, len(ordered), _AT_ONCE):
        query = sa.select(notes.c.note_id).where(notes.c.note_id.in_(ordered[start : start + _AT_ONCE]))
        found.update(row[0] for row in tx.execute(query))
    return found


def _first_time(tx: Transaction, pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those (turn, memory) that were not counted before; they are from now on."""
    before: set[tuple[str, str]] = set()
    ordered = list({turn for turn, _ in pairs})
    for start in range(0, len(ordered), _AT_ONCE):
        where = turns.c.turn.in_(ordered[start : start + _AT_ONCE])
        before.update((row[0], row[1]) for row in tx.execute(sa.select(turns.c.turn, turns.c.note_id).where(where)))
    new = [pair for pair in pairs if pair not in before]
    if new:
        at = now_ms()
        tx.execute(sa.insert(turns), [{"turn": turn, "note_id": note_id, "at": at} for turn, note_id in new])
    return new

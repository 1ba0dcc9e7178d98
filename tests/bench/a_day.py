"""A day in fast-forward: `python -m tests.bench.a_day --writes 50000 --deletes 5000`.

The clock is ours, everything else is real: vault, git, ledger, index. Each quarter of an hour there are writes (new
notes and changes), deletions and searches, then the background steps run. Sizes on disk are printed over the day, and
held against what is alive at its end.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import Gateway, open_gateway
from gateway.clock import clock_set
from gateway.config import load_settings
from gateway.importer.write import Order
from gateway.ledger import registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.journal import Actor
from gateway.notes.text import new_memory_id
from gateway.services import rebuild
from gateway.services.requests import Search
from gateway.services.search import search
from gateway.workers.upkeep import maintenance
from tests.bench.ingest import Deterministic

QUARTERS = 96
QUARTER_MS = 900_000
CHANGED = 0.3
BATCH = 200
WORDS = Path(__file__).with_name("README.md").read_text("utf-8").split()
ACTOR = Actor("agent", "agent:day", "Day", "day@memory.local")
ENTRY = AuditEntry("write", "memory", None, "user/owner/long_term", "allow", "a day")


@dataclass(slots=True)
class Sizes:
    """Bytes on disk, and of the notes that are alive."""

    index: int
    ledger: int
    repository: int
    alive: int
    notes: int


@dataclass(slots=True)
class Day:
    """One day of one gateway; `written` counts the bytes of every version."""

    gateway: Gateway
    clock: list[int]
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    alive: dict[str, tuple[str, str]] = field(default_factory=dict)
    written: int = 0
    writes: int = 0
    deletes: int = 0
    upkeep: dict[str, int] = field(default_factory=dict)

    def note(self, memory_id: str) -> bytes:
        """Some hundred bytes of text that nothing else says."""
        body = " ".join(self.chance.choices(WORDS, k=40))
        return f"---\nid: {memory_id}\ntype: fact\n---\n{body} {self.chance.getrandbits(64):x}\n".encode()

    def orders(self, writes: int, deletes: int) -> Iterable[Order]:
        """What is asked for in one quarter of an hour; different notes."""
        touched: set[str] = set()
        ids = list(self.alive)
        for _ in range(writes):
            old = self.chance.choice(ids) if ids and self.chance.random() < CHANGED else None
            if old is not None and old not in touched:
                touched.add(old)
                path, etag = self.alive[old]
                yield Order("update", old, path, etag, self.note(old), ACTOR, ENTRY, may_return=False)
            else:
                made = new_memory_id()
                path = f"Memories/LongTerm/{made[4:6]}/{made}.md"
                yield Order("create", made, path, None, self.note(made), ACTOR, ENTRY, may_return=False)
        for gone in self.chance.sample([one for one in ids if one not in touched], min(deletes, len(ids) // 2)):
            path, etag = self.alive[gone]
            yield Order("delete", gone, path, etag, None, ACTOR, ENTRY, may_return=False)

    def quarter(self, writes: int, deletes: int) -> None:
        """One quarter of an hour: requests, then what happens by itself."""
        parts = self.gateway.parts
        orders = list(self.orders(writes, deletes))
        for first in range(0, len(orders), BATCH):
            some = orders[first : first + BATCH]
            for order, outcome in zip(some, parts.writes.write_all(some), strict=True):
                row = outcome.unwrap()
                if order.op == "delete":
                    del self.alive[order.note_id]
                    self.deletes += 1
                else:
                    self.alive[order.note_id] = (row.path, row.etag)
                    self.writes += 1
                    self.written += len(order.data or b"")
        for number in range(3):
            asked = Search(query=" ".join(self.chance.choices(WORDS, k=3)), turn_id=f"{self.clock[0]} {number}")
            search(LOCAL_OPERATOR, parts, self.gateway.query_vectors, asked)
        self.clock[0] += QUARTER_MS
        self.by_itself()

    def by_itself(self) -> None:
        """The background threads' steps, by hand."""
        parts = self.gateway.parts
        parts.feed.feed()
        parts.feed.fill_vectors()
        parts.committer.flush()
        parts.writes.settle_spares()
        parts.reads.flush()
        parts.uses.flush()
        for name, number in self.gateway.workers.maintenance.run().items():
            self.upkeep[name] = self.upkeep.get(name, 0) + number

    def sizes(self) -> Sizes:
        """What lies on the disk now."""
        parts = self.gateway.parts
        ledger = Path(parts.ledger.file)
        files = [ledger, ledger.with_name(ledger.name + "-wal")]
        root = parts.files.root
        alive = sum((root / path).stat().st_size for path, _ in self.alive.values())
        return Sizes(
            disk(Path(parts.settings.index_location)),
            sum(file.stat().st_size for file in files if file.exists()),
            disk(parts.history.git_dir),
            alive,
            len(self.alive),
        )


def disk(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(os.lstat(Path(at) / name).st_size for at, _, names in os.walk(folder) for name in names)


def live(data: Path, writes: int, deletes: int, *, quarters: int = QUARTERS, tell=print) -> tuple[Day, Sizes, int]:
    """A day. Returns it, the sizes at its end, and the bytes of an index that is built anew from the same notes."""
    clock = [time.time_ns() // 1_000_000]
    settings = load_settings(data_dir=data, index={"keep_versions_seconds": 0}, policy={"audit_days": 1})
    with clock_set(lambda: clock[0]):
        gateway = open_gateway(settings, embedder=Deterministic(), clock=lambda: clock[0])
        try:
            gateway.settle()
            day = Day(gateway, clock)
            gateway.workers.maintenance = maintenance(gateway.parts)
            tell(f"{'hour':>5} {'notes':>7} {'alive':>9} {'index':>9} {'ledger':>9} {'git':>9}  (KiB)")
            for number in range(quarters):
                day.quarter(writes // quarters, deletes // quarters)
                if (number + 1) % max(1, quarters // 12) == 0:
                    row(day, (number + 1) / 4, tell)
            for _ in range(3):  # a quiet hour: what is due is tidied
                clock[0] += 4 * QUARTER_MS
                day.by_itself()
            end = day.sizes()
            row(day, quarters / 4 + 3, tell)
            fresh = built_anew(day)
            check(gateway, day)
        finally:
            gateway.close()
    return day, end, fresh


def row(day: Day, hour: float, tell) -> None:
    """One line of the table."""
    now = day.sizes()
    numbers = (now.alive, now.index, now.ledger, now.repository)
    tell(f"{hour:5.1f} {now.notes:7,} " + " ".join(f"{number // 1024:9,}" for number in numbers))


def built_anew(day: Day) -> int:
    """The size of an index of the same notes that never saw a change."""
    rebuild.rebuild(LOCAL_OPERATOR, day.gateway.parts)
    day.gateway.parts.feed.optimise(force=True)
    return disk(Path(day.gateway.parts.settings.index_location))


def check(gateway: Gateway, day: Day) -> None:
    """Vault, ledger and index say the same."""
    with gateway.parts.ledger.read() as tx:
        known = {one: etag for one, etag, _, _ in registry.note_revisions(tx)}
    indexed = gateway.parts.feed.index.note_etags()
    alive = {one: etag for one, (_, etag) in day.alive.items()}
    assert {one for one, etag in alive.items() if known.get(one) != etag or indexed.get(one) != etag} == set()
    assert set(indexed) <= set(known)


def verdict(day: Day, end: Sizes, fresh: int, tell=print) -> None:
    """The bounds: they depend on what is alive (index) and on what was written (history), not on how long it took."""
    versions = day.writes + day.deletes
    index, per_version = end.index / fresh, end.ledger / versions
    git = end.repository / max(1, day.written)
    tell(f"{day.writes:,} writes, {day.deletes:,} deletes, {end.notes:,} notes alive; tidied: {day.upkeep}")
    tell(f"index: {index:.2f} of one built anew, {end.index / end.alive:.1f} of the living text")
    tell(f"ledger: {per_version:,.0f} bytes a version, {end.ledger / end.alive:.1f} of the living text")
    tell(f"git: {git:.2f} of all text ever written, {end.repository / end.alive:.1f} of the living text")
    assert index < 1.5, "the index grows with its history"
    assert per_version < 8_192, "the ledger keeps too much of each version"
    assert git < 3.0, "the repository is not folded"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=5_000)
    parser.add_argument("--deletes", type=int, default=500)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        day, end, fresh = live(Path(folder) / "data", chosen.writes, chosen.deletes)
        verdict(day, end, fresh)
        print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

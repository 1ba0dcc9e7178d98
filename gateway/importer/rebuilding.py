"""Builds a new generation of the index from the vault, beside the one that serves; cached vectors are reused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from gateway.config import Settings
from gateway.errors import GatewayError
from gateway.importer.importer import Importer
from gateway.importer.indexing import IndexFeed
from gateway.importer.rows import HELD, indexed_note
from gateway.index.schema import IndexedNote
from gateway.index.store import Index
from gateway.ledger import Transaction, meta, registry
from gateway.notes.note import parse

_BATCH = 1_000


@dataclass(slots=True)
class Generation:
    """A new generation and what it holds: note id → (etag, `updated_at` of its row, whether all vectors are there)."""

    feed: IndexFeed
    states: dict[str, tuple[str, int, bool]] = field(default_factory=lambda: {})


def build(importer: Importer, old: IndexFeed, settings: Settings, tell: Callable[[int, int], None]) -> Generation:
    """Fill the next generation with every readable note.

    Args:
        tell: is told how many notes of how many are written.
    """
    number = old.index.generation + 1
    Index.drop_generation(settings.index_location, old.index.identity, number)  # what a killed rebuild left
    fresh = Index.open(settings.index_location, old.index.identity, generation=number)
    feed = IndexFeed(
        fresh, importer.ledger, importer.files, old.embedder, settings.index, batch=settings.embedding.batch_size
    )
    built = Generation(feed)
    with importer.ledger.read() as tx:
        wanted = [note_id for note_id, _, _, status in registry.note_states(tx) if status != HELD]
    for start in range(0, len(wanted), _BATCH):
        loaded = load(importer, wanted[start : start + _BATCH])
        at = {note.note_id: note.updated_at for note in loaded}
        for state in fresh.upsert(loaded):
            built.states[state.note_id] = (state.etag, at[state.note_id], state.complete)
        tell(min(start + _BATCH, len(wanted)), len(wanted))
    fresh.optimise(force=True)
    return built


def take_over(importer: Importer, old: IndexFeed, built: Generation, switch: Callable[[IndexFeed], None]) -> None:
    """Let the new generation serve; what changed while it was built is fed to it by the usual way."""
    states = built.states
    with importer.lock, old.paused():
        with importer.ledger.write() as tx:
            registry.forget_index_state(tx)
            registry.mark_indexed(tx, [(note_id, *state) for note_id, state in states.items()])
            present = registry.notes_by_id(tx, list(states))
            registry.request_removals(tx, [note_id for note_id in states if note_id not in present])
            remember(tx, built.feed.index)
        built.feed.changed = old.changed
        switch(built.feed)
    built.feed.feed()
    built.feed.index.drop_others()


def remember(tx: Transaction, index: Index) -> None:
    """Write down which index serves."""
    identity = index.identity
    meta.put(tx, meta.INDEX_IDENTITY, identity.slug if identity else "none")
    meta.put(tx, meta.INDEX_GENERATION, str(index.generation))
    meta.put(tx, meta.INDEX_MODEL, json.dumps(asdict(identity) if identity else None))


def load(importer: Importer, note_ids: Sequence[str]) -> list[IndexedNote]:
    """The notes of these ids that are readable in the revision which the ledger knows."""
    with importer.ledger.read() as tx:
        rows = registry.notes_by_id(tx, note_ids)
    found: list[IndexedNote] = []
    for row in rows.values():
        try:
            read = importer.files.read(row.path)
        except GatewayError:
            continue  # it is fed when it can be read
        if read is not None and read.etag == row.etag and row.status != HELD:
            found.append(indexed_note(row, parse(read.data, max_bytes=importer.files.max_bytes)))
    return found

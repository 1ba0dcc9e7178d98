"""The registry: one row per memory note and one per known file of the vault."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.dirty import NOTE
from gateway.ledger.schema import files, index_removals, notes
from gateway.ledger.schema_upkeep import dirty, usage
from gateway.ledger.schema_users import structured

# A form that every user has and nobody has filled in: no memory yet.
BLANK = "blank"
# Being cleared: for nobody to read, and soon gone.
CLEARING = "clearing"
# SQLite allows 32,766 variables a statement; PostgreSQL fewer surprises with less.
_IN_LIMIT = 5_000


@dataclass(frozen=True, slots=True)
class NoteRow:
    """What the ledger knows of one memory; times in ms since 1970 UTC. `etag` is the SHA-256 of the file's bytes."""

    note_id: str
    path: str
    path_key: str
    namespace: str
    user_id: str | None
    agent_id: str | None
    workspace_id: str | None
    session_id: str | None
    memory_type: str
    title: str
    summary: str
    tags: list[str]
    importance: float
    confidence: float
    visibility: str
    status: str
    source: str
    source_ref: str | None
    created_at: int
    updated_at: int
    expires_at: int | None
    version: int
    etag: str
    content_hash: str
    read_only: bool
    fts_etag: str | None = None
    vector_etag: str | None = None
    index_error: str | None = None
    temporal_kind: str | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    precision: str | None = None
    timezone: str | None = None
    temporal_confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of the vault as last read; `note_id` is None where it is held or no memory."""

    path: str
    note_id: str | None
    etag: str
    mtime_ns: int
    size: int
    ino: int
    ctime_ns: int
    missing_since: int | None = None

    @property
    def stat_key(self) -> tuple[int, int, int, int]:
        """What a scan compares: same size and restored mtime still differ in ctime."""
        return (self.mtime_ns, self.size, self.ino, self.ctime_ns)


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes a list asks for; None means "any". `reader` is the (user, agent) that notes must be visible to."""

    namespaces: tuple[str, ...] | None = None
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    memory_type: str | None = None
    status: str | None = "active"
    tag: str | None = None
    updated_after: int | None = None
    reader: tuple[str | None, str | None] | None = None


_NOTE_FIELDS = tuple(field.name for field in fields(NoteRow))
_FILE_FIELDS = tuple(field.name for field in fields(FileRow))
_NOTE_COLUMNS = [notes.c[name] for name in _NOTE_FIELDS]
_FILE_COLUMNS = [files.c[name] for name in _FILE_FIELDS]


def note(tx: Transaction, note_id: str) -> NoteRow | None:
    """The memory of this id."""
    row = tx.execute(sa.select(*_NOTE_COLUMNS).where(notes.c.note_id == note_id)).first()
    return NoteRow(*row) if row else None


def notes_by_id(tx: Transaction, note_ids: Collection[str]) -> dict[str, NoteRow]:
    """Several memories at once."""
    return {row.note_id: row for row in _select_notes(tx, notes.c.note_id, note_ids)}


def notes_by_path(tx: Transaction, paths: Collection[str]) -> dict[str, NoteRow]:
    """Memories by the path of their file."""
    return {row.path: row for row in _select_notes(tx, notes.c.path, paths)}


def active_in(tx: Transaction, namespace: str) -> list[NoteRow]:
    """All active memories of one namespace."""
    where = (notes.c.namespace == namespace, notes.c.status == "active")
    return [NoteRow(*row) for row in tx.execute(sa.select(*_NOTE_COLUMNS).where(*where))]


def begin_clearing(tx: Transaction, start: str, kept: Collection[str]) -> int:
    """Hide all memories of namespaces that begin like this, except in those kept; blank forms say nothing and stay.

    Returns:
        How many were not hidden before.
    """
    where = sa.and_(notes.c.namespace.startswith(start, autoescape=True), notes.c.namespace.not_in(list(kept)))
    shown = notes.c.status.not_in([BLANK, CLEARING])
    return tx.execute(sa.update(notes).where(where, shown).values(status=CLEARING)).rowcount


def clearing(tx: Transaction, start: str, limit: int) -> list[NoteRow]:
    """Memories that are being cleared below a namespace, by id."""
    where = sa.and_(notes.c.namespace.startswith(start, autoescape=True), notes.c.status == CLEARING)
    return [
        NoteRow(*row)
        for row in tx.execute(sa.select(*_NOTE_COLUMNS).where(where).order_by(notes.c.note_id).limit(limit))
    ]


def others_saying(tx: Transaction, namespace: str, content_hash: str) -> list[NoteRow]:
    """All memories of a namespace with this normalised text, whatever their state, oldest first."""
    query = sa.select(*_NOTE_COLUMNS).where(notes.c.content_hash == content_hash, notes.c.namespace == namespace)
    return [NoteRow(*row) for row in tx.execute(query.order_by(notes.c.created_at, notes.c.note_id))]


def most_important(tx: Transaction, namespace: str, *, least: float, limit: int, at: int) -> list[NoteRow]:
    """Active memories of a namespace from an importance on that have not expired at a time (ms), most important
    first, then last changed."""
    where = (
        notes.c.namespace == namespace,
        notes.c.status == "active",
        notes.c.importance >= least,
        sa.or_(notes.c.expires_at.is_(None), notes.c.expires_at > at),
    )
    order = (notes.c.importance.desc(), notes.c.updated_at.desc(), notes.c.note_id)
    query = sa.select(*_NOTE_COLUMNS).where(*where).order_by(*order).limit(limit)
    return [NoteRow(*row) for row in tx.execute(query)]


def notes_by_etag(tx: Transaction, etags: Collection[str]) -> list[NoteRow]:
    """Memories whose file has one of these hashes."""
    return list(_select_notes(tx, notes.c.etag, etags))


def files_by_path(tx: Transaction, paths: Collection[str]) -> dict[str, FileRow]:
    """Known files by path."""
    return {
        row[0]: FileRow(*row)
        for part in _parts(paths)
        for row in tx.execute(sa.select(*_FILE_COLUMNS).where(files.c.path.in_(part)))
    }


def all_files(tx: Transaction) -> Iterator[FileRow]:
    """Every known file, for the scan's picture at start."""
    for row in tx.execute(sa.select(*_FILE_COLUMNS).execution_options(yield_per=5_000)):
        yield FileRow(*row)


def save_notes(tx: Transaction, rows: Sequence[NoteRow]) -> None:
    """Insert or replace memories."""
    upsert(tx, notes, [asdict(row) for row in rows], keys=["note_id"])


def save_files(tx: Transaction, rows: Sequence[FileRow]) -> None:
    """Insert or replace files."""
    upsert(tx, files, [asdict(row) for row in rows], keys=["path"])


def drop_files(tx: Transaction, paths: Collection[str]) -> None:
    """Forget these files."""
    for part in _parts(paths):
        tx.execute(sa.delete(files).where(files.c.path.in_(part)))


def drop_notes(tx: Transaction, note_ids: Collection[str]) -> None:
    """Remove memories with all that hangs on their rows, and ask the index to remove them too."""
    for part in _parts(note_ids):
        for table in (notes, structured, usage):
            tx.execute(sa.delete(table).where(table.c.note_id.in_(part)))
        tx.execute(sa.delete(dirty).where(dirty.c.kind == NOTE, dirty.c.key.in_(part)))
        upsert(tx, index_removals, [{"note_id": note_id, "at": now_ms()} for note_id in part], keys=["note_id"])


def park(tx: Transaction, note_ids: Collection[str]) -> None:
    """Free the paths of notes whose own row is about to be written anew."""
    for note_id in note_ids:
        tx.execute(sa.update(notes).where(notes.c.note_id == note_id).values(path=f"\0parked/{note_id}"))


def set_missing(tx: Transaction, paths: Collection[str], since: int | None) -> None:
    """Note when these files were first seen to be gone; None when they are back."""
    for part in _parts(paths):
        tx.execute(sa.update(files).where(files.c.path.in_(part)).values(missing_since=since))


def unindexed(tx: Transaction, limit: int) -> list[NoteRow]:
    """Memories whose newest text is not yet found by keywords, oldest change first."""
    stale = sa.or_(notes.c.fts_etag.is_(None), notes.c.fts_etag != notes.c.etag)
    query = (
        sa.select(*_NOTE_COLUMNS).where(stale, notes.c.index_error.is_(None)).order_by(notes.c.updated_at).limit(limit)
    )
    return [NoteRow(*row) for row in tx.execute(query)]


def removals(tx: Transaction, limit: int) -> list[str]:
    """Ids whose rows the index still has to remove."""
    return list(tx.scalars(sa.select(index_removals.c.note_id).limit(limit)))


def request_removals(tx: Transaction, note_ids: Collection[str]) -> None:
    """Ask the index to remove notes that no longer exist."""
    upsert(tx, index_removals, [{"note_id": note_id, "at": now_ms()} for note_id in note_ids], keys=["note_id"])


def settle_removals(tx: Transaction, note_ids: Collection[str]) -> None:
    """The index has removed them."""
    for part in _parts(note_ids):
        tx.execute(sa.delete(index_removals).where(index_removals.c.note_id.in_(part)))


def mark_indexed(tx: Transaction, states: Sequence[tuple[str, str, int, bool]]) -> None:
    """Record what the index holds: (note id, etag, `updated_at` of the row it was made from, all vectors there).

    A row that changed since, be it only its place, stays to be indexed.
    """
    if not states:
        return
    tx.execute(
        sa.update(notes)
        .where(notes.c.note_id == sa.bindparam("b_id"), notes.c.updated_at == sa.bindparam("b_at"))
        .values(
            fts_etag=sa.bindparam("b_etag"),
            vector_etag=sa.case(
                (sa.bindparam("b_full", type_=sa.Boolean), sa.bindparam("b_etag", type_=sa.String)),
                else_=notes.c.vector_etag,
            ),
            index_error=None,
        ),
        [{"b_id": note_id, "b_etag": etag, "b_at": at, "b_full": full} for note_id, etag, at, full in states],
    )


def mark_vectors(tx: Transaction, done: Sequence[tuple[str, str]]) -> None:
    """These (note id, etag) now have all their vectors."""
    if done:
        tx.execute(
            sa.update(notes)
            .where(notes.c.note_id == sa.bindparam("b_id"), notes.c.etag == sa.bindparam("b_etag"))
            .values(vector_etag=sa.bindparam("b_etag")),
            [{"b_id": note_id, "b_etag": etag} for note_id, etag in done],
        )


def mark_index_error(tx: Transaction, note_id: str, reason: str) -> None:
    """The index cannot take this note; said in its receipt until its text changes."""
    tx.execute(sa.update(notes).where(notes.c.note_id == note_id).values(index_error=reason))


def forget_index_state(tx: Transaction, *, vectors_only: bool = False) -> None:
    """Everything must be indexed anew (another index identity, a lost index)."""
    values: dict[str, Any] = {"vector_etag": None}
    if not vectors_only:
        values |= {"fts_etag": None, "index_error": None}
    tx.execute(sa.update(notes).values(**values))
    if not vectors_only:
        tx.execute(sa.delete(index_removals))


def page(
    tx: Transaction, wanted: NoteFilter, *, limit: int, after: tuple[int, str] | None
) -> tuple[list[NoteRow], int | None]:
    """Memories, newest change first, ids descending within one time.

    Args:
        after: `(updated_at, note_id)` of the last row of the page before.

    Returns:
        The rows, and the total without paging on the first page (None on later ones).
    """
    where = _conditions(wanted)
    total = tx.scalar(sa.select(sa.func.count()).select_from(notes).where(*where)) if after is None else None
    if after is not None:
        at, note_id = after
        where.append(sa.or_(notes.c.updated_at < at, sa.and_(notes.c.updated_at == at, notes.c.note_id < note_id)))
    query = (
        sa.select(*_NOTE_COLUMNS).where(*where).order_by(notes.c.updated_at.desc(), notes.c.note_id.desc()).limit(limit)
    )
    return [NoteRow(*row) for row in tx.execute(query)], total


def note_states(tx: Transaction) -> Iterator[tuple[str, str, str, str]]:
    """(note id, path, etag, status) of every memory, for `check`."""
    query = sa.select(notes.c.note_id, notes.c.path, notes.c.etag, notes.c.status).execution_options(yield_per=5_000)
    for row in tx.execute(query):
        yield (row[0], row[1], row[2], row[3])


def note_revisions(tx: Transaction) -> Iterator[tuple[str, str, int, str]]:
    """(note id, etag, `updated_at`, status) of all notes: what an index row is made from."""
    for row in tx.execute(sa.select(notes.c.note_id, notes.c.etag, notes.c.updated_at, notes.c.status)):
        yield row[0], row[1], row[2], row[3]


def counts_by_namespace(tx: Transaction) -> dict[str, dict[str, int]]:
    """Per namespace: memories, those found by keywords, those with all vectors, those held. Blank forms are none."""
    current = notes.c.fts_etag == notes.c.etag
    full = notes.c.vector_etag == notes.c.etag
    query = sa.select(
        notes.c.namespace,
        sa.func.count(),
        sa.func.sum(sa.case((current, 1), else_=0)),
        sa.func.sum(sa.case((full, 1), else_=0)),
        sa.func.sum(sa.case((notes.c.status == "held", 1), else_=0)),
    )
    query = query.where(notes.c.status != BLANK).group_by(notes.c.namespace)
    return {
        row[0]: {"notes": row[1], "indexed": row[2] or 0, "with_vectors": row[3] or 0, "held": row[4] or 0}
        for row in tx.execute(query)
    }


def pending_counts(tx: Transaction) -> dict[str, int]:
    """How much work waits for the index."""
    stale = sa.or_(notes.c.fts_etag.is_(None), notes.c.fts_etag != notes.c.etag)
    bare = sa.or_(notes.c.vector_etag.is_(None), notes.c.vector_etag != notes.c.etag)
    row = tx.execute(
        sa.select(sa.func.sum(sa.case((stale, 1), else_=0)), sa.func.sum(sa.case((bare, 1), else_=0))).where(
            notes.c.status != "held"
        )
    ).one()
    removing = tx.scalar(sa.select(sa.func.count()).select_from(index_removals)) or 0
    return {"fts": row[0] or 0, "vectors": row[1] or 0, "removals": removing}


def _conditions(wanted: NoteFilter) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = []
    if wanted.namespaces is not None:
        where.append(notes.c.namespace.in_(wanted.namespaces))
    for name in ("user_id", "agent_id", "workspace_id", "memory_type", "status"):
        value = getattr(wanted, name)
        if value is not None:
            where.append(notes.c[name] == value)
    if wanted.status is None:
        where.append(notes.c.status != BLANK)
    where.append(notes.c.status != CLEARING)
    if wanted.reader is not None:  # a note may be narrower than its namespace
        user_id, agent_id = wanted.reader
        same_agent = notes.c.agent_id.is_(None) if agent_id is None else notes.c.agent_id == agent_id
        where.append(sa.or_(notes.c.visibility != "private", notes.c.user_id == user_id))
        where.append(sa.or_(notes.c.visibility != "agent-only", same_agent))
    if wanted.updated_after is not None:
        where.append(notes.c.updated_at > wanted.updated_after)
    if wanted.tag is not None:
        # Tags are a short JSON list of strings: matching the quoted string is exact and needs no JSON functions.
        quoted = wanted.tag.replace("\\", "\\\\").replace('"', '\\"')
        where.append(sa.cast(notes.c.tags, sa.Text).contains(f'"{quoted}"', autoescape=True))
    return where


def _select_notes(tx: Transaction, column: sa.Column[Any], values: Collection[str]) -> Iterator[NoteRow]:
    for part in _parts(values):
        for row in tx.execute(sa.select(*_NOTE_COLUMNS).where(column.in_(part))):
            yield NoteRow(*row)


def _parts(values: Collection[str]) -> Iterator[list[str]]:
    ordered = list(values)
    for start in range(0, len(ordered), _IN_LIMIT):
        yield ordered[start : start + _IN_LIMIT]

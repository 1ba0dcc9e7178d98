"""The write journal: intents before a file is touched, accepted versions until git has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema import blobs, intents, versions


@dataclass(frozen=True, slots=True)
class Actor:
    """Who wrote: `kind` is `agent`, `user`, `person` (in the vault) or `gateway`."""

    kind: str
    name: str
    email: str
    label: str


@dataclass(frozen=True, slots=True)
class Intent:
    """A write that was decided on: `op` is `create`, `update`, `move` or `delete`; `body` the bytes to be written.

    A `move` names where the note comes from as `from` in its request.
    """

    id: str
    op: str
    note_id: str
    path: str
    base_etag: str | None
    new_etag: str | None
    body: bytes | None
    actor: Actor
    request: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One accepted version of a note. `state`: `pending` (not in git), `committed`, `skipped`.

    `review_id` names the draft by whose acceptance it came, or whose own text it is.
    """

    key: str
    note_id: str
    version: int
    op: str
    path: str
    old_path: str | None
    etag: str | None
    author_name: str
    author_email: str
    actor: str
    at: int
    not_before: int
    state: str = "pending"
    sha: str | None = None
    seq: int = 0
    review_id: str | None = None


_KEYS_AT_ONCE = 5_000
_VERSION_COLUMNS = [versions.c[field.name] for field in fields(Version)]


def begin(tx: Transaction, wanted: Sequence[Intent]) -> None:
    """Write the intents down, before any file is touched."""
    rows = [asdict(intent) | {"state": "prepared", "created_at": now_ms()} for intent in wanted]
    if rows:
        tx.execute(sa.insert(intents), rows)


def settle(tx: Transaction, intent_ids: Collection[str]) -> None:
    """The ledger says what the files say: the intents are done. Their rows stay until their spares are looked at."""
    for intent_id in intent_ids:
        tx.execute(sa.update(intents).where(intents.c.id == intent_id).values(state="applied", body=None))


def drop(tx: Transaction, intent_ids: Collection[str]) -> None:
    """The intents came to nothing, or nothing of them is left to look at."""
    for intent_id in intent_ids:
        tx.execute(sa.delete(intents).where(intents.c.id == intent_id))


def open_intents(tx: Transaction, state: str) -> list[Intent]:
    """Intents in a state (`prepared` or `applied`), oldest first."""
    query = sa.select(intents).where(intents.c.state == state).order_by(intents.c.created_at, intents.c.id)
    return [
        Intent(
            id=row.id,
            op=row.op,
            note_id=row.note_id,
            path=row.path,
            base_etag=row.base_etag,
            new_etag=row.new_etag,
            body=row.body,
            actor=Actor(**row.actor),
            request=row.request,
        )
        for row in tx.execute(query)
    ]


def applied_before(tx: Transaction, at: int) -> list[Intent]:
    """Settled intents from before a time (ms), whose spare files may be looked at for the last time."""
    early = {
        row[0]
        for row in tx.execute(sa.select(intents.c.id).where(intents.c.state == "applied", intents.c.created_at <= at))
    }
    return [intent for intent in open_intents(tx, "applied") if intent.id in early] if early else []


def record_versions(tx: Transaction, rows: Sequence[tuple[Version, bytes | None]]) -> None:
    """Keep accepted versions, and their bytes until git has them. A key that is known already is left alone."""
    if not rows:
        return
    bodies = {version.etag: body for version, body in rows if body is not None and version.etag is not None}
    upsert(tx, blobs, [{"etag": etag, "body": body} for etag, body in bodies.items()], keys=["etag"])
    values = [{name: value for name, value in asdict(version).items() if name != "seq"} for version, _ in rows]
    upsert(tx, versions, values, keys=["key"])


def postpone_person(tx: Transaction, note_id: str, not_before: int) -> None:
    """A person goes on editing: versions of theirs that wait for quiet wait a little longer."""
    tx.execute(
        sa.update(versions)
        .where(versions.c.note_id == note_id, versions.c.state == "pending", versions.c.actor == "person")
        .values(not_before=not_before)
    )


def pending_versions(tx: Transaction, limit: int, *, at: int | None) -> list[Version]:
    """Versions that git does not have yet, in order; only those due at `at`, or all when None.

    A note's later version never overtakes an earlier one that still waits.
    """
    query = sa.select(*_VERSION_COLUMNS).where(versions.c.state == "pending").order_by(versions.c.seq)
    if at is not None:
        query = query.where(versions.c.not_before <= at)
    return [Version(*row) for row in tx.execute(query.limit(limit))]


def with_predecessors(tx: Transaction, due: Sequence[Version]) -> list[Version]:
    """Add earlier versions of the same notes that still wait, so that none is overtaken; in order."""
    if not due:
        return []
    last = max(version.seq for version in due)
    earlier = (
        sa.select(*_VERSION_COLUMNS)
        .where(
            versions.c.state == "pending",
            versions.c.seq < last,
            versions.c.note_id.in_(sorted({version.note_id for version in due})),
        )
        .order_by(versions.c.seq)
    )
    found = {version.seq: version for version in due}
    newest = {version.note_id: version.seq for version in due}
    for row in tx.execute(earlier):
        version = Version(*row)
        if version.seq < newest[version.note_id]:
            found[version.seq] = version
    return [found[seq] for seq in sorted(found)]


def pending_count(tx: Transaction) -> int:
    """How many versions wait for git."""
    return tx.scalar(sa.select(sa.func.count()).select_from(versions).where(versions.c.state == "pending")) or 0


def bodies(tx: Transaction, etags: Collection[str]) -> dict[str, bytes]:
    """The kept bytes of these hashes."""
    rows = tx.execute(sa.select(blobs.c.etag, blobs.c.body).where(blobs.c.etag.in_(list(etags))))
    return {row[0]: row[1] for row in rows}


def mark_committed(tx: Transaction, done: Sequence[tuple[str, str | None]]) -> None:
    """Git has these versions: (key, commit id, or None where nothing had to be committed)."""
    for key, sha in done:
        state = "committed" if sha else "skipped"
        tx.execute(sa.update(versions).where(versions.c.key == key).values(state=state, sha=sha))
    waiting = sa.select(versions.c.etag).where(versions.c.state == "pending", versions.c.etag.is_not(None))
    keys = [key for key, _ in done]
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        mentioned = sa.select(versions.c.etag).where(versions.c.key.in_(keys[start : start + _KEYS_AT_ONCE]))
        tx.execute(sa.delete(blobs).where(blobs.c.etag.in_(mentioned), blobs.c.etag.not_in(waiting)))


def history(tx: Transaction, note_id: str) -> list[Version]:
    """All versions of a note, newest first."""
    query = sa.select(*_VERSION_COLUMNS).where(versions.c.note_id == note_id).order_by(versions.c.seq.desc())
    return [Version(*row) for row in tx.execute(query)]


def notes_at(tx: Transaction, path: str) -> set[str]:
    """The memories and drafts that ever stood at a path."""
    return set(tx.scalars(sa.select(versions.c.note_id).where(versions.c.path == path).distinct()))


def version_with_etag(tx: Transaction, note_id: str, etag: str) -> Version | None:
    """The newest version of a note that had this hash."""
    query = (
        sa.select(*_VERSION_COLUMNS)
        .where(versions.c.note_id == note_id, versions.c.etag == etag)
        .order_by(versions.c.seq.desc())
        .limit(1)
    )
    row = tx.execute(query).first()
    return Version(*row) if row else None


def latest_times(tx: Transaction, note_ids: Collection[str]) -> dict[str, int]:
    """When the newest version of each of the notes was made (ms), of those that ever had one."""
    newest = sa.select(sa.func.max(versions.c.seq)).where(versions.c.note_id.in_(list(note_ids)))
    query = sa.select(versions.c.note_id, versions.c.at).where(versions.c.seq.in_(newest.group_by(versions.c.note_id)))
    return {row[0]: row[1] for row in tx.execute(query)}


def latest_version_numbers(tx: Transaction, note_ids: Collection[str]) -> dict[str, int]:
    """The highest version number of those of the notes that ever had one."""
    ordered = list(note_ids)
    found: dict[str, int] = {}
    for start in range(0, len(ordered), _KEYS_AT_ONCE):
        wanted = ordered[start : start + _KEYS_AT_ONCE]
        query = sa.select(versions.c.note_id, sa.func.max(versions.c.version)).where(versions.c.note_id.in_(wanted))
        found |= {row[0]: row[1] for row in tx.execute(query.group_by(versions.c.note_id))}
    return found

"""How far the newest version of a memory has come, and what changed since the one a caller saw."""

from __future__ import annotations

from gateway.access.principal import Principal
from gateway.importer.parts import Parts
from gateway.importer.rows import HELD
from gateway.ledger import journal
from gateway.ledger.journal import Version
from gateway.ledger.registry import NoteRow
from gateway.notes.difference import difference
from gateway.services.lookup import find
from gateway.services.records import DONE, PENDING, Receipt, Written
from gateway.services.requests import Precondition


def receipt(principal: Principal, parts: Parts, note_id: str) -> Written:
    """How far the newest version of a memory has come.

    Raises:
        NotFound: there is no such memory.
    """
    return written(parts, find(principal, parts, note_id, "read")[0])


def written(parts: Parts, row: NoteRow, *, duplicate: bool = False) -> Written:
    """The answer to a write, from the row as it is now."""
    with parts.ledger.read() as tx:
        newest = next(iter(journal.history(tx, row.note_id)), None)
    return Written(row.note_id, row.namespace, row.version, row.etag, row.path, _receipt(parts, row, newest), duplicate)


def fresh(row: NoteRow, parts: Parts) -> Written:
    """The answer to a write that was accepted a moment ago, to be kept for a retry."""
    return Written(row.note_id, row.namespace, row.version, row.etag, row.path, _receipt(parts, row, None))


def deletion_receipt() -> Receipt:
    """The receipt of a delete that was accepted a moment ago."""
    return Receipt(DONE, DONE, PENDING, PENDING, PENDING)


def explain_difference(parts: Parts, row: NoteRow, present: bytes, wanted: Precondition) -> str:
    """What changed since the version the caller saw; empty where that version is not known here."""
    with parts.ledger.read() as tx:
        seen = [
            version
            for version in journal.history(tx, row.note_id)
            if version.etag in wanted.etags or version.version == wanted.version
        ]
    old = text_of(parts, seen[0].etag, seen[0].sha, seen[0].path) if seen else None
    if old is None:
        return ""
    return difference(old, present, old_name=f"version {seen[0].version}", new_name=f"version {row.version}")


def text_of(parts: Parts, etag: str | None, sha: str | None, path: str) -> bytes | None:
    """The bytes of a version: from the ledger until git has them, from git afterwards."""
    if etag is not None:
        with parts.ledger.read() as tx:
            kept = journal.bodies(tx, [etag]).get(etag)
        if kept is not None:
            return kept
    return parts.history.show(sha, path) if sha else None


def _receipt(parts: Parts, row: NoteRow, newest: Version | None) -> Receipt:
    held = "failed: the note has a problem, see /v1/problems" if row.status == HELD else None
    if row.index_error:
        held = f"failed: {row.index_error}"
    fts = held or (DONE if row.fts_etag == row.etag else PENDING)
    if parts.feed.embedder is None:
        vector = "failed: no embedding provider"
    else:
        vector = held or (DONE if row.vector_etag == row.etag else PENDING)
    return Receipt(DONE, DONE, _commit_state(parts, row, newest), fts, vector)


def _commit_state(parts: Parts, row: NoteRow, newest: Version | None) -> str:
    if row.read_only or (newest is not None and newest.state == "skipped"):
        return "failed: not committed by the gateway"
    if newest is None or newest.state == "pending":
        return f"failed: {parts.committer.trouble}" if parts.committer.trouble else PENDING
    return DONE

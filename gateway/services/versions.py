"""The life of one memory: receipts, history, and what changed between versions."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.access.principal import Principal
from gateway.importer.parts import Parts
from gateway.importer.rows import HELD
from gateway.ledger import journal, registry
from gateway.ledger.journal import Version
from gateway.ledger.registry import NoteRow
from gateway.services.composition import difference
from gateway.services.lookup import find
from gateway.services.records import DONE, PENDING, Receipt, Written, text_time
from gateway.services.requests import Precondition


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a memory. `commit` is None while git does not have it; `version` where only git knows it."""

    version: int | None
    op: str
    etag: str | None
    path: str
    author: str
    actor: str
    at: str
    commit: str | None
    diff: str | None = None


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


def deletion_answer(row: NoteRow) -> dict[str, Any]:
    """The body of the answer to a delete."""
    return {"deleted": True, "id": row.note_id, "receipt": asdict(deletion_receipt())}


def history(principal: Principal, parts: Parts, note_id: str, *, with_diff: bool) -> list[VersionRecord]:
    """All versions of a memory, newest first; deleted memories keep theirs.

    Raises:
        NotFound: no version of such a memory is known.
    """
    with parts.ledger.read() as tx:
        known = journal.history(tx, note_id)
        row = registry.note(tx, note_id)
    if row is not None or not known or not principal.is_admin:  # of a deleted memory nobody can tell whose it was
        row, _ = find(principal, parts, note_id, "read")
    records = [_record(version) for version in known]
    if row is not None:
        records += _before_the_ledger(parts, row, {version.sha for version in known if version.sha})
    return _with_diffs(parts, records) if with_diff else records


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


def _record(version: Version) -> VersionRecord:
    return VersionRecord(
        version.version,
        version.op,
        version.etag,
        version.path,
        version.author_name,
        version.actor,
        text_time(version.at) or "",
        version.sha,
    )


def _before_the_ledger(parts: Parts, row: NoteRow, known: set[str]) -> list[VersionRecord]:
    """Commits of the note's present path that this ledger has no version for, e.g. after it was made anew."""
    return [
        VersionRecord(None, "write", None, row.path, entry.author, "git", text_time(entry.at) or "", entry.sha)
        for entry in parts.history.log(row.path)
        if entry.sha not in known
    ]


def _with_diffs(parts: Parts, records: list[VersionRecord]) -> list[VersionRecord]:
    texts = [text_of(parts, one.etag, one.commit, one.path) if one.op != "delete" else b"" for one in records]
    result: list[VersionRecord] = []
    for number, one in enumerate(records):
        new = texts[number]
        old = texts[number + 1] if number + 1 < len(texts) else b""
        name = f"version {one.version or one.commit}"
        diff = None if new is None or old is None else difference(old, new, old_name="before", new_name=name)
        result.append(replace(one, diff=diff))
    return result

"""The versions of one memory: the ledger's, and those that only git knows, as one list for one reader."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import decide
from gateway.errors import Invalid, NotFound
from gateway.importer.parts import Parts
from gateway.importer.rows import claimed_fields, visibility_at
from gateway.ledger import journal
from gateway.ledger.journal import Version
from gateway.ledger.registry import NoteRow
from gateway.notes.note import parse
from gateway.notes.text import etag_of
from gateway.services.records import text_time
from gateway.vault.log import LoggedVersion

_KINDS = {"agent": "agent", "user": "user", "admin": "user", "import": "user", "person": "person", "git": "git"}
_OPS = {"D": "delete", "R": "move"}
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a memory. `commit` is None while git does not have it; `version` where only git knows it.

    Attributes:
        kind: who made it: `agent`, `user`, `person` (in the vault), `gateway` or `git` (a commit of somebody else's).
    """

    version: int | None
    op: str
    etag: str | None
    path: str
    author: str
    actor: str
    kind: str
    at: str
    commit: str | None
    diff: str | None = None

    @property
    def name(self) -> str:
        """What a difference calls it."""
        return f"version {self.version}" if self.version is not None else f"commit {(self.commit or '')[:12]}"


def kind_of(actor: str) -> str:
    """What sort of author a label names."""
    return _KINDS.get(actor.partition(":")[0], "gateway")


def from_ledger(known: Sequence[Version]) -> list[VersionRecord]:
    """What the ledger says alone, e.g. of a deleted memory."""
    return [_of_ledger(version) for version in known]


def lineage(principal: Principal, parts: Parts, row: NoteRow) -> list[VersionRecord]:
    """All versions of a memory that the principal may know of, newest first.

    A version from when the memory stood in a folder that the principal may not read is left out.
    """
    with parts.ledger.read() as tx:
        known = journal.history(tx, row.note_id)
    logged = _logged(parts, row, known)
    # Between the look at the ledger and the look at git, git may have got what was pending.
    made = {entry.key: entry.sha for entry in logged if entry.key is not None}
    known = [replace(version, sha=version.sha or made.get(version.key)) for version in known]
    recorded = {version.sha for version in known if version.sha}
    unrecorded = [entry for entry in logged if entry.sha not in recorded]
    found_again = _found_again(parts, known, logged, unrecorded)
    mine = [(version.at, found_again.get(version.key) or _of_ledger(version)) for version in known]
    taken = {record.commit for record in found_again.values()}
    gits = [(entry.at, _of_git(entry)) for entry in unrecorded if entry.sha not in taken]
    merged = [record for _, record in heapq.merge(mine, gits, key=lambda one: -one[0])]
    readable = _readable_paths(principal, parts, row, {record.path for record in merged})
    return [record for record in merged if record.path in readable]


def chosen(records: Sequence[VersionRecord], wanted: str, field: str) -> VersionRecord:
    """The version that a number, a commit id or the unambiguous beginning of one (7 digits at least) names.

    Raises:
        NotFound: the memory has none such.
        Invalid: several commits begin like that.
    """
    asked = wanted.lower()
    if asked.isascii() and asked.isdigit() and len(asked) <= 10:
        numbered = [one for one in records if one.version == int(asked) and one.op != "delete"]
        if numbered:
            return numbered[0]
    if _COMMIT.fullmatch(asked):
        matching = [one for one in records if one.commit is not None and one.commit.startswith(asked)]
        if len({one.commit for one in matching}) > 1:
            raise Invalid(f"Several commits begin with {wanted!r}.", field=field, advice="Give more of it.")
        if matching:
            return matching[0]
    raise NotFound(f"The memory has no version {wanted[:80]!r}.", field=field)


def texts_of(parts: Parts, note_id: str, records: Sequence[VersionRecord]) -> list[bytes | None]:
    """The bytes of versions: from the ledger until git has them, from git afterwards; None where nobody has them."""
    with parts.ledger.read() as tx:
        kept = journal.bodies(tx, {one.etag for one in records if one.etag is not None})
        late: dict[str, Version] = {}
        if any(one.commit is None and one.etag not in kept for one in records):  # git got them a moment ago
            late = {one.etag: one for one in journal.history(tx, note_id) if one.etag is not None and one.sha}
    places = [_in_git(one, late) for one in records]
    committed = parts.history.texts([one or ("", "") for one in places])
    return [
        None if one.op == "delete" else kept.get(one.etag or "") or data or _as_it_stands(parts, one)
        for one, data in zip(records, committed, strict=True)
    ]


def _in_git(one: VersionRecord, late: Mapping[str, Version]) -> tuple[str, str] | None:
    if one.commit is not None:
        return one.commit, one.path
    version = late.get(one.etag or "")
    return (version.sha or "", version.path) if version is not None else None


def readable_texts(
    principal: Principal, parts: Parts, note_id: str, records: Sequence[VersionRecord]
) -> list[bytes | None]:
    """Like `texts_of`, without those that said of themselves that they are not for this principal."""
    found = texts_of(parts, note_id, records)
    if principal.is_admin:
        return found
    with parts.ledger.read() as tx:
        for number, (one, data) in enumerate(zip(records, found, strict=True)):
            place = parts.importer.places.place_of(one.path)
            if data is None or place is None:
                continue
            visibility, _ = visibility_at(place, claimed_fields(parse(data)).visibility)
            resource = replace(guard.resource_at(tx, place.namespace), visibility=visibility)
            if not decide(principal, "read", resource).allowed:
                found[number] = None
    return found


def _as_it_stands(parts: Parts, one: VersionRecord) -> bytes | None:
    """A note that the gateway does not commit is only in its file."""
    read = parts.files.read(one.path) if one.commit is None and one.etag is not None else None
    return read.data if read is not None and read.etag == one.etag else None


def _logged(parts: Parts, row: NoteRow, known: Sequence[Version]) -> list[LoggedVersion]:
    """What git knows: from the newest committed name backwards, and from where the ledger begins if that is apart."""
    committed = [version for version in known if version.sha is not None and version.op != "delete"]
    found = parts.history.log_of_memory(row.note_id, committed[0].path if committed else row.path)
    first = committed[-1] if committed else None
    if first is not None and first.path not in {entry.path for entry in found}:
        seen = {entry.sha for entry in found}
        earlier = parts.history.log_of_memory(row.note_id, first.path, first.sha)
        found += [entry for entry in earlier if entry.sha not in seen]
    return found


def _found_again(
    parts: Parts, known: Sequence[Version], logged: Sequence[LoggedVersion], unrecorded: Sequence[LoggedVersion]
) -> dict[str, VersionRecord]:
    """Versions that the ledger met in the vault when git had them already: who made them is git's to say."""
    shas = {entry.sha for entry in logged}
    met = [one for one in known if one.op == "write" and one.state != "pending" and one.sha not in shas]
    if not met or not unrecorded:
        return {}
    texts = parts.history.texts([(entry.sha, entry.path) for entry in unrecorded])
    by_etag: dict[str, LoggedVersion] = {}
    for entry, data in zip(unrecorded, texts, strict=True):
        if data is not None:
            by_etag.setdefault(etag_of(data), entry)
    found: dict[str, VersionRecord] = {}
    for version in met:
        entry = by_etag.pop(version.etag or "", None)
        if entry is not None:
            found[version.key] = replace(_of_git(entry), version=version.version, etag=version.etag)
    return found


def _readable_paths(principal: Principal, parts: Parts, row: NoteRow, paths: set[str]) -> set[str]:
    if principal.is_admin:
        return paths
    readable: set[str] = set()
    with parts.ledger.read() as tx:
        for path in paths:
            place = parts.importer.places.place_of(path)
            if place is None:
                continue
            same = str(place.namespace) == row.namespace
            if same or decide(principal, "read", guard.resource_at(tx, place.namespace)).allowed:
                readable.add(path)
    return readable


def _of_ledger(version: Version) -> VersionRecord:
    return VersionRecord(
        version.version,
        version.op,
        version.etag,
        version.path,
        version.author_name,
        version.actor,
        kind_of(version.actor),
        text_time(version.at) or "",
        version.sha,
    )


def _of_git(entry: LoggedVersion) -> VersionRecord:
    actor = entry.actor or "git"
    return VersionRecord(
        entry.version,
        _OPS.get(entry.status, "write"),
        None,
        entry.path,
        entry.author,
        actor,
        kind_of(actor),
        text_time(entry.at) or "",
        entry.sha,
    )

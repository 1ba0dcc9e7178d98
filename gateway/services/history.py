"""The history of a memory: who made each version, what it said, what changed, and going back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TypedDict

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now
from gateway.errors import NotFound, Tombstoned
from gateway.importer.parts import Parts
from gateway.ledger import journal, registry, tombstones
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.ledger.registry import NoteRow
from gateway.notes.difference import difference
from gateway.notes.note import parse
from gateway.notes.text import content_hash
from gateway.services import memories
from gateway.services.lineage import VersionRecord, chosen, from_ledger, lineage, readable_texts, texts_of
from gateway.services.lookup import find
from gateway.services.memories import Rewrite
from gateway.services.records import InReview, Written, content_of
from gateway.services.requests import Precondition, Revert
from gateway.services.reverting import reverted_note

_BLAMED_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class VersionText:
    """What a memory said in one version: `text` is the whole note, `content` what stands below its properties."""

    id: str
    commit: str | None
    version: int | None
    path: str
    at: str
    author: str
    actor: str
    kind: str
    content: str
    text: str


@dataclass(frozen=True, slots=True)
class Edge:
    """One end of a difference."""

    version: int | None
    commit: str | None
    at: str
    author: str
    actor: str
    kind: str


# `from` is no name for an attribute.
Difference = TypedDict("Difference", {"id": str, "from": Edge | None, "to": Edge, "diff": str})


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line of the present note, and the version in which it came."""

    number: int
    text: str
    version: int | None
    commit: str | None
    at: str
    author: str
    actor: str
    kind: str


@dataclass(frozen=True, slots=True)
class Blame:
    """Who wrote which line of a memory."""

    id: str
    version: int
    etag: str
    path: str
    lines: list[BlamedLine]


def history(principal: Principal, parts: Parts, note_id: str, *, with_diff: bool) -> list[VersionRecord]:
    """All versions of a memory, newest first; deleted memories keep theirs.

    Raises:
        NotFound: no version of such a memory is known.
    """
    with parts.ledger.read() as tx:
        known = journal.history(tx, note_id)
        row = registry.note(tx, note_id)
    if row is None and known and principal.is_admin:  # of a deleted memory nobody can tell whose it was
        records = from_ledger(known)
    else:
        row, decision = find(principal, parts, note_id, "read")
        _audited(principal, parts, row, decision)
        records = lineage(principal, parts, row)
    return _with_diffs(principal, parts, note_id, records) if with_diff else records


def text_at(principal: Principal, parts: Parts, note_id: str, wanted: str) -> VersionText:
    """What a memory said in a version, named by its commit or its number.

    Raises:
        NotFound: there is no such memory, or it has no such version.
        Invalid: several of its commits begin like that.
    """
    row, decision = find(principal, parts, note_id, "read")
    _audited(principal, parts, row, decision)
    one = chosen(lineage(principal, parts, row), wanted, "commit")
    data = _text(principal, parts, note_id, one, field="commit")
    return VersionText(
        id=row.note_id,
        commit=one.commit,
        version=one.version,
        path=one.path,
        at=one.at,
        author=one.author,
        actor=one.actor,
        kind=one.kind,
        content=content_of(data),
        text=data.decode("utf-8", "replace"),
    )


def changes_between(principal: Principal, parts: Parts, note_id: str, start: str | None, end: str | None) -> Difference:
    """A unified diff of two versions; without `end` up to the newest, without `start` from the one before `end`.

    Raises:
        NotFound: there is no such memory, or it has no such version.
        Invalid: several of its commits begin like that.
    """
    row, decision = find(principal, parts, note_id, "read")
    _audited(principal, parts, row, decision)
    records = [one for one in lineage(principal, parts, row) if one.op != "delete"]
    if not records:
        raise NotFound("No version of this memory is known.", field="memory_id")
    last = records[0] if end is None else chosen(records, end, "to")
    before = records[records.index(last) + 1 :]
    first = (before[0] if before else None) if start is None else chosen(records, start, "from")
    old = b"" if first is None else _text(principal, parts, note_id, first, field="from")
    new = _text(principal, parts, note_id, last, field="to")
    diff = difference(old, new, old_name=first.name if first else "nothing", new_name=last.name)
    return {"id": row.note_id, "from": _edge(first) if first else None, "to": _edge(last), "diff": diff}


def blame(principal: Principal, parts: Parts, note_id: str) -> Blame:
    """For each line of the note as it is now, the version in which it came.

    Raises:
        NotFound: there is no such memory, or its file is held for a problem or gone.
    """
    row, decision, read = memories.present(principal, parts, note_id)
    _audited(principal, parts, row, decision)
    records = [one for one in lineage(principal, parts, row) if one.op != "delete"][:_BLAMED_VERSIONS]
    found = zip(records, texts_of(parts, row.note_id, records), strict=True)
    told = [(one, data) for one, data in found if data is not None][::-1]
    texts = [_lines(data) for _, data in told]
    now = _lines(read.data)
    if records and (not texts or texts[-1] != now):  # the newest bytes are in the file alone
        told.append((records[0], read.data))
        texts.append(now)
    makers = [told[number][0] for number in origins(texts)]
    lines = [
        BlamedLine(
            number, text, maker.version, maker.commit, maker.at, author=maker.author, actor=maker.actor, kind=maker.kind
        )
        for number, (text, maker) in enumerate(zip(now, makers, strict=True), start=1)
    ]
    return Blame(row.note_id, row.version, row.etag, row.path, lines)


def origins(texts: Sequence[Sequence[str]]) -> list[int]:
    """For each line of the last text, which of the texts, oldest first, brought it. Pure."""
    before: Sequence[str] = ()
    came: list[int] = []
    for number, lines in enumerate(texts):
        head = _common(before, lines)
        tail = _common(before[head:][::-1], lines[head:][::-1])
        fresh = [number] * (len(lines) - head - tail)
        matcher = SequenceMatcher(None, before[head : len(before) - tail], lines[head : len(lines) - tail])
        for block in matcher.get_matching_blocks():
            fresh[block.b : block.b + block.size] = came[head + block.a : head + block.a + block.size]
        before, came = lines, [*came[:head], *fresh, *came[len(came) - tail :]]
    return came


def revert(
    principal: Principal,
    parts: Parts,
    note_id: str,
    wanted: Revert,
    precondition: Precondition,
    *,
    claim: Claim | None = None,
    wait: float = 0,
) -> Written | InReview | FirstAnswer:
    """Write what a memory said once as its newest version; all versions in between stay.

    Raises:
        NotFound: there is no such memory, or it has no such version.
        Tombstoned: that text was forgotten.
        ChangedElsewhere, NotAllowed: as for a change.
    """

    def compose(row: NoteRow, present: bytes) -> bytes:
        one = chosen(lineage(principal, parts, row), str(wanted.to), "to")
        old = _text(principal, parts, note_id, one, field="to")
        data = reverted_note(present, old, row, now())
        if data != present:
            _check_not_forgotten(parts, row, data)
        return data

    asked = {"user_id": wanted.user_id, "agent_id": wanted.agent_id, "workspace_id": wanted.workspace_id}
    change = Rewrite(asked, precondition, compose, "revert")
    return memories.rewrite(principal, parts, note_id, change, claim=claim, wait=wait)


def _check_not_forgotten(parts: Parts, row: NoteRow, data: bytes) -> None:
    wanted = content_hash(parse(data).body)
    with parts.ledger.read() as tx:
        if wanted == row.content_hash or not tombstones.buried(tx, row.namespace, content_hash=wanted):
            return
    raise Tombstoned(
        "This text was forgotten on request and does not come back by going back to it.",
        field="to",
        advice="A user can write it again explicitly.",
    )


def _text(principal: Principal, parts: Parts, note_id: str, one: VersionRecord, *, field: str) -> bytes:
    data = readable_texts(principal, parts, note_id, [one])[0]
    if data is None:
        raise NotFound(f"The memory has no text of {one.name}.", field=field)
    return data


def _with_diffs(principal: Principal, parts: Parts, note_id: str, records: list[VersionRecord]) -> list[VersionRecord]:
    found = readable_texts(principal, parts, note_id, records)
    texts = [b"" if one.op == "delete" else data for one, data in zip(records, found, strict=True)]
    result: list[VersionRecord] = []
    for number, one in enumerate(records):
        new = texts[number]
        old = texts[number + 1] if number + 1 < len(texts) else b""
        diff = None if new is None or old is None else difference(old, new, old_name="before", new_name=one.name)
        result.append(replace(one, diff=diff))
    return result


def _audited(principal: Principal, parts: Parts, row: NoteRow, decision: Decision) -> None:
    target = {"target_id": row.note_id, "namespace": row.namespace}
    parts.reads.add(guard.entry(principal, "read", "memory", decision=decision, **target))


def _edge(one: VersionRecord) -> Edge:
    return Edge(one.version, one.commit, one.at, one.author, one.actor, one.kind)


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts begin with alike."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count

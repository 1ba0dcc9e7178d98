"""commit: writes a confirmed memory into the vault, by the journal, unless it was forgotten or is there already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gateway.clock import now
from gateway.errors import Tombstoned
from gateway.importer.parts import Parts
from gateway.importer.write import Order
from gateway.ledger import tombstones
from gateway.ledger.audit import AuditEntry
from gateway.ledger.idempotency import Claim
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import Namespace, note_path, parse_namespace
from gateway.notes.note import PropertyValue, parse
from gateway.notes.template import time_text
from gateway.notes.text import content_hash, file_name_for, new_memory_id
from gateway.skills.contract import Skill
from gateway.skills.proposals import new_note
from gateway.skills.prune import standing_text


@dataclass(frozen=True, slots=True)
class ToCommit:
    """A memory to be written.

    Attributes:
        explicit: a user wrote it themselves, which lifts tombstones (design section 8).
        kind: of a directive: `style`, `rule` or `suppress_topic`.
        temporal: when it holds, as properties of the note.
    """

    namespace: str
    content: str
    memory_type: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    visibility: str | None = None
    source: str = "manual"
    source_ref: str | None = None
    expires_at: datetime | None = None
    explicit: bool = False
    kind: str | None = None
    temporal: Mapping[str, PropertyValue] = field(default_factory=dict[str, PropertyValue])


@dataclass(frozen=True, slots=True)
class Committed:
    """The memory as it is registered; `duplicate`: the same text was there already."""

    row: NoteRow
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Authority:
    """In whose name a memory is written, and which retry of which request it is."""

    actor: Actor
    entry: AuditEntry
    claim: Claim | None = None
    answer: Callable[[NoteRow], tuple[int, dict[str, Any]]] | None = None


def commit(parts: Parts, wanted: ToCommit, authority: Authority) -> Committed:
    """Write a memory. Call it with the importer's lock held.

    Raises:
        Tombstoned: the text was forgotten, and this is no user's explicit write.
        BadNote: the text would not read back as it was given.
    """
    same = _same_text(parts, wanted)
    if same is not None:
        return Committed(same, duplicate=True)
    memory_id = new_memory_id()
    namespace = parse_namespace(wanted.namespace)
    name = file_name_for(wanted.summary or wanted.content, memory_id)
    path = note_path(namespace, name, owner=parts.settings.vault.owner)
    data = _note(wanted, namespace, memory_id)
    if not wanted.explicit:
        _check_tombstones(parts, wanted.namespace, data)
    entry = replace(authority.entry, target_id=memory_id)
    order = Order(
        op="create",
        note_id=memory_id,
        path=path,
        base_etag=None,
        data=data,
        actor=authority.actor,
        entry=entry,
        may_return=wanted.explicit,
        claim=authority.claim,
        answer=authority.answer,
    )
    return Committed(parts.writes.write(order), duplicate=False)


def _note(wanted: ToCommit, namespace: Namespace, memory_id: str) -> bytes:
    return new_note(memory_id, namespace, wanted.content, properties_of(wanted), at=now())


def properties_of(wanted: ToCommit) -> dict[str, PropertyValue]:
    """What the caller said of a memory, as properties of its note."""
    return {
        "type": wanted.memory_type,
        "kind": wanted.kind,
        "summary": wanted.summary,
        "tags": list(wanted.tags),
        "importance": wanted.importance,
        "confidence": wanted.confidence,
        "visibility": wanted.visibility,
        "source": wanted.source,
        "source_ref": wanted.source_ref,
        "expires": time_text(wanted.expires_at) if wanted.expires_at else None,
        **wanted.temporal,
    }


def is_known(parts: Parts, wanted: ToCommit) -> bool:
    """Whether the same text is a memory of that namespace already."""
    return _same_text(parts, wanted) is not None


def standing(parts: Parts, namespace: str, content: str) -> NoteRow | None:
    """The memory of a namespace that says exactly a text and holds now, if its file is the one that is known."""
    with parts.ledger.read() as tx:
        row = standing_text(tx, namespace, content_hash(content))
    read = parts.files.read(row.path) if row is not None else None
    return row if row is not None and read is not None and read.etag == row.etag else None


def _same_text(parts: Parts, wanted: ToCommit) -> NoteRow | None:
    row = standing(parts, wanted.namespace, wanted.content)
    return row if row is not None and row.memory_type == wanted.memory_type else None


def _check_tombstones(parts: Parts, namespace: str, data: bytes) -> None:
    content = content_hash(parse(data).body)
    with parts.ledger.read() as tx:
        if tombstones.proposal_buried(tx, namespace, f":{content}"):
            raise Tombstoned(
                "A person rejected this text when it was proposed.",
                field="content",
                advice="A user can write it explicitly: source `manual`, without an agent.",
            )
        if tombstones.buried(tx, namespace, content_hash=content):
            raise Tombstoned(
                "This text was forgotten on request and may not come back by this way.",
                field="content",
                advice="A user can write it again explicitly: source `manual`.",
            )


SKILL = Skill(
    name="commit",
    does="Writes a confirmed memory into the vault.",
    takes=ToCommit,
    gives=Committed,
    when="a user's own write, or a candidate that policy or a person let through",
    writes_long_term=True,
)

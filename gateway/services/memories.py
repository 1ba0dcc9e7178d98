"""Memories: create, read, list, change, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now
from gateway.errors import BadNote, Invalid, NotAllowed, NotFound
from gateway.importer.parts import Parts
from gateway.importer.rows import HELD
from gateway.importer.write import Order
from gateway.ledger import idempotency, registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.ledger.registry import NoteFilter, NoteRow
from gateway.notes.namespace import Namespace
from gateway.notes.temporal import PROPERTIES, written_out
from gateway.services import paging, policy, versions
from gateway.services.authors import actor_of
from gateway.services.composition import changed_note
from gateway.services.lookup import find, missing
from gateway.services.namespaces import readable_namespaces
from gateway.services.proposing import Origin, propose_change, propose_new
from gateway.services.records import InReview, MemoryRecord, Page, Written, content_of, record
from gateway.services.requests import MemoryPatch, NewMemory, Precondition, namespace_for
from gateway.services.secrets import check_note, check_patch, check_request
from gateway.services.skills_enabled import require
from gateway.skills.commit import Authority, ToCommit, commit, is_known
from gateway.skills.proposals import between
from gateway.vault.files import FileRead

_WRITABLE_ROOMS = frozenset({"long_term", "memory", "shared", "public"})


def create(
    principal: Principal, parts: Parts, new: NewMemory, *, claim: Claim | None = None, wait: float = 0
) -> Written | InReview | FirstAnswer:
    """Write a new memory to the vault, or a draft of it where policy wants a person's decision.

    A memory with the same text in the same namespace is returned as it is.

    Args:
        claim: the idempotency key; a known one brings the first answer back.
        wait: seconds to wait until it can be found.

    Raises:
        NotFound: the user is not registered.
        SecretFound: a text of it holds a secret.
        Tombstoned: the text was forgotten, and this is no user's explicit write.
    """
    asked = {"user_id": new.user_id, "agent_id": new.agent_id, "workspace_id": new.workspace_id}
    context = guard.identify(parts.ledger, principal, **asked)
    user_id = context.user_id or parts.settings.vault.owner
    namespace = namespace_for(new, context, user_id)
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, namespace)
    decision = guard.check(parts.ledger, context.principal, "write", resource, _no_namespace(namespace))
    if namespace.room not in _WRITABLE_ROOMS:
        raise Invalid(f"{namespace} holds one fixed note; change that note instead.", field="namespace")
    check_request(parts, new)
    explicit = principal.agent_id is None and (new.agent_id is None or new.source == "manual")
    require(parts, user_id, "commit")
    entry = guard.entry(context.principal, "create", "memory", namespace=str(namespace), decision=decision)
    wanted = _to_commit(new, namespace, explicit=explicit)
    with parts.importer.lock:
        if (first := recalled(parts, claim)) is not None:
            return first
        why = policy.for_new(
            parts.settings.review,
            namespace,
            agent_id=context.agent_id,
            source=new.source,
            confidence=new.confidence,
            texts=(new.content, new.summary),
        )
        if why is not None and not is_known(parts, wanted):
            return propose_new(parts, wanted, Origin(context, entry, why, claim))
        done = commit(parts, wanted, Authority(actor_of(context), entry, claim, _answer(parts, 201)))
    if done.duplicate:
        return versions.written(parts, done.row, duplicate=True)
    return versions.written(parts, _waited(parts, done.row, wait))


def get(principal: Principal, parts: Parts, note_id: str) -> MemoryRecord:
    """One memory with its text as it is in the vault now.

    Raises:
        NotFound: there is none, or its file is held for a problem or gone.
    """
    row, decision, read = present(principal, parts, note_id)
    target = {"target_id": row.note_id, "namespace": row.namespace}
    parts.reads.add(guard.entry(principal, "read", "memory", decision=decision, **target))
    return record(row, content_of(read.data))


def present(principal: Principal, parts: Parts, note_id: str) -> tuple[NoteRow, Decision, FileRead]:
    """The row of a memory that may be read, why, and its file as it is now.

    Raises:
        NotFound: there is none, or its file is held for a problem or gone.
    """
    row, decision = find(principal, parts, note_id, "read")
    read = parts.files.read(row.path)
    if read is None or read.etag != row.etag:  # edited or moved a moment ago: take that in first
        parts.importer.import_paths([row.path], settled=True)
        row, decision = find(principal, parts, note_id, "read")
        read = parts.files.read(row.path)
    if read is None or row.status == HELD:
        raise missing(note_id)
    return row, decision, read


def page(principal: Principal, parts: Parts, wanted: NoteFilter, *, limit: int, cursor: str | None) -> Page:
    """A page of memories, last changed first.

    Raises:
        Invalid: the limit is out of range, or the cursor is not one of ours.
    """
    paging.check_limit(limit, parts.settings.policy.max_page)
    wanted = visible(principal, parts, wanted)
    with parts.ledger.read() as tx:
        rows, total = registry.page(tx, wanted, limit=limit + 1, after=paging.cursor(cursor))
    shown = rows[:limit]
    following = paging.encoded(shown[-1].updated_at, shown[-1].note_id) if len(rows) > limit else None
    records: list[MemoryRecord] = []
    for row in shown:
        read = parts.files.read(row.path) if row.status != HELD else None
        records.append(record(row, content_of(read.data) if read else ""))
    return Page(records, total, following)


def update(
    principal: Principal,
    parts: Parts,
    note_id: str,
    patch: MemoryPatch,
    precondition: Precondition,
    *,
    claim: Claim | None = None,
    wait: float = 0,
) -> Written | InReview | FirstAnswer:
    """Change a memory in place: only the asked properties and, if given, the body.

    Raises:
        ChangedElsewhere: the precondition does not hold; carries the current etag and a diff.
        NotAllowed: the note is one of the user's own, read-only.
    """

    def compose(row: NoteRow, data: bytes) -> bytes:
        check_patch(principal, parts, patch, data)
        return changed_note(data, patch, row, now())

    return rewrite(
        principal,
        parts,
        note_id,
        Rewrite(
            {"user_id": patch.user_id, "agent_id": patch.agent_id, "workspace_id": patch.workspace_id},
            precondition,
            compose,
        ),
        claim=claim,
        wait=wait,
    )


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A change of one memory's bytes.

    Attributes:
        asked: the ids that the request names.
        compose: the new bytes from the row and the present bytes; the same bytes change nothing.
        action: what the audit calls it.
    """

    asked: Mapping[str, str | None]
    precondition: Precondition
    compose: Callable[[NoteRow, bytes], bytes]
    action: str = "update"


def rewrite(
    principal: Principal,
    parts: Parts,
    note_id: str,
    wanted: Rewrite,
    *,
    claim: Claim | None = None,
    wait: float = 0,
) -> Written | InReview | FirstAnswer:
    """The way of every change of a present memory: access, precondition, new bytes, write.

    Raises:
        NotFound: there is no such memory for this principal.
        ChangedElsewhere: the precondition does not hold; carries the current etag and a diff.
        NotAllowed: the note is one of the user's own, read-only.
    """
    context = guard.identify(parts.ledger, principal, **wanted.asked)
    with parts.importer.lock:
        if (first := recalled(parts, claim)) is not None:
            return first
        row, decision = current(context.principal, parts, note_id)
        read = parts.files.read(row.path)
        if read is None:
            raise missing(note_id)
        wanted.precondition.check(row, lambda seen: versions.explain_difference(parts, row, read.data, seen))
        data = wanted.compose(row, read.data)
        if data == read.data:
            return versions.written(parts, row)
        check_note(parts, data)
        entry = guard.entry(
            principal, wanted.action, "memory", target_id=row.note_id, namespace=row.namespace, decision=decision
        )
        why = _why_review(parts, row, context, read.data, data)
        if why is not None:
            return propose_change(parts, row, read.data, data, Origin(context, entry, why, claim))
        row = write_update(principal, context, parts, (row, data), entry=entry, claim=claim)
    return versions.written(parts, _waited(parts, row, wait))


def _why_review(parts: Parts, row: NoteRow, context: Context, present: bytes, data: bytes) -> str | None:
    """Why a change of a memory must wait for a person; only what it brings in is judged."""
    change = between(present, data)
    summary = change.properties.get("summary")
    text = change.text if change.text != content_of(present) else None
    texts = (text, summary if isinstance(summary, str) else None)
    with parts.ledger.read() as tx:
        return policy.for_change(tx, parts.settings.review, row, agent_id=context.agent_id, texts=texts)


def write_update(
    principal: Principal,
    context: Context,
    parts: Parts,
    change: tuple[NoteRow, bytes],
    *,
    entry: AuditEntry,
    claim: Claim | None,
) -> NoteRow:
    """Write the composed bytes of a memory, as whoever asked. Returns the row as it is then.

    Raises:
        ChangedElsewhere: the file changed this very moment.
    """
    row, data = change
    explicit = principal.agent_id is None
    order = Order("update", row.note_id, row.path, row.etag, data, actor_of(context), entry, explicit)
    return parts.writes.write(replace(order, claim=claim, answer=_answer(parts, 200)))


def acting(
    principal: Principal, parts: Parts, *, user_id: str | None, agent_id: str | None, workspace_id: str | None
) -> Principal:
    """The principal, with the agent that its user named; ids of a query must agree with the key as those of a body do.

    Raises:
        NotFound: an id is unknown, or not the key's.
    """
    asked = {"user_id": user_id, "agent_id": agent_id, "workspace_id": workspace_id}
    return guard.identify(parts.ledger, principal, **asked).principal


def check_owner(found: MemoryRecord, *, user_id: str | None, agent_id: str | None, workspace_id: str | None) -> None:
    """Where a request names whose memory it wants, another's is answered like a missing one.

    Raises:
        NotFound: the memory belongs to another user, agent or workspace.
    """
    named = ((user_id, found.user_id), (agent_id, found.agent_id), (workspace_id, found.workspace_id))
    if any(asked is not None and owner is not None and asked != owner for asked, owner in named):
        raise missing(found.id)


def visible(principal: Principal, parts: Parts, wanted: NoteFilter) -> NoteFilter:
    """Narrow a list to what the principal may read; an administrator may read everything.

    Raises:
        NotFound: an id of the filter is unknown, or not the key's.
    """
    context = guard.identify(
        parts.ledger,
        principal,
        user_id=wanted.user_id,
        agent_id=wanted.agent_id,
        workspace_id=wanted.workspace_id,
    )
    if principal.is_admin:
        return wanted
    names = readable_namespaces(context)
    asked = names if wanted.namespaces is None else [name for name in wanted.namespaces if name in names]
    return replace(wanted, namespaces=tuple(asked), reader=(context.user_id, context.principal.agent_id))


def current(principal: Principal, parts: Parts, note_id: str) -> tuple[NoteRow, Decision]:
    """The row of a memory that may be written, after taking in what a person changed meanwhile.

    Raises:
        NotFound: there is no such memory for this principal.
        NotAllowed: the note is one of the user's own, read-only.
        BadNote: the note has a problem that a person must mend first.
    """
    row, _ = find(principal, parts, note_id, "write")
    parts.importer.import_paths([row.path], settled=True)
    row, decision = find(principal, parts, note_id, "write")
    if row.read_only:
        raise NotAllowed(
            "This is a note of the person's own vault; the gateway only reads it.",
            file=row.path,
            advice="Edit it in Obsidian.",
        )
    if row.status == HELD:
        raise BadNote("The note has a problem that a person must mend first; see /v1/problems.", file=row.path)
    return row, decision


def _to_commit(new: NewMemory, namespace: Namespace, *, explicit: bool) -> ToCommit:
    return ToCommit(
        namespace=str(namespace),
        content=new.content,
        memory_type=new.memory_type,
        summary=new.summary,
        tags=new.tags,
        importance=new.importance,
        confidence=new.confidence,
        visibility=new.visibility,
        source=new.source,
        source_ref=new.source_ref,
        expires_at=new.expires_at,
        explicit=explicit,
        temporal=written_out(new.model_dump(include=set(PROPERTIES)), written=now()),
    )


def recalled(parts: Parts, claim: Claim | None) -> FirstAnswer | None:
    """The first answer to a request that is repeated; None for a new one."""
    if claim is None:
        return None
    with parts.ledger.read() as tx:
        return idempotency.recall(tx, claim)


def _answer(parts: Parts, status: int) -> Callable[[NoteRow], tuple[int, dict[str, Any]]]:
    return lambda row: (status, asdict(versions.fresh(row, parts)))


def _waited(parts: Parts, row: NoteRow, wait: float) -> NoteRow:
    parts.wake()
    if wait <= 0:
        return row
    parts.feed.wait_searchable(row.note_id, wait)
    with parts.ledger.read() as tx:
        return registry.note(tx, row.note_id) or row


def _no_namespace(namespace: Namespace) -> NotFound:
    return NotFound(f"There is no namespace {str(namespace)!r}.", field="namespace")

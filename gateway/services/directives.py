"""Directives: standing instructions of a user to agents, one note each, on a trust plane of their own (seed 002).

Only a user makes one, or approves one: what an agent suggests is a draft.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now
from gateway.errors import Invalid, NotFound
from gateway.importer.parts import Parts
from gateway.ledger import registry, reviews
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import Review, ReviewFilter
from gateway.notes.drafts import read_draft
from gateway.notes.namespace import Namespace
from gateway.notes.note import PropertyValue, parse
from gateway.notes.topics import topic_of
from gateway.services import forgetting, memories
from gateway.services import reviews as review_service
from gateway.services.authors import actor_of
from gateway.services.context_requests import DirectivePatch, NewDirective
from gateway.services.proposing import Origin, propose_directive
from gateway.services.records import InReview, content_of, text_time
from gateway.services.requests import AcceptReview, Precondition
from gateway.services.secrets import check_request
from gateway.services.suppression import SUPPRESS, active_directives, kind_of
from gateway.skills.commit import Authority, ToCommit, commit
from gateway.skills.proposals import changed_note, finished

ANY = Precondition(("*",), None)


@dataclass(frozen=True, slots=True)
class DirectiveRecord:
    """A directive, or the draft of one. Times are RFC 3339 in UTC.

    Attributes:
        id: of the note; of the review while it is a draft.
        kind: `style`, `rule` or `suppress_topic`.
        status: `active`, `draft`, or what the note says.
    """

    id: str
    user_id: str
    kind: str
    content: str
    status: str
    created_at: str
    updated_at: str
    version: int
    etag: str
    path: str


def listed(principal: Principal, parts: Parts, user_id: str | None) -> list[DirectiveRecord]:
    """The directives of a user: active ones first, last changed first; then the drafts that wait for the user.

    Raises:
        NotFound: there is no such user, or none for this principal.
    """
    context = guard.identify(parts.ledger, principal, user_id=user_id)
    owner = context.user_id or parts.settings.vault.owner
    _check(context, parts, owner, "read")
    found = [_record(parts, row, owner) for row in active_directives(parts, owner)]
    with parts.ledger.read() as tx:
        wanted = ReviewFilter(namespace=str(_namespace(owner)))
        waiting = reviews.page(tx, wanted, limit=1_000, after=None)[0]
    own = [one for one in waiting if principal.agent_id is None or one.agent_id == principal.agent_id]
    drafts = [_draft(parts, one, owner) for one in own]
    return [*(one for one in found if one is not None), *(one for one in drafts if one is not None)]


def create(principal: Principal, parts: Parts, new: NewDirective) -> DirectiveRecord | InReview:
    """Make a directive: by a user it is active, by an agent a draft.

    Raises:
        Invalid: a topic to suppress that is too broad.
        SecretFound: it holds a secret.
    """
    check_request(parts, new)
    _check_topic(new.kind, new.content)
    context = guard.identify(parts.ledger, principal, user_id=new.user_id, agent_id=new.agent_id)
    owner = context.user_id or parts.settings.vault.owner
    namespace = str(_namespace(owner))
    wanted = ToCommit(
        namespace, new.content, "directive", summary=new.summary, kind=new.kind, explicit=context.agent_id is None
    )
    if context.agent_id is not None:
        decision = _check(context, parts, owner, "read")
        entry = guard.entry(context.principal, "propose", "directive", namespace=namespace, decision=decision)
        with parts.importer.lock:
            return propose_directive(parts, wanted, Origin(context, entry, "An agent suggests a standing instruction."))
    decision = _check(context, parts, owner, "write")
    entry = guard.entry(context.principal, "create", "memory", namespace=namespace, decision=decision)
    with parts.importer.lock:
        done = commit(parts, wanted, Authority(actor_of(context), entry))
    parts.wake()
    made = _record(parts, done.row, owner)
    if made is None:
        raise _missing(done.row.note_id)
    return made


def change(principal: Principal, parts: Parts, directive_id: str, patch: DirectivePatch) -> DirectiveRecord:
    """Change a directive of a user.

    Raises:
        NotFound: there is none, or none for this principal.
        NotAllowed: agents do not change directives.
        Invalid: a topic to suppress that is too broad.
    """
    check_request(parts, patch)
    row = _row(parts, directive_id)

    def compose(row: NoteRow, data: bytes) -> bytes:
        kind = patch.kind or kind_of(data)
        text = patch.content if patch.content is not None else content_of(data)
        _check_topic(kind, text)
        properties: dict[str, PropertyValue] = {"kind": patch.kind, "summary": patch.summary}
        given = {name: value for name, value in properties.items() if value is not None}
        after = changed_note(data, row, text=patch.content, properties=given, at=now())
        status = {} if patch.status in (None, row.status) else {"status": patch.status}
        return finished(data, after, status, row, now()) if status else after

    precondition = Precondition((), patch.version) if patch.version is not None else ANY
    asked = {"user_id": None, "agent_id": None, "workspace_id": None}
    memories.rewrite(principal, parts, row.note_id, memories.Rewrite(asked, precondition, compose))
    changed = _record(parts, _row(parts, directive_id), row.user_id or "")
    if changed is None:
        raise _missing(directive_id)
    return changed


def remove(principal: Principal, parts: Parts, directive_id: str) -> str:
    """Take a directive away. Returns its id.

    Raises:
        NotFound: there is none, or none for this principal.
    """
    row = _row(parts, directive_id)
    forgetting.forget(principal, parts, row.note_id, ANY)
    return row.note_id


def approve(principal: Principal, parts: Parts, directive_id: str) -> DirectiveRecord:
    """Let a suggested directive become active.

    Args:
        directive_id: of the draft's review, or of a note that is not active yet.

    Raises:
        NotFound: there is none, or none for this principal.
        NotAllowed: agents do not approve.
        AlreadyDecided: it was decided before.
    """
    if directive_id.startswith("rev_"):
        done = review_service.accept(principal, parts, directive_id, AcceptReview.model_validate({}))
        assert isinstance(done, review_service.DecisionRecord)
        approved = _record(parts, _row(parts, done.memory_id or ""), "")
        if approved is None:
            raise _missing(directive_id)
        return approved
    return change(principal, parts, directive_id, DirectivePatch.model_validate({"status": "active"}))


def _check_topic(kind: str, content: str) -> None:
    if kind != SUPPRESS:
        return
    try:
        topic_of(content)
    except ValueError as error:
        raise Invalid(
            f"This cannot be suppressed: {error}.", field="content", advice="Name the topic itself."
        ) from None


def _namespace(owner: str) -> Namespace:
    return Namespace("user", owner, "directives")


def _check(context: Context, parts: Parts, owner: str, action: str) -> Decision:
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, _namespace(owner))
    what = "write" if action == "write" else "read"
    return guard.check(parts.ledger, context.principal, what, resource, guard.no_user(owner))


def _row(parts: Parts, directive_id: str) -> NoteRow:
    with parts.ledger.read() as tx:
        row = registry.note(tx, directive_id)
    if row is None or not row.namespace.endswith("/directives"):
        raise _missing(directive_id)
    return row


def _missing(directive_id: str) -> NotFound:
    return NotFound(f"There is no directive {directive_id!r}.", field="directive_id")


def _record(parts: Parts, row: NoteRow, owner: str) -> DirectiveRecord | None:
    read = parts.files.read(row.path)
    if read is None:
        return None
    return DirectiveRecord(
        id=row.note_id,
        user_id=row.user_id or owner,
        kind=kind_of(read.data),
        content=content_of(read.data),
        status=row.status,
        created_at=text_time(row.created_at) or "",
        updated_at=text_time(row.updated_at) or "",
        version=row.version,
        etag=row.etag,
        path=row.path,
    )


def _draft(parts: Parts, review: Review, owner: str) -> DirectiveRecord | None:
    read = parts.files.read(review.path)
    if read is None:
        return None
    try:
        text = read_draft(parse(read.data)).text
    except Invalid:
        return None
    return DirectiveRecord(
        id=review.id,
        user_id=owner,
        kind=kind_of(read.data),
        content=text,
        status="draft",
        created_at=text_time(review.created_at) or "",
        updated_at=text_time(review.updated_at) or "",
        version=1,
        etag=review.etag,
        path=review.path,
    )

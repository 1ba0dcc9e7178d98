"""import_from_obsidian: takes a draft that a person accepted to its place in the vault, or puts a rejected one away.

All four ways of deciding end here: a property or a move in Obsidian, the API and its page, the command line, and git.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.clock import now, now_ms
from gateway.errors import (
    AlreadyDecided,
    BadNote,
    ChangedElsewhere,
    Conflict,
    DraftStale,
    Invalid,
    NotAllowed,
    SecretFound,
)
from gateway.importer.drafts import GATEWAY, DraftFiles
from gateway.importer.parts import Parts
from gateway.importer.rows import HELD
from gateway.importer.screening import screened
from gateway.ledger import Transaction, journal, registry, reviews
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import PENDING, WITHDRAWN, Review
from gateway.notes.drafts import (
    QUEUE,
    Decision,
    DraftNote,
    folder_of_draft,
    memory_properties,
    read_draft,
    with_text,
)
from gateway.notes.namespace import archive_path, note_path, parse_namespace
from gateway.notes.note import parse
from gateway.notes.text import content_hash, etag_of, file_name_for
from gateway.skills.contract import Skill
from gateway.skills.deciding import Decider, Plan, Step, carry_out, final_of
from gateway.skills.export_to_obsidian import Proposal, draft_bytes, explained
from gateway.skills.proposals import changed_note, new_note
from gateway.skills.prune import standing_text
from gateway.vault.files import FileRead
from gateway.vault.merge import merge_texts


@dataclass(frozen=True, slots=True)
class DecidedDraft:
    """A draft that a person accepted or rejected.

    Attributes:
        text: replaces the draft's text, if given.
        etag: the draft as the person saw it, if they say so.
        merged: git has made the change already, by a merge of the draft's branch.
    """

    review_id: str
    decision: Decision
    text: str | None = None
    etag: str | None = None
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """The memory that an accepted draft became; None for a rejected one."""

    review: Review
    memory_id: str | None


def decide(parts: Parts, wanted: DecidedDraft, decider: Decider) -> Decided:
    """Carry out a decision. Call it with the importer's lock held.

    Raises:
        AlreadyDecided: it was decided before; the error says how.
        DraftStale: the memory changed since; the draft was brought up to date and must be looked at again.
        ChangedElsewhere: the draft is not the one the person saw.
        BadNote: the draft cannot be read, with the line; or the text would make no readable note.
    """
    review, read = _current(parts, wanted)
    text = _text_in_vault(parts, review, wanted) if wanted.merged else wanted.text
    data = read.data if text is None else with_text(read.data, text)
    draft = read_in(parts, review, data)
    if wanted.decision == "reject":
        plan = _plan(review, read, data, draft, decider, decision="reject")
        return Decided(carry_out(parts, review, plan), None)
    try:
        steps, memory_id, path = _merged(parts, review) if wanted.merged else steps_of(parts, review, draft)
    except DraftStale:
        refresh(parts, review, read, draft)
        raise
    plan = _plan(review, read, data, draft, decider, accepted=(steps, memory_id, path))
    done = carry_out(parts, review, plan)
    return Decided(done, done.memory_id)


def refresh(parts: Parts, review: Review, read: FileRead, draft: DraftNote) -> Review:
    """Bring a draft up to the memory as it is now: its text is merged with what changed, its diff is new, and the
    decision is open again."""
    with parts.ledger.read() as tx:
        target = registry.note(tx, review.target_id) if review.target_id else None
    if target is None:
        return review
    edited = review.etag != review.written_etag
    text = _merged_text(parts, review, target, draft.text)
    wanted = replace(proposal_of(review, draft), text=text)
    at = now()
    explanation, base = explained(parts, wanted, review.memory_id, target, at)
    data = draft_bytes(wanted, review.id, explanation, base, at)
    files = DraftFiles(parts.importer)
    fresh = replace(
        review,
        base=base,
        etag=etag_of(data),
        written_etag="" if edited else etag_of(data),
        branch_etag=None,
        updated_at=now_ms(),
    )

    def settle(tx: Transaction, path: str) -> None:
        reviews.save(tx, replace(fresh, path=path))
        files.record(tx, review.id, path, data, actor=GATEWAY, old_path=review.path)

    if folder_of_draft(review.path) == QUEUE:
        files.rewrite(review.id, review.path, read.etag, data, settle=lambda tx: settle(tx, review.path))
        return fresh
    name = review.path.rpartition("/")[2]
    path = files.relocate(review.id, review.path, read.etag, f"{QUEUE}/{name}", data, settle=settle)
    return replace(fresh, path=path)


def read_in(parts: Parts, review: Review, data: bytes) -> DraftNote:
    """Read a draft's bytes.

    Raises:
        BadNote, SecretFound: with file and line.
    """
    try:
        note = screened(parse(data, max_bytes=parts.files.max_bytes), parts.settings.secrets)
        if note.readiness == "held" and note.problems[0].kind == "secret":
            first = note.problems[0]
            raise SecretFound(first.message, file=review.path, line=first.line, advice=first.advice)
        return read_draft(note)
    except BadNote as error:
        raise BadNote(
            error.detail,
            field=error.field,
            file=review.path,
            line=error.line,
            advice="Mend the draft in Obsidian, then decide.",
        ) from None


def proposal_of(review: Review, draft: DraftNote) -> Proposal:
    """The proposal of a draft as it stands; what it is about is the ledger's to say, the text the person's."""
    return Proposal(
        proposal=review.proposal,
        target_namespace=review.namespace,
        text=draft.text,
        proposed_by=review.proposed_by,
        why=review.why,
        properties=memory_properties(draft),
        removes=draft.removes,
        target_id=review.target_id,
        merges=merges_of(review),
        evidence=tuple(review.evidence),
        user_id=review.user_id,
        agent_id=review.agent_id,
        candidate_id=review.candidate_id,
    )


def merges_of(review: Review) -> tuple[str, ...]:
    """The memories that a merge takes in, or that the settling of a contradiction retires."""
    retiring = review.proposal in ("merge", "conflict")
    return tuple(one for one in review.base if one != review.target_id) if retiring else ()


def author_of(label: str) -> Actor:
    """Who is named as the author of a memory that came by a draft: who proposed it."""
    kind, _, name = label.partition(":")
    match kind:
        case "agent":
            return Actor("agent", name, f"{name}@agents.memory.local", label)
        case "user":
            return Actor("user", name, f"{name}@users.memory.local", label)
        case _:
            return GATEWAY


def _current(parts: Parts, wanted: DecidedDraft) -> tuple[Review, FileRead]:
    with parts.ledger.read() as tx:
        review = reviews.review(tx, wanted.review_id)
    if review is None:
        raise Invalid("There is no such draft.", field="review_id")
    if review.status not in (PENDING, WITHDRAWN):
        raise AlreadyDecided(
            f"The draft was {review.status} already.",
            file=review.path,
            advice="Change the memory itself, or propose anew.",
            review_id=review.id,
            review_status=review.status,
            memory_id=review.memory_id if review.status == reviews.ACCEPTED else None,
        )
    read = parts.files.read(review.path)
    if read is None:
        raise Conflict("The file of the draft is gone.", file=review.path, advice="Bring it back, then decide.")
    if wanted.etag is not None and wanted.etag != read.etag:
        raise ChangedElsewhere(
            "The draft was edited since you read it; nothing was decided.",
            field="If-Match",
            file=review.path,
            advice="Read it again, then decide.",
            etag=read.etag,
        )
    return review, read


def _plan(
    review: Review,
    read: FileRead,
    data: bytes,
    draft: DraftNote,
    decider: Decider,
    *,
    decision: Decision = "accept",
    accepted: tuple[tuple[Step, ...], str, str | None] | None = None,
) -> Plan:
    steps, memory_id, path = accepted if accepted is not None else ((), None, None)
    final_path, final = final_of(review, data, decision, decider, path)
    return Plan(
        review_id=review.id,
        decision=decision,
        memory_id=memory_id,
        draft_path=review.path,
        draft=read.data,
        final_path=final_path,
        final=final,
        steps=steps,
        content=content_hash(draft.text),
        decider=decider,
        author=author_of(review.proposed_by),
    )


def steps_of(parts: Parts, review: Review, draft: DraftNote) -> tuple[tuple[Step, ...], str, str | None]:
    """What accepting does, the id of the memory, and where it will stand.

    Raises:
        DraftStale: a memory that the draft is about changed or is gone.
        BadNote, CannotPatch, Invalid: it would make no readable note.
    """
    if review.target_id is None:
        return _new(parts, review, draft)
    rows = _unchanged(parts, review)
    target = rows[review.target_id]
    if review.proposal == "archive":
        step = _retired(parts, target)
        return (step,), target.note_id, step.path
    read = parts.files.read(target.path)
    if read is None or read.etag != target.etag:
        raise stale(review)
    data = changed_note(
        read.data,
        target,
        text=draft.text,
        properties=memory_properties(draft),
        removes=draft.removes,
        at=now(),
    )
    steps = [Step("update", target.note_id, target.path, target.etag, data)] if data != read.data else []
    steps += [_retired(parts, rows[other]) for other in merges_of(review)]
    return tuple(steps), target.note_id, target.path


def _new(parts: Parts, review: Review, draft: DraftNote) -> tuple[tuple[Step, ...], str, str | None]:
    if not draft.text.strip():
        raise BadNote("The draft has no text to accept.", file=review.path, advice="Write it, or reject the draft.")
    with parts.ledger.read() as tx:
        same = standing_text(tx, review.namespace, content_hash(draft.text))
    if same is not None:  # written meanwhile in another way
        return (), same.note_id, same.path
    namespace = parse_namespace(review.namespace)
    properties = memory_properties(draft)
    summary = properties.get("summary")
    name = file_name_for(str(summary) if summary else draft.text, review.memory_id)
    path = note_path(namespace, name, owner=parts.settings.vault.owner)
    data = new_note(review.memory_id, namespace, draft.text, properties, at=now())
    return (Step("create", review.memory_id, path, None, data),), review.memory_id, path


def _text_in_vault(parts: Parts, review: Review, wanted: DecidedDraft) -> str | None:
    """The text that a merge brought, where people changed it on the branch; None where the draft says the same."""
    with parts.ledger.read() as tx:
        row = registry.note(tx, review.memory_id)
    standing = parts.files.read(row.path) if row is not None and row.status != HELD else None
    draft = parts.files.read(review.path)
    if standing is None or draft is None or review.proposal == "archive":
        return wanted.text
    body = parse(standing.data).body.replace("\r\n", "\n").strip("\n")
    return None if body == read_in(parts, review, draft.data).text else body


def _merged(parts: Parts, review: Review) -> tuple[tuple[Step, ...], str, str | None]:
    """A merge in git brought the change into the vault; what stands there is what was accepted."""
    with parts.ledger.read() as tx:
        row = registry.note(tx, review.memory_id)
    return (), review.memory_id, row.path if row else None


def _unchanged(parts: Parts, review: Review) -> dict[str, NoteRow]:
    """The notes that a proposal is based on, if they are still as they were.

    Raises:
        DraftStale: one of them changed or is gone.
    """
    with parts.ledger.read() as tx:
        paths = [row.path for row in registry.notes_by_id(tx, list(review.base)).values()]
    parts.importer.import_paths(paths, settled=True)  # what a person changed meanwhile comes first
    with parts.ledger.read() as tx:
        rows = registry.notes_by_id(tx, list(review.base))
    for note_id, etag in review.base.items():
        row = rows.get(note_id)
        if row is None:
            raise DraftStale(
                "A memory that the draft is about is gone.",
                file=review.path,
                advice="Reject the draft, or bring the memory back.",
                review_id=review.id,
            )
        if row.read_only:
            raise NotAllowed("The gateway only reads this note of the person's own vault.", file=row.path)
        if row.status == HELD:
            raise BadNote("The note has a problem that must be mended first; see Problems.", file=row.path)
        if row.etag != etag:
            raise stale(review)
    return rows


def stale(review: Review) -> DraftStale:
    """The answer where the memory is not the one that the proposal was made for."""
    return DraftStale(
        "The memory changed after this was proposed; nothing was written. The draft now shows the difference to it.",
        file=review.path,
        advice="Read the draft again, then decide.",
        review_id=review.id,
    )


def _retired(parts: Parts, row: NoteRow) -> Step:
    read = parts.files.read(row.path)
    if read is None or read.etag != row.etag:
        raise DraftStale("The memory changed a moment ago.", file=row.path, advice="Read the draft again, then decide.")
    return Step("move", row.note_id, archive_path(row.path), row.etag, read.data, source=row.path)


def _merged_text(parts: Parts, review: Review, target: NoteRow, proposed: str) -> str:
    """The proposed text with what changed in the memory meanwhile; as it is where the two contradict each other."""
    with parts.ledger.read() as tx:
        version = journal.version_with_etag(tx, target.note_id, review.base.get(target.note_id, ""))
        kept = journal.bodies(tx, [version.etag]).get(version.etag) if version and version.etag else None
    if version is None or review.proposal == "archive":
        return proposed
    before = kept or (parts.history.show(version.sha, version.path) if version.sha else None)
    now = parts.files.read(target.path)
    if before is None or now is None:
        return proposed
    bodies = [f"{parse(one).body.strip(chr(10) + chr(13))}\n" for one in (before, now.data)]
    merged = merge_texts(f"{proposed}\n", bodies[0], bodies[1])
    return merged.strip("\r\n") if merged is not None else proposed


SKILL = Skill(
    name="import_from_obsidian",
    does="Takes a draft that a person accepted to its place in the vault.",
    takes=DecidedDraft,
    gives=Decided,
    when="when a draft was decided",
    writes_long_term=True,
)

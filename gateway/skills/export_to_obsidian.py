"""export_to_obsidian: puts a proposal into the review queue as a draft note that a person can read, edit and decide."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gateway.clock import now, now_ms
from gateway.errors import AlreadyProposed, Tombstoned
from gateway.importer.drafts import DraftFiles
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, audit, idempotency, registry, reviews, tombstones
from gateway.ledger.audit import AuditEntry
from gateway.ledger.idempotency import Claim
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import PENDING, Review
from gateway.notes.difference import difference
from gateway.notes.drafts import QUEUE, Explanation, render_draft, wikilink
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import PropertyValue, parse
from gateway.notes.secrets import ALLOWED, allows_secrets
from gateway.notes.template import time_text
from gateway.notes.text import content_hash, etag_of, file_name_for, new_memory_id
from gateway.skills.contract import Skill
from gateway.skills.proposals import changed_note, new_note


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed, and on what evidence.

    Attributes:
        proposal: `create`, `update`, `merge`, `archive`, `conflict` or `directive`.
        text: the text that the memory is to have.
        properties: those that the memory is to have; of an existing one, those that change.
        removes: properties that are to be taken away.
        target_id: the existing memory concerned; `merges` are others that it takes in.
        why: why a person is asked, in one sentence.
        evidence: ids of memories, episodes and sessions that it rests on.
        proposed_by: the label of who proposes, as `agent:hermes`.
        candidate_id: the candidate of a session that it came from.
    """

    proposal: str
    target_namespace: str
    text: str
    proposed_by: str
    why: str
    properties: Mapping[str, PropertyValue] = field(default_factory=dict[str, PropertyValue])
    removes: tuple[str, ...] = ()
    target_id: str | None = None
    merges: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    user_id: str | None = None
    agent_id: str | None = None
    candidate_id: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft in `Reviews/Queue`."""

    review_id: str
    path: str
    status: str = PENDING


@dataclass(frozen=True, slots=True)
class Proposer:
    """In whose name a draft is written, and which retry of which request it is."""

    actor: Actor
    entry: AuditEntry
    claim: Claim | None = None
    answer: Callable[[Draft], tuple[int, dict[str, Any]]] | None = None


def propose(parts: Parts, wanted: Proposal, proposer: Proposer) -> Draft:
    """Put a draft into the queue, or bring the open one of the same subject up to date. Call it with the importer's
    lock held.

    Raises:
        Tombstoned: a person rejected the same proposal before.
        AlreadyProposed: there is an open draft for the memory that a person is editing.
        BadNote, CannotPatch, Invalid: what is proposed could not be carried out.
    """
    content = hash_of(wanted)
    with parts.ledger.read() as tx:
        target = registry.note(tx, wanted.target_id) if wanted.target_id else None
        key = proposal_key(wanted.proposal, wanted.target_id, content, target.etag if target else "")
        if tombstones.proposal_buried(tx, wanted.target_namespace, key):
            raise Tombstoned(
                "A person rejected this proposal; it is not made again.",
                field="content",
                advice="A user can write it explicitly: source `manual`, without an agent.",
            )
        if wanted.target_id is None and tombstones.buried(tx, wanted.target_namespace, content_hash=content):
            raise Tombstoned(
                "This text was forgotten on request and may not come back by this way.",
                field="content",
                advice="A user can write it again explicitly: source `manual`.",
            )
        known = reviews.open_for(tx, subject_of(wanted, content))
    if known is not None and known.content_hash == content and known.proposal == wanted.proposal:
        wanted = replace(wanted, evidence=tuple(dict.fromkeys((*known.evidence, *wanted.evidence))))
        if list(wanted.evidence) == known.evidence or known.etag != known.written_etag:
            return _known(parts, known, wanted, proposer)
    if known is not None and known.etag != known.written_etag:
        raise AlreadyProposed(
            "A person is editing the open draft for this memory; it is not replaced.",
            file=known.path,
            advice="Wait until it is decided, then propose again.",
            review_id=known.id,
        )
    return _written(parts, wanted, proposer, known, target)


def hash_of(wanted: Proposal) -> str:
    """By what the same proposal is known: its text, and for a change also what becomes of the properties."""
    if wanted.target_id is None or wanted.proposal != "update" or not (wanted.properties or wanted.removes):
        return content_hash(wanted.text)
    changes = json.dumps([dict(wanted.properties), sorted(wanted.removes)], sort_keys=True, ensure_ascii=False)
    return content_hash(f"{wanted.text}\n{changes}")


def subject_of(wanted: Proposal, content: str) -> str:
    """What a proposal is about: the memory it changes, or the new text in its namespace."""
    return f"memory:{wanted.target_id}" if wanted.target_id else f"text:{wanted.target_namespace}:{content}"


def proposal_key(proposal: str, target_id: str | None, content: str, base_etag: str) -> str:
    """By what a rejected proposal is recognised when it comes again; retiring a memory, until that has changed."""
    return f"archive:{target_id}:{base_etag}" if proposal == "archive" else f"{target_id or ''}:{content}"


def explained(
    parts: Parts, wanted: Proposal, memory_id: str, target: NoteRow | None, at: datetime
) -> tuple[Explanation, dict[str, str]]:
    """The callout of a draft, and the etags of the notes that the proposal is based on.

    Raises:
        BadNote, CannotPatch, Invalid: what is proposed could not be carried out.
    """
    who = wanted.proposed_by.partition(":")[2] or wanted.proposed_by
    base: dict[str, str] = {}
    diff = ""
    if target is None:
        new_note(memory_id, parse_namespace(wanted.target_namespace), wanted.text, wanted.properties, at=at)
        what = "a new instruction" if wanted.proposal == "directive" else "a new memory"
        headline = f"`{who}` proposes {what} for `{wanted.target_namespace}`"
    else:
        headline = f"`{who}` proposes to {_VERBS[wanted.proposal]} {wikilink(target.path, target.title)}"
        read = parts.files.read(target.path)
        present = read.data if read else b""
        base[target.note_id] = etag_of(present)
        if wanted.proposal != "archive":
            after = changed_note(
                present, target, text=wanted.text, properties=wanted.properties, removes=wanted.removes, at=at
            )
            diff = difference(present, after, old_name="now", new_name="proposed")
    with parts.ledger.read() as tx:
        others = registry.notes_by_id(tx, [*wanted.merges, *wanted.evidence])
    base |= {one: others[one].etag for one in wanted.merges if one in others}
    shown = [_evidence(one, others.get(one)) for one in (*wanted.merges, *wanted.evidence)]
    return Explanation(headline, wanted.why, tuple(dict.fromkeys(shown)), diff), base


def draft_bytes(
    wanted: Proposal, review_id: str, explanation: Explanation, base: Mapping[str, str], at: datetime
) -> bytes:
    """The file of a draft.

    Raises:
        BadNote: it would not read back as it was given.
    """
    properties: dict[str, PropertyValue] = {
        "review_id": review_id,
        "proposal": wanted.proposal,
        "target": wanted.target_id,
        "target_namespace": wanted.target_namespace,
        "target_etag": base.get(wanted.target_id) if wanted.target_id else None,
        "proposed_by": wanted.proposed_by,
        "merges": list(wanted.merges),
        "removes": list(wanted.removes),
        "evidence": list(wanted.evidence),
        "status": "needs_review",
        "created": time_text(at),
    }
    tag = "memory/conflict" if wanted.proposal == "conflict" else "memory/review"
    given = wanted.properties.get("tags")
    tags: list[PropertyValue] = [*given, tag] if isinstance(given, list) else [tag]
    return render_draft({**wanted.properties, **properties, "tags": tags}, explanation, wanted.text)


def _written(parts: Parts, wanted: Proposal, proposer: Proposer, known: Review | None, target: NoteRow | None) -> Draft:
    at = now()
    content = hash_of(wanted)
    wanted = _complete(wanted, target)
    if target is not None and _allows_secrets(parts, target):
        wanted = replace(wanted, properties={**wanted.properties, "secrets": ALLOWED})
    review_id = known.id if known else f"rev_{uuid.uuid4().hex[:20]}"
    memory_id = wanted.target_id or (known.memory_id if known else new_memory_id())
    explanation, base = explained(parts, wanted, memory_id, target, at)
    data = draft_bytes(wanted, review_id, explanation, base, at)
    files = DraftFiles(parts.importer)
    title = _title(wanted, target)
    review = replace(_row(wanted, review_id, memory_id, data, base=base, content=content), title=title)
    if known is not None:
        review = replace(
            review,
            path=known.path,
            created_at=known.created_at,
            branch_sha=known.branch_sha,
            pushed_sha=known.pushed_sha,
        )

        def settle(tx: Transaction) -> None:
            _record(tx, files, review, data, proposer)

        files.rewrite(review_id, known.path, known.etag, data, settle=settle)
        return Draft(review_id, known.path)
    parts.importer.check_present()
    path = files.create(review_id, f"{QUEUE}/{file_name_for(title, review_id)}", data)
    review = replace(review, path=path)
    with parts.ledger.write() as tx:
        _record(tx, files, review, data, proposer)
        files.know(tx, path)
    return Draft(review_id, path)


def _record(tx: Transaction, files: DraftFiles, review: Review, data: bytes, proposer: Proposer) -> None:
    reviews.save(tx, review)
    files.record(tx, review.id, review.path, data, actor=proposer.actor)
    audit.write(tx, replace(proposer.entry, action="propose", target_type="review", target_id=review.id))
    _answer(tx, review, proposer)


def _known(parts: Parts, known: Review, wanted: Proposal, proposer: Proposer) -> Draft:
    """The same was proposed already: its evidence grows, its text is left to the person."""
    with parts.ledger.write() as tx:
        if list(wanted.evidence) != known.evidence:
            reviews.save(tx, replace(known, evidence=list(wanted.evidence), updated_at=now_ms()))
        _answer(tx, known, proposer)
    return Draft(known.id, known.path)


def _answer(tx: Transaction, review: Review, proposer: Proposer) -> None:
    if proposer.claim is None or proposer.answer is None:
        return
    idempotency.reserve(tx, proposer.claim, review.id)
    idempotency.answer(tx, review.id, *proposer.answer(Draft(review.id, review.path)))


def _row(
    wanted: Proposal, review_id: str, memory_id: str, data: bytes, *, base: dict[str, str], content: str
) -> Review:
    confidence = wanted.properties.get("confidence")
    at = now_ms()
    return Review(
        id=review_id,
        proposal=wanted.proposal,
        status=PENDING,
        subject=subject_of(wanted, content),
        namespace=wanted.target_namespace,
        target_id=wanted.target_id,
        memory_id=memory_id,
        title="",
        confidence=float(confidence) if isinstance(confidence, int | float) else 1.0,
        path="",
        etag=etag_of(data),
        written_etag=etag_of(data),
        base=base,
        content_hash=content,
        proposed_by=wanted.proposed_by,
        user_id=wanted.user_id,
        agent_id=wanted.agent_id,
        why=wanted.why,
        evidence=list(wanted.evidence),
        candidate_id=wanted.candidate_id,
        branch_sha=None,
        branch_etag=None,
        pushed_sha=None,
        decided_by=None,
        decided_via=None,
        decision_reason=None,
        created_at=at,
        updated_at=at,
        decided_at=None,
    )


def _complete(wanted: Proposal, target: NoteRow | None) -> Proposal:
    """What lists of drafts show is in every draft; what the memory says already changes nothing when accepted."""
    properties = dict(wanted.properties)
    if target is not None:
        properties.setdefault("confidence", target.confidence)
        properties.setdefault("summary", target.summary or None)
    properties.setdefault("confidence", 1.0)
    return replace(wanted, properties=properties)


def _allows_secrets(parts: Parts, target: NoteRow) -> bool:
    """A person allowed the memory to hold secrets: its draft, which quotes it, may as well."""
    read = parts.files.read(target.path)
    return read is not None and allows_secrets(parse(read.data))


def _title(wanted: Proposal, target: NoteRow | None) -> str:
    summary = wanted.properties.get("summary")
    if isinstance(summary, str) and summary:
        return summary
    return target.title if target is not None else _first_line(wanted.text)


def _first_line(text: str) -> str:
    return next((line.strip() for line in parse(text.encode("utf-8")).body.splitlines() if line.strip()), "Draft")


def _evidence(identifier: str, row: NoteRow | None) -> str:
    return wikilink(row.path, row.title) if row is not None else f"`{identifier}`"


_VERBS: Mapping[str, str] = {
    "update": "change",
    "merge": "merge others into",
    "archive": "retire",
    "conflict": "settle a contradiction with",
}

SKILL = Skill(
    name="export_to_obsidian",
    does="Puts a proposal into the review queue as a draft note.",
    takes=Proposal,
    gives=Draft,
    when="for high-value candidates and everything that needs a person",
    writes_long_term=False,
)

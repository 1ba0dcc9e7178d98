"""Sending a write to review instead of carrying it out: the answer is 202 and names the draft."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gateway.access.guard import Context
from gateway.importer.parts import Parts
from gateway.ledger.audit import AuditEntry
from gateway.ledger.idempotency import Claim
from gateway.ledger.registry import NoteRow
from gateway.services.authors import actor_of
from gateway.services.records import InReview, ReviewReference
from gateway.services.skills_enabled import require
from gateway.skills.commit import ToCommit, properties_of
from gateway.skills.export_to_obsidian import Draft, Proposal, Proposer, propose
from gateway.skills.proposals import between


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a proposal comes from: who asks, why a person must decide, and what it rests on.

    Attributes:
        label: who is named as its author; None: the context's agent or user.
    """

    context: Context
    entry: AuditEntry
    why: str
    claim: Claim | None = None
    evidence: tuple[str, ...] = ()
    candidate_id: str | None = None
    label: str | None = None


def propose_new(parts: Parts, wanted: ToCommit, origin: Origin) -> InReview:
    """Propose a new memory. Call it with the importer's lock held.

    Raises:
        Tombstoned: a person rejected the same text before.
        AlreadyProposed, BadNote, Invalid: as for `propose`.
    """
    proposal = _proposal(parts, origin, "create", wanted.namespace, wanted.content, properties=properties_of(wanted))
    return _sent(parts, proposal, origin)


def propose_directive(parts: Parts, wanted: ToCommit, origin: Origin) -> InReview:
    """Propose a standing instruction. Call it with the importer's lock held.

    Raises:
        Tombstoned: a person rejected the same before.
        AlreadyProposed, BadNote, Invalid: as for `propose`.
    """
    properties = properties_of(wanted)
    proposal = _proposal(parts, origin, "directive", wanted.namespace, wanted.content, properties=properties)
    return _sent(parts, proposal, origin)


def propose_change(parts: Parts, row: NoteRow, present: bytes, changed: bytes, origin: Origin) -> InReview:
    """Propose that a memory's bytes become others. Call it with the importer's lock held.

    Raises:
        Tombstoned, AlreadyProposed, BadNote, Invalid: as for `propose_new`.
    """
    found = between(present, changed)
    proposal = _proposal(
        parts, origin, "update", row.namespace, found.text, target_id=row.note_id, properties=found.properties,
        removes=found.removes,
    )  # fmt: skip
    return _sent(parts, proposal, origin)


def propose_archive(parts: Parts, row: NoteRow, text: str, origin: Origin) -> InReview:
    """Propose that a memory be retired. Call it with the importer's lock held.

    Raises:
        Tombstoned, AlreadyProposed: as for `propose_new`.
    """
    return _sent(parts, _proposal(parts, origin, "archive", row.namespace, text, target_id=row.note_id), origin)


def _proposal(parts: Parts, origin: Origin, kind: str, namespace: str, text: str, **more: Any) -> Proposal:
    context = origin.context
    user_id = context.user_id or parts.settings.vault.owner
    label = origin.label or (f"agent:{context.agent_id}" if context.agent_id else f"user:{user_id}")
    return Proposal(
        proposal=kind,
        target_namespace=namespace,
        text=text.replace("\r\n", "\n").strip("\n"),
        proposed_by=label,
        why=origin.why,
        evidence=origin.evidence,
        user_id=user_id,
        agent_id=context.agent_id,
        candidate_id=origin.candidate_id,
        **more,
    )


def _sent(parts: Parts, proposal: Proposal, origin: Origin) -> InReview:
    require(parts, proposal.user_id, "export_to_obsidian")
    proposer = Proposer(
        actor_of(origin.context), origin.entry, origin.claim, lambda draft: (202, asdict(_answer(draft)))
    )
    return _answer(propose(parts, proposal, proposer))


def _answer(draft: Draft) -> InReview:
    return InReview(ReviewReference(draft.review_id, draft.status, draft.path))

"""One pass's surroundings: parts, budget, report, and the check that nothing changed since a step began."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.config import ConsolidationSettings
from gateway.errors import AlreadyProposed, GatewayError, Tombstoned
from gateway.importer.drafts import GATEWAY
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, agents, consolidating, dirty, fences, registry, reviews, skill_configs
from gateway.ledger.audit import AuditEntry
from gateway.ledger.dirty import Dirty
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import Review
from gateway.notes.namespace import parse_namespace
from gateway.services import policy
from gateway.services.records import content_of
from gateway.skills.export_to_obsidian import Proposal, Proposer, hash_of, propose
from gateway.skills.likeness import Comparison, Limits, compare
from gateway.skills.nearness import StatementVectors, similarity
from gateway.skills.wording import statement
from gateway.workers.consolidation.budget import Budget, MeteredModel
from gateway.workers.consolidation.report import Failure, PassReport, Proposed

LABEL = "gateway:consolidation"
NO_DRAFTS = "its user switched drafts off"
WRITING = ("commit", "export_to_obsidian")  # the skills without which nothing new is written or proposed
_PATIENCE = 3
# Rooms whose notes are memories of their own; the others are one fixed note of somebody, or instructions.
ROOMS = frozenset({"long_term", "memory", "shared", "public"})


class Stale(Exception):
    """What a step saw has changed: nothing is written, the work stays."""


class NotNow(Exception):
    """Something must happen first (an index, a decision, the next pass): the work stays."""


class GoesOn(NotNow):
    """There is nothing to do before a time (`until`, ms): the work takes no part until then, unless it changes."""

    def __init__(self, until: int) -> None:
        super().__init__("it still goes on")
        self.until = until


@dataclass(frozen=True, slots=True)
class Claim:
    """A preference of a user: its text, how sure it is, and the sessions, episodes and memories it rests on.

    Attributes:
        work: what was looked at when it was found; it settles when the claim has been dealt with.
    """

    user_id: str
    text: str
    confidence: float
    evidence: tuple[str, ...]
    work: Dirty | None

    @property
    def sessions(self) -> int:
        """Distinct conversations in which it was said."""
        return len({one for one in self.evidence if one.startswith("session/")})


@dataclass(slots=True)
class Pass:
    """What the steps of one pass share.

    Attributes:
        claims: preferences that may have become stable enough for a profile.
        handled: memories judged in this pass, and candidates that a dry run has dealt with.
        united: memories that were found to say the same as others.
    """

    parts: Parts
    settings: ConsolidationSettings
    budget: Budget
    model: MeteredModel | None
    vectors: StatementVectors
    report: PassReport
    model_name: str = ""
    claims: list[Claim] = field(default_factory=list["Claim"])
    handled: set[str] = field(default_factory=set[str])
    united: set[str] = field(default_factory=set[str])

    @property
    def dry(self) -> bool:
        """Whether nothing may be written."""
        return self.report.dry_run

    @property
    def limits(self) -> Limits:
        """The similarities of the settings."""
        given = self.settings
        return Limits(given.alike, given.across, given.unsure, min(given.unsure, given.across) - 0.06)

    def compared(self, one: str, other: str, own_name: str) -> Comparison:
        """Two texts by their words, and by their vectors where words leave it open."""
        mine, theirs = statement(one, own_name), statement(other, own_name)
        found = compare(mine, theirs, None, self.limits)
        if not found.open:
            return found
        vectors = self.vectors.of(self.parts.feed, [one, other])
        near = similarity(vectors.get(one), vectors.get(other))
        return found if near is None else compare(mine, theirs, near, self.limits)

    def text_of(self, row: NoteRow) -> str | None:
        """A memory's text as the ledger knows it; None where the file has moved on."""
        read = self.parts.files.read(row.path)
        return content_of(read.data) if read is not None and read.etag == row.etag else None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a step began with: the work (None: no particular), its settings, and the memories it looked at by etag."""

    work: Dirty | None
    fingerprint: str
    user_id: str
    etags: dict[str, str]

    def check(self, run: Pass, tx: Transaction) -> None:
        """Make sure that all is as it was. Call it in the transaction, or under the lock, of what is written.

        Raises:
            Stale: the work has a newer generation, a memory another text, or the configuration is another.
        """
        work, closed = self.work, fences.active(tx)
        if work is not None and dirty.generation(tx, work.kind, work.key) != work.generation:
            raise Stale("it changed meanwhile")
        if fingerprint(run, tx, self.user_id) != self.fingerprint:
            raise Stale("the configuration changed meanwhile")
        rows = registry.notes_by_id(tx, list(self.etags))
        if any(note_id not in rows or rows[note_id].etag != etag for note_id, etag in self.etags.items()):
            raise Stale("a memory changed meanwhile")
        if any(closed.covers(row.namespace) for row in rows.values()):
            raise Stale("it is being cleared")


def fingerprint(run: Pass, tx: Transaction, user_id: str) -> str:
    """A hash of everything that decides what a pass does: settings, model, embedding, and the user's skills."""
    settings, index = run.parts.settings, run.parts.feed.index
    named = {
        "consolidation": settings.consolidation.model_dump(),
        "review": settings.review.model_dump(),
        "secrets": settings.secrets.model_dump(),
        "llm": settings.llm.model_dump(exclude={"api_key"}),
        "model": run.model_name,
        "embedding": index.identity.slug if index.identity else None,
        "skills": skill_configs.states(tx, user_id),
    }
    return hashlib.sha256(json.dumps(named, sort_keys=True, default=str).encode()).hexdigest()


def user_of(run: Pass, tx: Transaction, namespace: str) -> str:
    """Whose switches hold for a namespace: its user, the agent's owner, else the vault's owner."""
    where = parse_namespace(namespace)
    if where.agent_id is not None and (agent := agents.agent(tx, where.agent_id)) is not None:
        return agent.owner_user_id or run.parts.settings.vault.owner
    return where.user_id or run.parts.settings.vault.owner


def is_on(tx: Transaction, user_id: str, *skills: str) -> bool:
    """Whether a user has these skills on."""
    states = skill_configs.states(tx, user_id)
    return all(states.get(name, True) for name in skills)


def model_for(run: Pass, seen: Seen) -> MeteredModel | None:
    """The model that a step may ask; none again and again about what only waits for a switch."""
    with run.parts.ledger.read() as tx:
        idle = seen.work is not None and seen.work.tries > _PATIENCE and not is_on(tx, seen.user_id, *WRITING)
    return None if run.dry or idle else run.model


def is_agents_own(tx: Transaction, row: NoteRow) -> bool:
    """Whether a memory is an agent's alone: in its own namespace, and nobody else ever had a hand in it."""
    return parse_namespace(row.namespace).kind == "agent" and not row.read_only and not policy.is_persons(tx, row)


def entry(action: str, row: NoteRow | None, namespace: str, reason: str) -> AuditEntry:
    """The audit's entry of something that happened by itself."""
    return AuditEntry(action, "memory", row.note_id if row else None, namespace, "allow", reason)


def propose_draft(run: Pass, seen: Seen, wanted: Proposal, *, extend: bool = False) -> str | None:
    """Put a draft into the queue. Returns its id; None where a person said no to it before, or this is a dry run.

    Args:
        extend: an open draft of the same kind is brought up to date; otherwise it comes first.

    Raises:
        NotNow: another draft of the same memory waits for a person, enough drafts do, or the user wants none now.
        Stale: what it is based on changed.
    """
    parts = run.parts
    with parts.ledger.read() as tx:
        if not is_on(tx, seen.user_id, "export_to_obsidian"):
            raise NotNow(NO_DRAFTS)
        room = run.budget.drafts > 0 and consolidating.open_drafts(tx, LABEL) < run.settings.open_drafts
        standing = reviews.open_for(tx, f"memory:{wanted.target_id}") if wanted.target_id else None
    if standing is not None and not _continues(standing, wanted, extend=extend):
        raise NotNow("another draft of it waits")
    if not room and standing is None:
        raise NotNow("enough drafts wait")
    if run.dry:
        would = Proposed(wanted.proposal, wanted.target_namespace, wanted.target_id, wanted.why, None)
        if would not in run.report.proposed:  # a contradiction is met from both of its sides
            run.report.proposed.append(would)
        return None
    try:
        with parts.importer.lock:
            with parts.ledger.read() as tx:
                seen.check(run, tx)
            named = entry("propose", None, wanted.target_namespace, "consolidation")
            draft = propose(parts, wanted, Proposer(GATEWAY, named))
    except Tombstoned:
        return None  # the one way in which a person says no
    except AlreadyProposed:
        raise NotNow("a person is editing the draft of it") from None
    if standing is None:
        run.budget.drafts -= 1
        run.report.proposed.append(
            Proposed(wanted.proposal, wanted.target_namespace, wanted.target_id, wanted.why, draft.review_id)
        )
    return draft.review_id


def _continues(standing: Review, wanted: Proposal, *, extend: bool) -> bool:
    """Whether the open draft of a memory is this proposal, so that proposing it again changes nothing it says."""
    if (standing.proposal, standing.proposed_by) != (wanted.proposal, wanted.proposed_by):
        return False
    return extend or (standing.content_hash == hash_of(wanted) and set(wanted.merges) <= set(standing.base))


def note_failure(run: Pass, work: Dirty, error: BaseException) -> None:
    """Put what could not be done into the report: ids and kinds of errors, no text."""
    reason = error.code if isinstance(error, GatewayError) else str(error) or type(error).__name__
    run.report.failed.append(Failure(work.kind, work.key, reason))


def distinct(values: Iterable[str]) -> tuple[str, ...]:
    """Values in order, each once."""
    return tuple(dict.fromkeys(values))

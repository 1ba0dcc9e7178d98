"""Candidates: taken from the episodes of a session, and let through to memory where policy allows.

Both the commit of a session and consolidation go this way. What was forgotten or rejected is not taken again; what is a
memory already adds its conversation to that memory's evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.rules import Decision
from gateway.clock import now_ms
from gateway.errors import NotFound
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, dirty, fences, reviews, sessions, tombstones
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.ledger.sessions import Candidate, Episode, Session
from gateway.llm import LanguageModel
from gateway.notes.namespace import Namespace, note_path, parse_namespace
from gateway.notes.text import content_hash
from gateway.services import policy
from gateway.services.authors import actor_of
from gateway.services.proposing import Origin, propose_new
from gateway.services.records import ReviewReference, content_of
from gateway.services.secrets import check_candidate
from gateway.skills.classify import Unclassified, classify
from gateway.skills.commit import Authority, ToCommit, commit, standing
from gateway.skills.extract import Extracted, Transcript, extract, known_lines
from gateway.skills.prune import standing_text
from gateway.starter import templates

SUBAGENT = "subagent"
_EPISODES_A_ROUND = 20
# What stands by for every turn: an agent that quotes it says nothing new.
_RESIDENT = ("profile", "preferences", "user_memory", "work_memory", "soul", "user_file", "memory_file")


@dataclass(frozen=True, slots=True)
class Promoted:
    """A candidate that became a memory."""

    id: str
    namespace: str


@dataclass(slots=True)
class Outcome:
    """What came of candidates; `held` says why something could not be written."""

    promoted: list[Promoted] = field(default_factory=list[Promoted])
    reviews: list[ReviewReference] = field(default_factory=list[ReviewReference])
    held: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Taking:
    """How candidates are taken from a session.

    Attributes:
        agent_id: who acts, where the session names no agent.
        target_namespace: where they are to go; None: where they belong.
        keep_going: asked before each episode; the rest waits behind the cursor.
        cut_off: asked after an episode that rules read though there is a model; then it is read another time.
        still_valid: asked in the transaction that would keep an episode's candidates.
    """

    agent_id: str | None = None
    target_namespace: str | None = None
    keep_going: Callable[[], bool] = lambda: True
    cut_off: Callable[[], bool] = lambda: False
    still_valid: Callable[[Transaction], bool] = lambda _tx: True


@dataclass(slots=True)
class Taken:
    """What was taken: `done` unless something still waits, `by` who found it (`model`, `rules`).

    Attributes:
        refused: why something was not taken: it was forgotten, rejected, or is being cleared.
    """

    candidates: list[Candidate] = field(default_factory=list[Candidate])
    refused: list[str] = field(default_factory=list[str])
    by: set[str] = field(default_factory=set[str])
    episodes: int = 0
    done: bool = True


@dataclass(frozen=True, slots=True)
class LetThrough:
    """One candidate on its way into memory.

    Attributes:
        evidence: what it rests on besides its own session and episodes.
        label: who is named as its author in a draft; None: the context's agent or user.
        confidence: replaces its own, where others said the same.
        actor: who writes it, where that is nobody of the context.
    """

    one: Candidate
    decision: Decision
    evidence: tuple[str, ...] = ()
    label: str | None = None
    confidence: float | None = None
    actor: Actor | None = None


def take(parts: Parts, session: Session, model: LanguageModel | None, taking: Taking | None = None) -> Taken:
    """Take candidates from the episodes behind a session's cursor, which moves with each episode that has settled."""
    taking = taking or Taking()
    known = known_for(parts, session.user_id)
    taken, cursor = Taken(), session.cursor
    while True:
        with parts.ledger.read() as tx:
            fresh = sessions.episodes_of(tx, session.user_id, session.id, after=cursor, limit=_EPISODES_A_ROUND)
        if not fresh:
            return taken
        for episode in fresh:
            if not taking.keep_going():
                return replace(taken, done=False)
            found = extract(Transcript(episode.content, known), model)
            if model is not None and found.by == "rules" and taking.cut_off():
                return replace(taken, done=False)
            rows = [_candidate(one, episode, session, taking) for one in found.candidates]
            cursor = episode.seq
            with parts.ledger.write() as tx:
                if not taking.still_valid(tx):
                    return replace(taken, done=False)
                reasons = [_refused(tx, one) for one in rows]
                rows = [one for one, reason in zip(rows, reasons, strict=True) if reason is None]
                sessions.save_candidates(tx, rows)
                sessions.change_session(tx, session.user_id, session.id, cursor=cursor)
            taken.candidates += rows
            taken.refused += [reason for reason in reasons if reason is not None]
            taken.by.add(found.by)
            taken.episodes += 1


def preview(parts: Parts, session: Session, keep_going: Callable[[], bool]) -> list[Candidate]:
    """What the rules would take, written nowhere."""
    known = known_for(parts, session.user_id)
    with parts.ledger.read() as tx:
        fresh = sessions.episodes_of(tx, session.user_id, session.id, after=session.cursor, limit=_EPISODES_A_ROUND)
        found = [
            _candidate(one, episode, session, Taking())
            for episode in fresh
            if keep_going()
            for one in extract(Transcript(episode.content, known)).candidates
        ]
        return [one for one in found if _refused(tx, one) is None]


def known_for(parts: Parts, user_id: str) -> frozenset[str]:
    """The lines that a user's agents are given anyway: resident files, platform rules, the gateway's own prompts."""
    owner = parts.settings.vault.owner
    paths = ["AGENTS.md", *(note_path(Namespace("user", user_id, room), "", owner=owner) for room in _RESIDENT)]
    read = [parts.files.read(path) for path in paths if parts.files.stat(path) is not None]
    texts = [content_of(one.data) for one in read if one is not None]
    texts += [path.read_text("utf-8") for path in sorted((templates() / "prompts").glob("*.md"))]
    return known_lines(texts)


def let_through(context: Context, parts: Parts, wanted: LetThrough, outcome: Outcome) -> None:
    """Write a candidate as a memory, or propose it where policy wants a person's decision.

    Raises:
        GatewayError: why it could not be (a secret in it, no right to write there, forgotten, rejected before).
    """
    one = wanted.one
    check_candidate(parts, one.content)
    namespace = parse_namespace(one.namespace)
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, namespace)
    missing = NotFound(f"There is no namespace {one.namespace!r}.", field="target_namespace")
    principal = context.principal
    acting = replace(principal, agent_id=context.agent_id) if not principal.is_admin else principal
    guard.check(parts.ledger, acting, "write", resource, missing)
    entry = guard.entry(principal, "promote", "memory", namespace=one.namespace, decision=wanted.decision)
    memory = to_commit(one, wanted.confidence)
    evidence = tuple(dict.fromkeys((f"session/{one.session_id}", *one.episode_ids, *wanted.evidence)))
    with parts.importer.lock:
        row = standing(parts, one.namespace, one.content)
        why = why_reviewed(context, parts, wanted)
        if row is None and why is not None:
            origin = Origin(context, entry, why, evidence=evidence, candidate_id=one.id, label=wanted.label)
            outcome.reviews.append(propose_new(parts, memory, origin).review)
            with parts.ledger.write() as tx:
                sessions.await_review(tx, one.id)
            return
        row = row or commit(parts, memory, Authority(wanted.actor or actor_of(context), entry)).row
        with parts.ledger.write() as tx:
            support(tx, one, row.note_id, row.namespace, evidence)
    outcome.promoted.append(Promoted(row.note_id, one.namespace))


def why_reviewed(context: Context, parts: Parts, wanted: LetThrough) -> str | None:
    """Why a person decides about a candidate; None where policy writes it at once."""
    memory = to_commit(wanted.one, wanted.confidence)
    return policy.for_new(
        parts.settings.review,
        parse_namespace(memory.namespace),
        agent_id=context.agent_id or wanted.label,
        source=memory.source,
        confidence=memory.confidence,
        texts=(memory.content,),
    )


def support(tx: Transaction, one: Candidate, memory_id: str, namespace: str, evidence: tuple[str, ...]) -> None:
    """A candidate is a memory, or says what one says: its conversation is that memory's evidence."""
    sessions.promote(tx, one.id, memory_id)
    reviews.add_edges(tx, [(memory_id, parent, "evidence") for parent in evidence])
    dirty.mark(tx, dirty.NOTE, memory_id, namespace)


def to_commit(one: Candidate, confidence: float | None = None) -> ToCommit:
    """The memory that a candidate would become."""
    return ToCommit(
        namespace=one.namespace,
        content=one.content,
        memory_type=one.memory_type,
        importance=one.importance,
        confidence=one.confidence if confidence is None else confidence,
        source="conversation",
        source_ref=f"session/{one.session_id}",
    )


def _refused(tx: Transaction, one: Candidate) -> str | None:
    """Why a candidate is not even kept: nothing of it is stored."""
    content = content_hash(one.content)
    if fences.active(tx).covers(one.namespace, one.user_id):
        return "Its namespace is being cleared."
    if tombstones.buried(tx, one.namespace, content_hash=content):
        return "This text was forgotten on request; it is not taken from a conversation again."
    if tombstones.proposal_buried(tx, one.namespace, f":{content}"):
        return "A person rejected this text when it was proposed."
    return None


def said_already(tx: Transaction, one: Candidate) -> NoteRow | None:
    """The active memory that has exactly a candidate's text, if it holds now and nobody judged it incorrect."""
    return standing_text(tx, one.namespace, content_hash(one.content))


def _candidate(found: Extracted, episode: Episode, session: Session, taking: Taking) -> Candidate:
    agent_id = session.agent_id or taking.agent_id
    unclassified = Unclassified(found.content, found.memory_type, session.user_id, agent_id, taking.target_namespace)
    classified = classify(unclassified)
    key = "\0".join((session.user_id, session.id, found.key)).encode("utf-8")
    return Candidate(
        id=f"cand_{hashlib.sha256(key).hexdigest()[:40]}",
        user_id=session.user_id,
        session_id=session.id,
        agent_id=agent_id,
        workspace_id=session.workspace_id,
        episode_ids=[episode.id],
        memory_type=classified.memory_type,
        content=found.content,
        namespace=classified.namespace,
        importance=found.importance,
        confidence=found.confidence,
        status="candidate",
        memory_id=None,
        created_at=now_ms(),
    )

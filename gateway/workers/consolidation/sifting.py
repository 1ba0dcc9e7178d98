"""Steps 2 to 5 for candidates: score, dedupe, merge, conflict. What is worth it is proposed, or written by policy.

Candidates of one namespace unite freely, since they are no memories yet: one stands for all, the others behind it. What
a memory says already adds its conversation to that memory's evidence; what contradicts one becomes a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now_ms
from gateway.errors import GatewayError, Tombstoned
from gateway.importer.drafts import GATEWAY
from gateway.ledger import Transaction, consolidating, registry, reviews, sessions
from gateway.ledger.consolidating import OPEN, PROPOSED, Lasting
from gateway.ledger.registry import NoteRow
from gateway.ledger.sessions import Candidate
from gateway.notes.namespace import parse_namespace
from gateway.services import candidates, policy
from gateway.services.candidates import LetThrough, Outcome
from gateway.services.records import text_time
from gateway.skills.contradiction import contradiction
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.nearness import neighbours
from gateway.skills.paraphrase import paraphrases
from gateway.skills.scoring import Factors, score
from gateway.workers.consolidation.report import Failure, Proposed, Union
from gateway.workers.consolidation.work import LABEL, Claim, NotNow, Pass, Seen, Stale, distinct, is_on, propose_draft

_DECISION = Decision(True, "consolidation")


@dataclass(frozen=True, slots=True)
class Standing:
    """A candidate that stands for others which say the same."""

    lead: Candidate
    others: tuple[Candidate, ...]

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All of them."""
        return (self.lead, *self.others)

    @property
    def evidence(self) -> tuple[str, ...]:
        """Their sessions and episodes."""
        return distinct(part for one in self.all for part in (f"session/{one.session_id}", *one.episode_ids))

    @property
    def sessions(self) -> int:
        """In how many conversations it was said."""
        return len({one.session_id for one in self.all})


def sift(run: Pass, seen: Seen, fresh: Sequence[Candidate]) -> None:
    """Compare open candidates of one session with memories and with each other, and let the best through.

    Raises:
        NotNow: some of them wait for the next pass or for a person.
        Stale: something changed meanwhile.
    """
    later: list[str] = []
    for namespace in distinct(one.namespace for one in fresh):
        rest: list[Candidate] = []
        for one in fresh:
            if one.namespace == namespace and one.id not in run.handled:
                if not run.budget.more():
                    raise NotNow("the time of the pass is spent")
                try:
                    if not _met_memory(run, seen, one):
                        rest.append(one)
                except NotNow as error:
                    later.append(str(error))
        for standing in _united(run, seen, namespace, rest):
            try:
                _weigh(run, seen, standing)
            except NotNow as error:
                later.append(str(error))
    if later:
        raise NotNow(later[0])


def _met_memory(run: Pass, seen: Seen, one: Candidate) -> bool:
    """Whether a memory says the same already, or the contrary: either way the candidate's own road ends there."""
    with run.parts.ledger.read() as tx:
        same = candidates.said_already(tx, one)
    if same is not None:
        return _support(run, seen, one, same, "the same text")
    vector = run.vectors.of(run.parts.feed, [one.content]).get(one.content)
    ids = neighbours(run.parts.feed.index, one.content, one.namespace, vector, run.settings.neighbours)
    with run.parts.ledger.read() as tx:
        rows = [row for row in registry.notes_by_id(tx, ids).values() if row.status == "active"]
    unsure: list[tuple[NoteRow, str]] = []
    for row in rows:
        text = run.text_of(row)
        if row.namespace != one.namespace or text is None:
            continue
        found = run.compared(one.content, text, one.user_id)
        if found.verdict == "same":
            return _support(run, seen, one, row, found.reason)
        reason = contradiction(one.content, text, own_name=one.user_id, found=found)
        if reason is not None:
            return _contradicts(run, seen, one, (row, text), reason)
        if found.verdict == "unsure":
            unsure.append((row, text))
    confirmed = paraphrases(one.content, [text for _, text in unsure], None if run.dry else run.model)
    for (row, _), same_said in zip(unsure, confirmed, strict=True):
        if same_said:
            return _support(run, seen, one, row, "a language model reads them as the same")
    return False


def _support(run: Pass, seen: Seen, one: Candidate, row: NoteRow, reason: str) -> bool:
    """A memory says it: the conversation becomes its evidence. The note itself is not touched."""
    how = "would be" if run.dry else "done"
    if not run.dry:
        with run.parts.ledger.write() as tx:
            replace(seen, etags={row.note_id: row.etag}).check(run, tx)
            if consolidating.still(tx, [one.id]).get(one.id) != OPEN:
                raise Stale("the candidate was decided meanwhile")
            candidates.support(tx, one, row.note_id, row.namespace, Standing(one, ()).evidence)
    run.report.supported.append(Union(row.note_id, [one.id], reason, how))
    return True


def _contradicts(run: Pass, seen: Seen, one: Candidate, memory: tuple[NoteRow, str], reason: str) -> bool:
    row, text = memory
    if row.read_only:
        run.report.skipped.append(Failure("candidate", one.id, "it contradicts a note that is only read"))
        return True
    why = (
        f"A conversation contradicts this memory ({reason}). It says “{text.strip()}” (changed "
        f"{text_time(row.updated_at)}); the conversation says “{one.content}”. Accepting replaces the one by the "
        "other; rejecting leaves the memory as it is."
    )
    wanted = Proposal(
        "conflict", one.namespace, one.content, _label(one), why,
        target_id=row.note_id, evidence=Standing(one, ()).evidence, user_id=one.user_id, agent_id=one.agent_id,
        candidate_id=one.id,
    )  # fmt: skip
    made = propose_draft(run, replace(seen, etags={row.note_id: row.etag}), wanted)
    if not run.dry:
        with run.parts.ledger.write() as tx:
            sessions.await_review(tx, one.id) if made else sessions.reject(tx, one.id)
    return True


def _united(run: Pass, seen: Seen, namespace: str, fresh: Sequence[Candidate]) -> list[Standing]:
    """Candidates that say the same, each group behind the one whose session lasts longest; groups of the fresh ones."""
    with run.parts.ledger.read() as tx:
        merging = is_on(tx, seen.user_id, "merge")
        peers = consolidating.open_candidates(
            tx, seen.user_id, namespace, limit=run.settings.candidates_compared, at=now_ms()
        )
        behind = consolidating.united(tx, [peer.candidate.id for peer in peers])
    known = {peer.candidate.id: peer for peer in peers}
    known |= {one.id: Lasting(one, 0) for one in fresh if one.id not in known}
    left = {one.id for one in fresh}
    groups: list[Standing] = []
    while left:
        first = known[min(left)].candidate
        group = _alike(run, first, [peer.candidate for peer in known.values()]) if merging else [first]
        left -= {one.id for one in group}
        ordered = sorted(group, key=lambda one: (one.status != PROPOSED, -known[one.id].until, -one.confidence, one.id))
        lead, others = ordered[0], [one for one in ordered[1:] if one.status == OPEN]
        already = [one for member in group for one in behind.get(member.id, ())]
        standing = Standing(lead, (*others, *already))
        if others:
            _put_behind(run, seen, standing, others)
        groups.append(standing)
        if run.dry:
            run.handled |= {one.id for one in group}
        known = {key: value for key, value in known.items() if key not in {one.id for one in group}}
    return groups


def _alike(run: Pass, first: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
    """All that say the same as the first, or as one that does; a model is asked once for what words leave open."""
    group, rest = [first], [one for one in others if one.id != first.id]
    queue, unsure = [first], list[Candidate]()
    while queue:
        one = queue.pop()
        for other in list(rest):
            found = run.compared(one.content, other.content, one.user_id)
            if found.verdict == "same":
                rest.remove(other)
                group.append(other)
                queue.append(other)
            elif found.verdict == "unsure" and one is first:
                unsure.append(other)
    open_ = [one for one in unsure if one in rest]
    model = None if run.dry else run.model
    confirmed = paraphrases(first.content, [one.content for one in open_], model)
    return [*group, *(one for one, same in zip(open_, confirmed, strict=True) if same)]


def _put_behind(run: Pass, seen: Seen, standing: Standing, others: Sequence[Candidate]) -> None:
    ids = [one.id for one in others]
    if not run.dry:
        with run.parts.ledger.write() as tx:
            seen.check(run, tx)
            now = consolidating.still(tx, [standing.lead.id, *ids])
            if any(now.get(one) not in (OPEN, PROPOSED) for one in (standing.lead.id, *ids)):
                raise Stale("a candidate was decided meanwhile")
            consolidating.unite(tx, standing.lead.id, ids)
            _grow_draft(tx, standing)
    run.report.merged.append(Union(standing.lead.id, ids, "candidates that say the same", _how(run)))


def _grow_draft(tx: Transaction, standing: Standing) -> None:
    """The draft of a proposed candidate rests on what the others say, too; its text is the person's."""
    draft = reviews.of_candidates(tx, [standing.lead.id]).get(standing.lead.id)
    if draft is not None and draft.status == reviews.PENDING:
        reviews.save(tx, replace(draft, evidence=list(distinct((*draft.evidence, *standing.evidence)))))


def _weigh(run: Pass, seen: Seen, standing: Standing) -> None:
    lead = standing.lead
    with run.parts.ledger.read() as tx:
        trust = reviews.trust(tx, _label(lead), lead.namespace)
        may_write = is_on(tx, seen.user_id, "commit", "export_to_obsidian")
    best = max(one.confidence for one in standing.all)
    factors = score(
        lead.content, lead.memory_type, importance=max(one.importance for one in standing.all), confidence=best,
        author_trust=trust, sessions=standing.sessions,
    )  # fmt: skip
    run.report.score(lead, factors, _label(lead))
    if lead.memory_type == "preference":
        run.claims.append(Claim(lead.user_id, lead.content, best * trust, standing.evidence))
    if lead.status == OPEN and factors.score >= run.settings.promote_score and may_write:
        _promote(run, seen, standing, factors, best)


def _promote(run: Pass, seen: Seen, standing: Standing, factors: Factors, confidence: float) -> None:
    lead = standing.lead
    memory = candidates.to_commit(lead, confidence)
    why = policy.for_new(
        run.parts.settings.review, parse_namespace(lead.namespace), agent_id=lead.agent_id or LABEL,
        source=memory.source, confidence=confidence, texts=(lead.content,),
    )  # fmt: skip
    if why is None and standing.sessions < run.settings.direct_sessions:
        run.report.skipped.append(Failure("candidate", lead.id, "one conversation alone writes nothing"))
        return
    with run.parts.ledger.read() as tx:
        full = consolidating.open_drafts(tx, _label(lead)) >= run.settings.open_drafts
    if why is not None and (run.budget.drafts <= 0 or full):
        raise NotNow("enough drafts wait")
    if run.dry:
        run.report.proposed.append(Proposed("create", lead.namespace, None, why or "policy writes it at once", None))
        return
    outcome = Outcome()
    label = None if lead.agent_id else LABEL
    wanted = LetThrough(lead, _DECISION, standing.evidence, label, confidence, None if lead.agent_id else GATEWAY)
    with run.parts.importer.lock:
        with run.parts.ledger.read() as tx:
            seen.check(run, tx)
            if consolidating.still(tx, [lead.id]).get(lead.id) != OPEN:
                raise Stale("the candidate was decided meanwhile")
        try:
            candidates.let_through(_acting(lead), run.parts, wanted, outcome)
        except Tombstoned:
            with run.parts.ledger.write() as tx:
                sessions.reject(tx, lead.id)  # a person said no to the same before
            return
        except GatewayError as error:
            run.report.skipped.append(Failure("candidate", lead.id, error.code))
            return
    run.report.promoted += [one.id for one in outcome.promoted]
    for draft in outcome.reviews:
        run.budget.drafts -= 1
        run.report.proposed.append(Proposed("create", lead.namespace, None, f"score {factors.score:.2f}", draft.id))


def _acting(one: Candidate) -> Context:
    role = "agent" if one.agent_id else "user"
    principal = Principal("consolidation", role, one.user_id, one.agent_id)
    return Context(principal, one.user_id, one.agent_id, None, None)


def _label(one: Candidate) -> str:
    return f"agent:{one.agent_id}" if one.agent_id else LABEL


def _how(run: Pass) -> str:
    return "would be" if run.dry else "done"

"""Steps 2 to 5 for candidates: score, dedupe, merge, conflict. What is worth it is proposed, or written by policy.

Candidates of one namespace unite freely, since they are no memories yet: one stands for all, the others behind it. What
a memory says already adds its conversation to that memory's evidence; what contradicts one becomes a draft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now_ms
from gateway.errors import GatewayError, Invalid, NotAllowed, NotFound, SkillDisabled, Tombstoned
from gateway.importer.drafts import GATEWAY
from gateway.ledger import Transaction, consolidating, registry, reviews, sessions
from gateway.ledger.consolidating import MERGED, OPEN, PROPOSED, Lasting
from gateway.ledger.registry import NoteRow
from gateway.ledger.sessions import Candidate
from gateway.services import candidates
from gateway.services.candidates import LetThrough, Outcome
from gateway.services.records import text_time
from gateway.skills.contradiction import contradiction
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.nearness import neighbours
from gateway.skills.paraphrase import paraphrases
from gateway.skills.scoring import Factors, score
from gateway.workers.consolidation import judging
from gateway.workers.consolidation.report import Failure, Proposed, Union
from gateway.workers.consolidation.work import (
    LABEL,
    NO_DRAFTS,
    WRITING,
    Claim,
    NotNow,
    Pass,
    Seen,
    Stale,
    distinct,
    is_on,
    model_for,
    propose_draft,
)

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
    def confidence(self) -> float:
        """That of the surest of them."""
        return max(one.confidence for one in self.all)

    @property
    def sessions(self) -> int:
        """In how many conversations it was said."""
        return len({one.session_id for one in self.all})


def sift(run: Pass, seen: Seen, known: Sequence[Candidate]) -> None:
    """Compare the open candidates of a session with memories and with each other, and let the best through.

    Those of other sessions behind which some of its own stand are weighed with them: they may have had to wait.

    Raises:
        NotNow: some of them wait for the next pass or for a person.
        Stale: something changed meanwhile.
    """
    later: list[str] = []
    leads = _leads(run, known)
    fresh = _rotated([one for one in leads if one.status == OPEN and one.id not in run.handled], seen)
    weighed: set[str] = set()
    for namespace in distinct(one.namespace for one in fresh):
        rest: list[Candidate] = []
        for one in _in_time(run, [one for one in fresh if one.namespace == namespace], later):
            if not _ends(run, one, later, lambda one=one: _met_memory(run, seen, one)):
                rest.append(one)
        for standing in _united(run, seen, namespace, rest, later):
            weighed.add(standing.lead.id)
            _ends(run, standing.lead, later, lambda standing=standing: _weigh(run, seen, standing))
    for lead in leads:
        if lead.status == PROPOSED and lead.id not in weighed:
            _claim(run, seen, _standing(run, lead))
    if later:
        raise NotNow(later[0])


def _rotated(fresh: list[Candidate], seen: Seen) -> list[Candidate]:
    """Another one first with each try, so that a session that takes longer than a pass is gone through all the same."""
    start = seen.work.tries % len(fresh) if seen.work is not None and fresh else 0
    return [*fresh[start:], *fresh[:start]]


def _in_time(run: Pass, values: Iterable[Candidate], later: list[str]) -> Iterator[Candidate]:
    """Values one by one, the first at least, until the pass is to end; then the work comes again for the rest."""
    for number, one in enumerate(values):
        if not run.budget.more(first=number == 0):
            later.append("the time of the pass is spent")
            return
        yield one


def _leads(run: Pass, known: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a session, and for those that stand behind another, that one; each once."""
    behind = distinct(one.memory_id for one in known if one.status == MERGED and one.memory_id is not None)
    with run.parts.ledger.read() as tx:
        others = consolidating.living(tx, behind, at=now_ms())
    return list({one.id: one for one in (*known, *others) if one.status in (OPEN, PROPOSED)}.values())


def _ends(run: Pass, one: Candidate, later: list[str], step: Callable[[], bool]) -> bool:
    """Take a step with one candidate; what keeps it from being taken keeps no other candidate out.

    Returns:
        Whether the candidate's road ends there, for this pass or for good.
    """
    try:
        return step()
    except NotNow as error:
        later.append(str(error))
    except GatewayError as error:
        run.report.failed.append(Failure("candidate", one.id, error.code))
        later.append(f"a candidate failed: {error.code}")
    return True


def _standing(run: Pass, lead: Candidate) -> Standing:
    """A candidate with all that stand behind it."""
    with run.parts.ledger.read() as tx:
        return Standing(lead, tuple(consolidating.united(tx, [lead.id]).get(lead.id, ())))


def _met_memory(run: Pass, seen: Seen, one: Candidate) -> bool:
    """Whether a memory that holds now says the same already, or the contrary: either way the candidate's own road ends
    there."""
    with run.parts.ledger.read() as tx:
        same = candidates.said_already(tx, one)
    if same is not None:
        return _support(run, seen, one, same, "the same text")
    vector = run.vectors.of(run.parts.feed, [one.content]).get(one.content)
    ids = neighbours(run.parts.feed.index, one.content, one.namespace, vector, run.settings.neighbours)
    with run.parts.ledger.read() as tx:
        near = [row for row in registry.notes_by_id(tx, ids).values() if row.namespace == one.namespace]
        rows = judging.speaking(run, tx, near)
    unsure: list[tuple[NoteRow, str]] = []
    for row in rows:
        text = run.text_of(row)
        if text is None:
            continue
        found = run.compared(one.content, text, one.user_id)
        if found.verdict == "same":
            return _support(run, seen, one, row, found.reason)
        reason = contradiction(one.content, text, own_name=one.user_id, found=found)
        if reason is not None:
            return _contradicts(run, seen, one, (row, text), reason)
        if found.verdict == "unsure":
            unsure.append((row, text))
    confirmed = paraphrases(one.content, [text for _, text in unsure], model_for(run, seen))
    for (row, _), same_said in zip(unsure, confirmed, strict=True):
        if same_said:
            return _support(run, seen, one, row, "a language model reads them as the same")
    return False


def _support(run: Pass, seen: Seen, one: Candidate, row: NoteRow, reason: str) -> bool:
    """A memory says it: the conversation becomes its evidence. The note itself is not touched."""
    how = "would be" if run.dry else "done"
    if not run.dry:
        evidence = _standing(run, one).evidence
        with run.parts.ledger.write() as tx:
            replace(seen, etags={row.note_id: row.etag}).check(run, tx)
            if consolidating.still(tx, [one.id]).get(one.id) != OPEN:
                raise Stale("the candidate was decided meanwhile")
            candidates.support(tx, one, row.note_id, row.namespace, evidence)
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
        target_id=row.note_id, evidence=_standing(run, one).evidence, user_id=one.user_id, agent_id=one.agent_id,
        candidate_id=one.id,
    )  # fmt: skip
    made = propose_draft(run, replace(seen, etags={row.note_id: row.etag}), wanted)
    if not run.dry:
        with run.parts.ledger.write() as tx:  # no draft was made: a person said no to it before
            sessions.await_review(tx, one.id) if made else sessions.reject(tx, one.id)
    return True


def _united(run: Pass, seen: Seen, namespace: str, fresh: Sequence[Candidate], later: list[str]) -> Iterator[Standing]:
    """Candidates that say the same, each group behind the one whose session lasts longest; groups of the fresh ones."""
    with run.parts.ledger.read() as tx:
        merging = is_on(tx, seen.user_id, "merge")
        peers = consolidating.open_candidates(
            tx, seen.user_id, namespace, limit=run.settings.candidates_compared, at=now_ms()
        )
        behind = consolidating.united(tx, [peer.candidate.id for peer in peers] + [one.id for one in fresh])
    known = {peer.candidate.id: peer for peer in peers}
    known |= {one.id: Lasting(one, 0) for one in fresh if one.id not in known}
    for first in _in_time(run, (one for one in fresh if one.id in known), later):
        group = _alike(run, seen, first, [peer.candidate for peer in known.values()]) if merging else [first]
        ordered = sorted(group, key=lambda one: (one.status != PROPOSED, -known[one.id].until, -one.confidence, one.id))
        lead, others = ordered[0], [one for one in ordered[1:] if one.status == OPEN]
        already = [one for member in group for one in behind.get(member.id, ())]
        standing = Standing(lead, (*others, *already))
        if others:
            _put_behind(run, seen, standing, others)
        if run.dry:
            run.handled |= {one.id for one in group}
        known = {key: value for key, value in known.items() if key not in {one.id for one in group}}
        yield standing


def _alike(run: Pass, seen: Seen, first: Candidate, others: Sequence[Candidate]) -> list[Candidate]:
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
    confirmed = paraphrases(first.content, [one.content for one in open_], model_for(run, seen))
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


def _weigh(run: Pass, seen: Seen, standing: Standing) -> bool:
    lead = standing.lead
    with run.parts.ledger.read() as tx:
        trust = reviews.trust(tx, _label(lead), lead.namespace)
        may_write = is_on(tx, seen.user_id, *WRITING)
    factors = score(
        lead.content, lead.memory_type, importance=max(one.importance for one in standing.all),
        confidence=standing.confidence, author_trust=trust, sessions=standing.sessions,
    )  # fmt: skip
    run.report.score(lead, factors, _label(lead))
    _claim(run, seen, standing)
    if lead.status == OPEN and factors.score >= run.settings.promote_score:
        if not may_write:
            raise NotNow(NO_DRAFTS)
        _promote(run, seen, standing, factors)
    return True


def _claim(run: Pass, seen: Seen, standing: Standing) -> None:
    """A preference may be stable enough for the profile; what waits as a draft still counts."""
    lead = standing.lead
    if lead.memory_type == "preference":
        with run.parts.ledger.read() as tx:
            sure = standing.confidence * reviews.trust(tx, _label(lead), lead.namespace)
        run.claims.append(Claim(lead.user_id, lead.content, sure, standing.evidence, seen.work))


def _promote(run: Pass, seen: Seen, standing: Standing, factors: Factors) -> None:
    lead, wanted = standing.lead, _wanted(standing)
    why = candidates.why_reviewed(_acting(lead), run.parts, wanted)
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
    outcome = _let_through(run, seen, wanted)
    run.report.promoted += [one.id for one in outcome.promoted]
    for draft in outcome.reviews:
        run.budget.drafts -= 1
        run.report.proposed.append(Proposed("create", lead.namespace, None, f"score {factors.score:.2f}", draft.id))


def _let_through(run: Pass, seen: Seen, wanted: LetThrough) -> Outcome:
    """What came of a candidate that is worth it; nothing where a person said no to it before, or it can never be.

    Raises:
        NotNow: it cannot be right now: it is being cleared, or a skill, the vault or an editor is in the way.
    """
    lead, outcome = wanted.one, Outcome()
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
        except SkillDisabled as error:
            raise NotNow(error.code) from None
        except (Invalid, NotAllowed, NotFound) as error:
            run.report.skipped.append(Failure("candidate", lead.id, error.code))
        except GatewayError as error:
            raise NotNow(error.code) from None
    return outcome


def _wanted(standing: Standing) -> LetThrough:
    label, actor = (None, None) if standing.lead.agent_id else (LABEL, GATEWAY)
    return LetThrough(standing.lead, _DECISION, standing.evidence, label, standing.confidence, actor)


def _acting(one: Candidate) -> Context:
    role = "agent" if one.agent_id else "user"
    principal = Principal("consolidation", role, one.user_id, one.agent_id)
    return Context(principal, one.user_id, one.agent_id, None, None)


def _label(one: Candidate) -> str:
    return f"agent:{one.agent_id}" if one.agent_id else LABEL


def _how(run: Pass) -> str:
    return "would be" if run.dry else "done"

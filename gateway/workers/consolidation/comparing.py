"""Steps 3 to 5 for memories: a changed one is compared with its neighbours; repeats merge, contradictions are shown.

An agent's own memories merge at once. Whatever a person wrote, accepted or edited is only ever proposed for merging.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.clock import now_ms
from gateway.errors import ChangedElsewhere, GatewayError
from gateway.importer.drafts import GATEWAY
from gateway.ledger import registry, reviews
from gateway.ledger.dirty import Dirty
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.services import policy
from gateway.services.records import text_time
from gateway.skills.contradiction import contradiction
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.merge import EVIDENCE, ToMerge, evidence_of, in_order, merge
from gateway.skills.paraphrase import paraphrases
from gateway.skills.prune import holds
from gateway.workers.consolidation import fading, judging
from gateway.workers.consolidation.report import Union
from gateway.workers.consolidation.work import (
    LABEL,
    ROOMS,
    Claim,
    NotNow,
    Pass,
    Seen,
    Stale,
    distinct,
    entry,
    fingerprint,
    is_agents_own,
    is_on,
    model_for,
    propose_draft,
    user_of,
)

_PATIENCE = 3  # tries that a memory waits for its vector


@dataclass(frozen=True, slots=True)
class _Subject:
    row: NoteRow
    text: str
    own_name: str
    merging: bool


def look_at(run: Pass, work: Dirty) -> None:
    """Judge a memory, compare it with its neighbours that stay, and see whether it belongs into a profile.

    Raises:
        NotNow: the index has not got it yet, or a person must decide something first.
        Stale: something changed meanwhile.
    """
    with run.parts.ledger.read() as tx:
        row = registry.note(tx, work.key)
        if row is None or row.status != "active" or row.read_only or parse_namespace(row.namespace).room not in ROOMS:
            return
        user_id = user_of(run, tx, row.namespace)
        seen = Seen(work, fingerprint(run, tx, user_id), user_id, {row.note_id: row.etag})
        merging = is_on(tx, user_id, "merge")
    if fading.judge(run, seen, row):
        return
    _wait_for_index(run, row, work.tries)
    text = run.text_of(row)
    if text is None:
        raise NotNow("its file has moved on")
    subject = _Subject(row, text, parse_namespace(row.namespace).user_id or "", merging)
    if holds(row, (), now_ms()):
        _claim(run, seen, subject)
    _compare(run, seen, subject)


def _wait_for_index(run: Pass, row: NoteRow, tries: int) -> None:
    if row.index_error is not None or tries >= _PATIENCE:
        return
    if row.fts_etag != row.etag or (run.parts.feed.embedder is not None and row.vector_etag != row.etag):
        raise NotNow("the index has not got it yet")


def _compare(run: Pass, seen: Seen, subject: _Subject) -> None:
    same: list[NoteRow] = []
    unsure: list[tuple[NoteRow, str]] = []
    later: NotNow | GatewayError | None = None  # one neighbour keeps no other out
    for row, text, mergeable in _near(run, seen, subject):
        found = run.compared(subject.text, text, subject.own_name)
        reason = contradiction(subject.text, text, own_name=subject.own_name, found=found)
        if found.verdict == "same":
            same += [row] if mergeable else []
        elif reason is not None:
            try:
                _conflict(run, seen, subject, (row, text), reason)
            except (NotNow, GatewayError) as error:
                later = error
        elif found.verdict == "unsure" and mergeable:
            unsure.append((row, text))
    if subject.merging:
        confirmed = paraphrases(subject.text, [text for _, text in unsure], model_for(run, seen))
        same += [row for (row, _), said in zip(unsure, confirmed, strict=True) if said]
        if same:
            _merge(run, seen, [subject.row, *same])
    if later is not None:
        raise later


def _near(run: Pass, seen: Seen, subject: _Subject) -> list[tuple[NoteRow, str, bool]]:
    """The memory's neighbours of the same namespace, visibility and time, and whether they could be merged with it."""
    around = [(row, text) for row, text in judging.near(run, subject.row, subject.text) if not row.read_only]
    remaining = judging.remaining(run, seen.user_id, [row for row, _ in around])
    return [(row, text, remaining[row.note_id]) for row, text in around if row.note_id in remaining]


def _merge(run: Pass, seen: Seen, rows: list[NoteRow]) -> None:
    with run.parts.ledger.read() as tx:
        persons: Mapping[str, bool] = {row.note_id: policy.is_persons(tx, row) for row in rows}
        ordered = in_order(rows, persons)
        own = all(is_agents_own(tx, row) for row in ordered)
        evidence = evidence_of(tx, [row.note_id for row in ordered])
    leader, others = ordered[0], ordered[1:]
    ids = [row.note_id for row in others]
    if run.dry and run.united.issuperset([leader.note_id, *ids]):
        return
    run.united.update([leader.note_id, *ids])
    if not own:
        _propose_merge(run, seen, ordered, evidence)
        return
    if not run.dry:
        with run.parts.importer.lock:
            with run.parts.ledger.read() as tx:
                seen.check(run, tx)
                worn = judging.weigh(run, tx, ordered).values()
            if any(one.reason is not None and one.reason.hides for one in worn):
                raise Stale("a memory was judged meanwhile")
            wanted = ToMerge({row.note_id: row.etag for row in ordered})
            named = entry("merge", leader, leader.namespace, "consolidation: they say the same")
            try:
                ids = merge(run.parts, wanted, GATEWAY, named).merged_ids
            except ChangedElsewhere:
                raise Stale("a memory changed meanwhile") from None
    how = "would be" if run.dry else "done"
    run.report.merged.append(Union(leader.note_id, ids, "memories that say the same", how))


def _propose_merge(run: Pass, seen: Seen, ordered: list[NoteRow], evidence: list[str]) -> None:
    leader, others = ordered[0], ordered[1:]
    ids = tuple(row.note_id for row in others)
    text = run.text_of(leader)
    if text is None:
        raise Stale("a memory changed meanwhile")
    named = ", ".join(f"“{row.title}”" for row in others)
    why = (
        f"These memories say the same. Accepting keeps the one below and retires {named}; what they rest on becomes "
        "its evidence. Rejecting keeps all of them."
    )
    wanted = Proposal(
        "merge", leader.namespace, text.strip("\n"), LABEL, why, target_id=leader.note_id,
        merges=ids, evidence=distinct(evidence), user_id=leader.user_id, agent_id=leader.agent_id,
    )  # fmt: skip
    both = Seen(seen.work, seen.fingerprint, seen.user_id, {row.note_id: row.etag for row in ordered})
    propose_draft(run, both, wanted)


def _conflict(run: Pass, seen: Seen, subject: _Subject, other: tuple[NoteRow, str], reason: str) -> None:
    """The older of the two is the target; the newer text is what is proposed to hold."""
    sides = sorted(((subject.row, subject.text), other), key=lambda side: (side[0].created_at, side[0].note_id))
    (older, old_text), (newer, new_text) = sides
    why = (
        f"Two memories contradict each other ({reason}): “{old_text.strip()}” (changed {text_time(older.updated_at)}) "
        f"and “{new_text.strip()}” (changed {text_time(newer.updated_at)}). Accepting keeps the text below in the "
        "first and retires the second; rejecting leaves both."
    )
    wanted = Proposal(
        "conflict", older.namespace, new_text.strip("\n"), LABEL, why, target_id=older.note_id,
        merges=(newer.note_id,), user_id=older.user_id, agent_id=older.agent_id,
    )  # fmt: skip
    etags = {older.note_id: older.etag, newer.note_id: newer.etag}
    propose_draft(run, Seen(seen.work, seen.fingerprint, seen.user_id, etags), wanted)


def _claim(run: Pass, seen: Seen, subject: _Subject) -> None:
    """A preference of a user's long-term memory may be stable enough for the profile."""
    row = subject.row
    if row.memory_type != "preference" or parse_namespace(row.namespace).room != "long_term" or row.user_id is None:
        return
    with run.parts.ledger.read() as tx:
        edges = [edge for edge in reviews.edges_of(tx, row.note_id) if edge.child == row.note_id]
    evidence = (*(edge.parent for edge in edges if edge.relation == EVIDENCE), row.note_id)
    run.claims.append(Claim(row.user_id, subject.text.strip(), row.confidence, evidence, seen.work))

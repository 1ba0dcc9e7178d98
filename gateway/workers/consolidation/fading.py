"""Step 6: decay and archive. What nobody asks for fades; what is expired, wrong, repeated or faded is archived.

An agent's own memories are weighed and archived at once, a person's only by a draft; nothing is ever written into a
person's note. A duplicate leaves only where another memory surely stays.
"""

from __future__ import annotations

from gateway import log
from gateway.errors import GatewayError
from gateway.importer.drafts import GATEWAY
from gateway.importer.write import Order
from gateway.ledger import Transaction, consolidating, meta, registry
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.notes.patch import set_properties
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.merge import EVIDENCE, MERGED, evidence_of
from gateway.skills.prune import Reason, ToPrune, prune
from gateway.workers.consolidation import judging
from gateway.workers.consolidation.report import Archived, Faded, Failure
from gateway.workers.consolidation.work import (
    LABEL,
    ROOMS,
    NotNow,
    Pass,
    Seen,
    Stale,
    entry,
    fingerprint,
    is_agents_own,
    is_on,
    propose_draft,
    user_of,
)

CURSOR = "consolidation.cursor"
# An agent's note is weighed anew once it lost this much: a month of silence at the usual importance.
STEP = 0.1
ALONE = "it was judged a duplicate, but no other memory that stays says the same"
_LOG = log.get("consolidation")


def sweep(run: Pass) -> None:
    """Judge the next memories in turn, one at least; the pass after goes on behind them, and begins anew at the end."""
    with run.parts.ledger.read() as tx:
        last = meta.get(tx, CURSOR) or ""
        rows = consolidating.active_after(tx, last, run.settings.items_per_pass)
    for number, row in enumerate(rows):
        if not run.budget.more(first=number == 0):
            break
        last = row.note_id
        if parse_namespace(row.namespace).room in ROOMS and row.note_id not in run.handled:
            _in_turn(run, row)
    else:
        last = last if len(rows) == run.settings.items_per_pass else ""
    if not run.dry:
        with run.parts.ledger.write() as tx:
            meta.put(tx, CURSOR, last)


def _in_turn(run: Pass, row: NoteRow) -> None:
    with run.parts.ledger.read() as tx:
        user_id = user_of(run, tx, row.namespace)
        seen = Seen(None, fingerprint(run, tx, user_id), user_id, {row.note_id: row.etag})
    try:
        judge(run, seen, row)
    except (NotNow, Stale):
        return  # its turn comes again
    except GatewayError as error:
        run.report.failed.append(Failure("note", row.note_id, error.code))
    except Exception as error:
        _LOG.exception("judging a memory failed", note=row.note_id)
        run.report.failed.append(Failure("note", row.note_id, type(error).__name__))


def judge(run: Pass, seen: Seen, row: NoteRow) -> bool:
    """Archive or weigh one memory. Returns whether it takes no part in anything any more: it is archived or proposed
    for it, or it stays only because its user switched archiving off.

    Raises:
        NotNow: a person must decide something first.
        Stale: it changed meanwhile.
    """
    run.handled.add(row.note_id)
    with run.parts.ledger.read() as tx:
        pruning, own = is_on(tx, seen.user_id, "prune"), is_agents_own(tx, row)
        worn = judging.weigh(run, tx, [row])[row.note_id]
    reason, twin = worn.reason, None
    if not pruning:
        return reason is not None and reason.hides
    if reason is not None and reason.kind == "duplicate":
        twin = judging.twin(run, row)
        if twin is None:
            run.report.skipped.append(Failure("note", row.note_id, ALONE))
            reason = None
    if reason is not None:
        _archive(run, seen, row, reason, twin, own=own)
        return True
    if row.importance - worn.left >= STEP:
        _weigh(run, seen, row, worn.left, own=own)
    return False


def _archive(run: Pass, seen: Seen, row: NoteRow, reason: Reason, twin: NoteRow | None, *, own: bool) -> None:
    if not own:
        _propose(run, seen, row, f"{reason.words} “{twin.title}” says the same." if twin else reason.words)
        return
    why = f"{reason.words} {twin.note_id} says the same." if twin else reason.words
    if not run.dry:
        with run.parts.importer.lock:
            with run.parts.ledger.read() as tx:
                seen.check(run, tx)
                edges = _inherited(run, tx, row, twin) if twin else ()
            named = entry("archive", row, row.namespace, f"consolidation: {why}")
            wanted = ToPrune({row.note_id: row.etag}, {row.note_id: edges})
            if not prune(run.parts, wanted, GATEWAY, named).archived_ids:
                raise Stale("it changed meanwhile")
    run.report.archived.append(Archived(row.note_id, row.namespace, why))


def _propose(run: Pass, seen: Seen, row: NoteRow, why: str) -> None:
    text = run.text_of(row)
    if text is None:
        raise Stale("its file has moved on")
    why += " Accepting moves it to the archive, from where it can be restored; rejecting keeps it."
    propose_draft(
        run, seen,
        Proposal("archive", row.namespace, text.strip("\n"), LABEL, why, target_id=row.note_id,
                 user_id=row.user_id, agent_id=row.agent_id),
    )  # fmt: skip


def _inherited(run: Pass, tx: Transaction, row: NoteRow, twin: NoteRow) -> tuple[tuple[str, str, str], ...]:
    """The lineage by which the other one rests on what a duplicate rested on.

    Raises:
        Stale: the other one does not surely stay any more.
    """
    now = registry.note(tx, twin.note_id)
    if now is None or now.etag != twin.etag or not judging.lasting(run, tx, [now]):
        raise Stale("another memory changed meanwhile")
    evidence = ((twin.note_id, one, EVIDENCE) for one in evidence_of(tx, [row.note_id]))
    return ((twin.note_id, row.note_id, MERGED), *evidence)


def _weigh(run: Pass, seen: Seen, row: NoteRow, left: float, *, own: bool) -> None:
    """Write the lesser importance into an agent's own note: that one property, and it counts as old as before."""
    if own and not run.dry:
        with run.parts.importer.lock:
            with run.parts.ledger.read() as tx:
                seen.check(run, tx)
            read = run.parts.files.read(row.path)
            if read is None or read.etag != row.etag:
                raise Stale("its file has moved on")
            data = set_properties(read.data, {"importance": round(left, 2)})
            named = entry("fade", row, row.namespace, "consolidation: nobody asked for it for long")
            run.parts.writes.write(
                Order("update", row.note_id, row.path, row.etag, data, GATEWAY, named, False, weighing=True)
            )
    run.report.faded.append(Faded(row.note_id, row.importance, round(left, 4), own and not run.dry))

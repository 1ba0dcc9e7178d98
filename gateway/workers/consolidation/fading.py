"""Step 6: decay and archive. What nobody asks for fades; what is expired, wrong, repeated or faded is archived.

An agent's own memories are weighed and archived at once, a person's only by a draft; nothing is ever written into a
person's note.
"""

from __future__ import annotations

from gateway.clock import now_ms
from gateway.errors import GatewayError
from gateway.importer.drafts import GATEWAY
from gateway.importer.write import Order
from gateway.ledger import consolidating, feedback, journal, meta, usage
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.notes.patch import set_properties
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.prune import ToPrune, Worth, prune, reason_to_archive
from gateway.skills.scoring import faded
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


def sweep(run: Pass) -> None:
    """Judge the next memories in turn; the pass after goes on behind them, and begins anew at the end."""
    with run.parts.ledger.read() as tx:
        last = meta.get(tx, CURSOR) or ""
        rows = consolidating.active_after(tx, last, run.settings.items_per_pass)
    for row in rows:
        if not run.budget.more():
            break
        last = row.note_id
        if parse_namespace(row.namespace).room not in ROOMS or row.note_id in run.handled:
            continue
        with run.parts.ledger.read() as tx:
            user_id = user_of(run, tx, row.namespace)
            seen = Seen(None, fingerprint(run, tx, user_id), user_id, {row.note_id: row.etag})
        try:
            judge(run, seen, row)
        except (NotNow, Stale):
            continue  # its turn comes again
        except GatewayError as error:
            run.report.failed.append(Failure("note", row.note_id, error.code))
    else:
        last = last if len(rows) == run.settings.items_per_pass else ""
    if not run.dry:
        with run.parts.ledger.write() as tx:
            meta.put(tx, CURSOR, last)


def judge(run: Pass, seen: Seen, row: NoteRow) -> bool:
    """Archive or weigh one memory. Returns whether it is archived, or proposed for it.

    Raises:
        NotNow: a person must decide something first.
        Stale: it changed meanwhile.
    """
    run.handled.add(row.note_id)
    with run.parts.ledger.read() as tx:
        if not is_on(tx, seen.user_id, "prune"):
            return False
        said = feedback.of_texts(tx, [(row.note_id, row.content_hash)]).get(row.note_id, [])
        use = usage.of(tx, [row.note_id]).get(row.note_id)
        newest = next(iter(journal.history(tx, row.note_id)), None)
        own = is_agents_own(tx, row)
    since = max(row.updated_at, use.last_hit_at if use else 0, newest.at if newest else 0)
    left = faded(row.importance, idle_ms=now_ms() - since, half_life_days=run.settings.half_life_days, judgements=said)
    worth = Worth(run.settings.archive_importance, run.settings.archive_confidence)
    reason = reason_to_archive(row, said, left=left, worth=worth, at=now_ms())
    if reason is not None:
        _archive(run, seen, row, reason, own=own)
        return True
    if row.importance - left >= STEP:
        _weigh(run, seen, row, left, own=own)
    return False


def _archive(run: Pass, seen: Seen, row: NoteRow, reason: str, *, own: bool) -> None:
    if not own:
        text = run.text_of(row)
        if text is None:
            raise Stale("its file has moved on")
        why = f"{reason} Accepting moves it to the archive, from where it can be restored; rejecting keeps it."
        propose_draft(
            run, seen,
            Proposal("archive", row.namespace, text.strip("\n"), LABEL, why, target_id=row.note_id,
                     user_id=row.user_id, agent_id=row.agent_id),
        )  # fmt: skip
        return
    if not run.dry:
        with run.parts.importer.lock:
            with run.parts.ledger.read() as tx:
                seen.check(run, tx)
            named = entry("archive", row, row.namespace, f"consolidation: {reason}")
            if not prune(run.parts, ToPrune({row.note_id: row.etag}), GATEWAY, named).archived_ids:
                raise Stale("it changed meanwhile")
    run.report.archived.append(Archived(row.note_id, row.namespace, reason))


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

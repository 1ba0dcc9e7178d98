"""Step 1, extract: candidates from the new episodes of a session that was committed or has long been silent."""

from __future__ import annotations

from gateway.clock import now_ms
from gateway.ledger import Transaction, fences, sessions
from gateway.ledger.dirty import Dirty
from gateway.ledger.sessions import Candidate, Session
from gateway.services import candidates
from gateway.services.candidates import SUBAGENT, Taking
from gateway.workers.consolidation.report import Failure
from gateway.workers.consolidation.sifting import sift
from gateway.workers.consolidation.work import GoesOn, NotNow, Pass, Seen, Stale, fingerprint, is_on

# Passes that a model may be too slow for before the rules read what it was given.
_PATIENCE = 3


def look_at(run: Pass, work: Dirty) -> None:
    """Read what is new in a session, and sift what it says.

    Raises:
        GoesOn: the session still goes on.
        NotNow: it is being cleared, or the budget is spent; what was read stays read.
        Stale: something changed meanwhile.
    """
    user_id, _, session_id = work.key.partition("/")
    with run.parts.ledger.read() as tx:
        session = sessions.session(tx, user_id, session_id, at=now_ms())
        if session is None or session.kind == SUBAGENT:
            return
        if fences.active(tx).covers_session(user_id, session_id, session.agent_id):
            raise NotNow("it is being cleared")
        if (until := _over_at(run, tx, session)) > now_ms():
            raise GoesOn(until)
        if not is_on(tx, user_id, "extract", "classify"):
            run.report.skipped.append(Failure(work.kind, work.key, "its user switched extraction off"))
            return
        seen = Seen(work, fingerprint(run, tx, user_id), user_id, {})
    found = (
        candidates.preview(run.parts, session, run.budget.more)
        if run.dry
        else _taken(run, session, seen, tries=work.tries)
    )
    if run.dry:
        _count(run, len(found), "rules")
    with run.parts.ledger.read() as tx:
        known = sessions.candidates_of(tx, user_id, session_id)
    ids = {one.id for one in known}
    sift(run, seen, [*known, *(one for one in found if run.dry and one.id not in ids)])


def _taken(run: Pass, session: Session, seen: Seen, *, tries: int) -> list[Candidate]:
    unchanged = [True]

    def still_valid(tx: Transaction) -> bool:
        try:
            seen.check(run, tx)
        except Stale:
            unchanged[0] = False
        return unchanged[0]

    def keep_going() -> bool:
        return run.budget.more() and not (run.model is not None and run.model.spent)

    def cut_off() -> bool:
        return not run.budget.more() and tries < _PATIENCE

    taking = Taking(keep_going=keep_going, cut_off=cut_off, still_valid=still_valid)
    taken = candidates.take(run.parts, session, run.model, taking)
    by = "+".join(sorted(taken.by)) or "rules"
    _count(run, len(taken.candidates), by)
    if not unchanged[0]:
        raise Stale("it changed while it was read")
    if not taken.done:
        raise NotNow("the budget of the pass is spent; the rest is read later")
    return taken.candidates


def _count(run: Pass, found: int, by: str) -> None:
    run.report.extracted += found
    if found:
        run.report.extracted_by[by] = run.report.extracted_by.get(by, 0) + found


def _over_at(run: Pass, tx: Transaction, session: Session) -> int:
    """From when on a session counts as over (ms)."""
    if session.status == "committed":
        return 0
    last = sessions.episodes_of(tx, session.user_id, session.id, limit=1, newest=True)
    return (last[0].created_at if last else session.updated_at) + int(run.settings.idle_seconds * 1000)

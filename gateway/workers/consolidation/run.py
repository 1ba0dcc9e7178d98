"""One pass over what changed, and whoever may ask for one: the loop, an administrator, the command line."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gateway import log
from gateway.access import guard
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import Busy, GatewayError
from gateway.importer.parts import Parts
from gateway.ledger import consolidating, dirty
from gateway.ledger.dirty import Dirty
from gateway.llm import LanguageModel
from gateway.skills.nearness import StatementVectors
from gateway.workers.consolidation import comparing, evolving, extracting, fading
from gateway.workers.consolidation.budget import Budget, MeteredModel
from gateway.workers.consolidation.report import Failure, PassReport
from gateway.workers.consolidation.work import GoesOn, NotNow, Pass, Stale, note_failure

_LOG = log.get("consolidation")


class Consolidation:
    """Runs passes, one at a time. `stop` lets the present one end at its next checkpoint."""

    def __init__(self, parts: Parts, model: LanguageModel | None) -> None:
        self._parts = parts
        self._model = model
        self._vectors = StatementVectors()
        self._running = threading.Lock()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Begin no further step."""
        self._stopping.set()

    def consolidate(self, principal: Principal, *, dry_run: bool = False) -> PassReport:
        """One pass, for an administrator.

        Raises:
            NotAllowed: the principal is no administrator.
            Busy: a pass is running.
        """
        guard.operate(self._parts.ledger, principal)
        return self.run(dry_run=dry_run)

    def run(self, *, dry_run: bool = False, keep_going: Callable[[], bool] = lambda: True) -> PassReport:
        """One pass; a dry run writes nothing and asks no model.

        Raises:
            Busy: a pass is running.
        """
        if not self._running.acquire(blocking=False):
            raise Busy("A pass of consolidation is running already.", advice="Try again when it has ended.")
        try:
            return self._pass(dry_run, lambda: keep_going() and not self._stopping.is_set())
        finally:
            self._running.release()

    def forget(self) -> None:
        """Let go of everything that is kept in memory about texts."""
        self._vectors.forget()

    def _pass(self, dry_run: bool, keep_going: Callable[[], bool]) -> PassReport:
        parts, settings = self._parts, self._parts.settings.consolidation
        budget = Budget(settings, keep_going)
        metered = (
            MeteredModel(self._model, budget) if self._model is not None and settings.model_calls_per_pass else None
        )
        report = PassReport(dry_run)
        name = parts.settings.llm.model or ("model" if self._model is not None else "")
        run = Pass(parts, settings, budget, metered, self._vectors, report, name)
        if not dry_run:
            with parts.ledger.write() as tx:
                consolidating.free_orphans(tx)
            parts.feed.feed()
        self._work(run)
        fading.sweep(run)
        with parts.ledger.read() as tx:
            report.waiting = dirty.count(tx)
        report.model_calls, report.seconds = budget.calls_made, round(budget.seconds, 3)
        parts.wake()
        if not dry_run and (report.items or report.archived or report.faded):
            _LOG.info("a pass ended", items=report.items, extracted=report.extracted, merged=len(report.merged),
                      proposed=len(report.proposed), archived=len(report.archived), failed=len(report.failed),
                      waiting=report.waiting)  # fmt: skip
        return report

    def _work(self, run: Pass) -> None:
        longest = int(run.settings.idle_seconds * 1000)
        with run.parts.ledger.read() as tx:
            seeds = dirty.turn(tx, run.settings.items_per_pass, now_ms(), longest)
        done: list[Dirty] = []
        for number, work in enumerate(seeds):
            if not run.budget.more():
                break
            run.report.items += 1
            if self._one(run, work):
                done.append(work)
            if number == 0 and work.tries and not run.dry:  # it waited longest: before new drafts use up the room
                self._profiles(run, done)
        self._profiles(run, done)

    def _profiles(self, run: Pass, done: list[Dirty]) -> None:
        """Propose what the claims of finished work have made stable; then it settles, unless that has to wait."""
        waiting = evolving.evolve(run)
        if not run.dry:
            with run.parts.ledger.write() as tx:
                for work in done:
                    dirty.failed(tx, work) if work in waiting else dirty.settle(tx, work)
        done.clear()

    def _one(self, run: Pass, work: Dirty) -> bool:
        """Look at one piece of work. Returns whether it is finished; what is not is put off."""
        try:
            (extracting if work.kind == dirty.SESSION else comparing).look_at(run, work)
        except GoesOn as error:
            run.report.skipped.append(Failure(work.kind, work.key, str(error)))
            self._later(run, work, error.until)
        except (Stale, NotNow) as error:  # not settled; what has a newer generation by now stays in front
            run.report.skipped.append(Failure(work.kind, work.key, str(error)))
            self._later(run, work)
        except GatewayError as error:
            _LOG.warning("consolidation of one item failed", kind=work.kind, key=work.key, reason=error.code)
            note_failure(run, work, error)
            self._later(run, work)
        except Exception as error:
            _LOG.exception("consolidation of one item failed", kind=work.kind, key=work.key)
            note_failure(run, work, error)
            self._later(run, work)
        else:
            return True
        return False

    def _later(self, run: Pass, work: Dirty, until: int | None = None) -> None:
        if run.dry:
            return
        with run.parts.ledger.write() as tx:
            dirty.failed(tx, work) if until is None else dirty.put_off(tx, work, until)

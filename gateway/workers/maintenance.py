"""Tidying in the background: each step within a budget, visible as a job where it did something, alone in its failure.

Seed 002, "Maintenance": bounded batches, a deadline, and a stop that waits for the present batch only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway import log
from gateway.clock import now_ms
from gateway.config import MaintenanceSettings
from gateway.errors import GatewayError
from gateway.importer.parts import Parts
from gateway.ledger import Ledger, jobs

KIND = "maintain"
_LOG = log.get("maintenance")
_TELL_SECONDS = 1.0
_INTERRUPTED = "The gateway stopped before this was done; it is done again where it is needed."


class Turn:
    """One run of one step: what it may still use, and the job that shows what it does."""

    def __init__(
        self, ledger: Ledger, phase: str, settings: MaintenanceSettings, keep_going: Callable[[], bool]
    ) -> None:
        self._ledger = ledger
        self._phase = phase
        self._keep_going = keep_going
        self._until = time.monotonic() + settings.step_seconds
        self._told = 0.0
        self._asked = False
        self._job_id: str | None = None
        self.batch = settings.batch_rows
        self.done = 0
        # Set by a step that ended with its budget and not with its work.
        self.more = False

    @property
    def left(self) -> bool:
        """Whether there is time for another batch; for one there always is, so that no step starves."""
        first, self._asked = not self._asked, True
        return self._keep_going() and (first or time.monotonic() < self._until)

    def begin(self, total: int | None = None) -> None:
        """There is something to do: from now on it shows as a job."""
        if self._job_id is None:
            job = jobs.new(KIND, requested_by="gateway", phase=self._phase)
            self._job_id = job.id
            with self._ledger.write() as tx:
                jobs.add(tx, job)
                jobs.change(tx, job.id, status=jobs.RUNNING, total=total)

    def did(self, number: int) -> None:
        """So much was done."""
        if number <= 0:
            return
        self.begin()
        self.done += number
        if self._job_id is not None and time.monotonic() - self._told >= _TELL_SECONDS:
            self._told = time.monotonic()
            with self._ledger.write() as tx:
                jobs.change(tx, self._job_id, done=self.done)

    def end(self, error: str | None = None) -> None:
        """The step is over; a failure shows even where nothing was begun."""
        if error is not None:
            self.begin()
        if self._job_id is not None:
            with self._ledger.write() as tx:
                jobs.change(tx, self._job_id, done=self.done)
                jobs.finish(tx, self._job_id, error=error)


@dataclass(slots=True)
class Step:
    """Something to tidy. `every` is the time between two runs in seconds, by the clock of what is dated."""

    name: str
    every: float
    work: Callable[[Parts, Turn], None]
    due_at: int = 0


@dataclass(slots=True)
class Maintenance:
    """All steps of one gateway; `run` looks which are due."""

    parts: Parts
    steps: Sequence[Step]
    _begun: bool = field(default=False)

    def run(self, keep_going: Callable[[], bool] = lambda: True) -> dict[str, int]:
        """Run the steps that are due. Returns how much each did that did something."""
        if not self._begun:
            self._begun = True
            self._settle_interrupted()
        done: dict[str, int] = {}
        for step in self.steps:
            if now_ms() >= step.due_at and keep_going():
                number = self._run(step, keep_going)
                if number:
                    done[step.name] = number
        return done

    def hasten(self, name: str) -> None:
        """A step is needed before its time."""
        for step in self.steps:
            if step.name == name:
                step.due_at = 0

    def _run(self, step: Step, keep_going: Callable[[], bool]) -> int:
        turn = Turn(self.parts.ledger, step.name, self.parts.settings.maintenance, keep_going)
        error: str | None = None
        try:
            step.work(self.parts, turn)
        except GatewayError as trouble:
            error = trouble.detail
            _LOG.warning("a step of maintenance failed", step=step.name, reason=error)
        except Exception as trouble:
            error = f"Unexpected: {type(trouble).__name__}."
            _LOG.exception("a step of maintenance failed", step=step.name)
        step.due_at = now_ms() if turn.more and error is None else now_ms() + int(step.every * 1000)
        if keep_going():  # a step that outlived the stop must not write into a ledger that is closed
            turn.end(error)
        return turn.done

    def _settle_interrupted(self) -> None:
        """Jobs of steps that a kill interrupted are over; the steps themselves begin anew."""
        with self.parts.ledger.write() as tx:
            for job in jobs.open_jobs(tx, (KIND,)):
                jobs.finish(tx, job.id, error=_INTERRUPTED)

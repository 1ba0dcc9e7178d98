"""Carries out the jobs that people order: clearing a scope, purging git's history. One at a time, oldest first."""

from __future__ import annotations

from collections.abc import Callable

from gateway import log
from gateway.errors import GatewayError
from gateway.importer.parts import Parts
from gateway.ledger import jobs
from gateway.services import clearing, forgetting, purging

_LOG = log.get("jobs")


def run(parts: Parts, keep_going: Callable[[], bool] = lambda: True) -> int:
    """Carry out, or on, all jobs that are open. Returns how many are over.

    A job that meets trouble stays open and is tried again; a purge that is refused has failed.
    """
    done = 0
    forgetting.finish(parts)
    with parts.ledger.read() as tx:
        waiting = jobs.open_jobs(tx, (*clearing.KINDS, purging.KIND))
    for job in waiting:
        if not keep_going():
            break
        try:
            carry_out = purging.run if job.kind == purging.KIND else clearing.run
            done += carry_out(parts, job.id, keep_going=keep_going)
        except GatewayError as error:
            _LOG.warning("a job waits", job=job.id, kind=job.kind, reason=error.detail)
            with parts.ledger.write() as tx:
                jobs.change(tx, job.id, error=f"{error.file}: {error.detail}" if error.file else error.detail)
    return done

"""The background threads: import, index, vectors, git, upkeep. Each may fail without the others."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from gateway import log
from gateway.access.authenticate import Authenticator
from gateway.clock import now_ms
from gateway.errors import Busy, GatewayError, GitTrouble
from gateway.importer import problems_note
from gateway.importer.importer import ImportReport
from gateway.importer.parts import Parts
from gateway.importer.recover import recover
from gateway.importer.watch import Watcher
from gateway.services import rebuild, sync
from gateway.skills.review_branches import ReviewBranches
from gateway.workers import jobs, upkeep
from gateway.workers.consolidation.run import Consolidation

_LOG = log.get("workers")
_UPKEEP_SECONDS = 30.0
_IDLE_SECONDS = 1.0
_GATHER_SECONDS = 0.15
_PROVIDER_SECONDS = 5.0
# A search takes seconds at most: by then nobody asks the index that was taken over.
_RETIRE_SECONDS = 30.0
_JOBS_SECONDS = 5.0
_READS_SECONDS = 0.8  # entries about reads are written within a second


class Worker:
    """A thread that runs a step whenever it is woken, and at least every `interval()` seconds."""

    def __init__(self, name: str, step: Callable[[], None], interval: Callable[[], float]) -> None:
        self._step = step
        self._interval = interval
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Run the step soon."""
        self._wake.set()

    def stop(self, seconds: float) -> None:
        """Let the present step end, and wait that long for it."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=seconds)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._step()
            except GatewayError as error:
                _LOG.warning(
                    "a background step failed and will be tried again", step=self._thread.name, reason=str(error)
                )
                self._wake.wait(_IDLE_SECONDS)
            except Exception:
                _LOG.exception("a background step failed and will be tried again", step=self._thread.name)
                self._wake.wait(_IDLE_SECONDS)
            self._wake.wait(self._interval())
            self._wake.clear()


class Workers:
    """All background threads of one gateway."""

    def __init__(
        self, parts: Parts, authenticator: Authenticator, branches: ReviewBranches, consolidation: Consolidation
    ) -> None:
        self._parts = parts
        self._consolidation = consolidation
        self._branches = branches
        self._authenticator = authenticator
        self._changed: set[str] = set()
        self._changed_lock = threading.Lock()
        self._next_scan = 0.0
        self._next_upkeep = 0.0
        self._migrate_pause = _IDLE_SECONDS
        self._problems_changed = True
        self._said: str | None = None
        self._stopping = False
        settings = parts.settings
        self._import = Worker("import", self._import_step, self._import_interval)
        self._index = Worker("index", self._index_step, lambda: _IDLE_SECONDS)
        self._embed = Worker("embed", self._embed_step, lambda: 2.0)
        self._git = Worker("git", self._git_step, lambda: settings.git.batch_seconds)
        self._audit = Worker("audit", self._audit_step, lambda: _READS_SECONDS)
        self.maintenance = upkeep.maintenance(parts)
        self._maintain = Worker("maintain", self._maintain_step, lambda: settings.maintenance.interval_seconds)
        self._all = [self._import, self._index, self._embed, self._git, self._audit, self._maintain]
        if parts.migration is not None:
            self._all.append(Worker("migrate", self._migrate_step, lambda: self._migrate_pause))
        if settings.git.remote is not None:
            self._all.append(Worker("sync", self._sync_step, lambda: settings.git.sync_seconds))
        if settings.consolidation.enabled:
            pace = settings.consolidation.every_seconds
            self._all.append(Worker("consolidate", self._consolidate_step, lambda: pace))
        parts.importer.on_change = self._on_change
        parts.wake = self._index.wake
        ordered = Worker("jobs", self._jobs_step, lambda: _JOBS_SECONDS)
        self._all.append(ordered)
        parts.wake_jobs = ordered.wake
        if settings.watch.enabled:
            staging = parts.files.staging
            parts.watcher = Watcher(
                parts.files.root, staging / "canary", self._hear, canary_seconds=settings.watch.canary_seconds
            )

    def start(self) -> None:
        """Start listening and working."""
        if self._parts.watcher is not None:
            self._parts.watcher.start()
        for worker in self._all:
            worker.start()

    def stop(self, seconds: float = 20.0) -> None:
        """Stop all threads, each within a bound; what is left waits in the ledger."""
        self._stopping = True
        self._consolidation.stop()
        if self._parts.watcher is not None:
            self._parts.watcher.stop()
        for worker in self._all:
            worker.stop(seconds)
        self._authenticator.flush()

    def _hear(self, paths: set[str]) -> None:
        with self._changed_lock:
            self._changed |= paths
        self._import.wake()

    def _on_change(self, report: ImportReport) -> None:
        self._problems_changed |= report.problems_changed
        if not report.own:  # a person's save is indexed at once; own writes are gathered, unless somebody waits
            self._parts.feed.hurry.set()
        self._index.wake()

    def _import_interval(self) -> float:
        soonest = min(self._parts.importer.later.values(), default=None) if self._parts.importer.later else None
        left = self._next_scan - time.monotonic()
        if soonest is not None:
            left = min(left, (soonest - now_ms()) / 1000)
        return max(0.005, left)

    def _import_step(self) -> None:
        with self._changed_lock:
            changed, self._changed = self._changed, set()
        importer = self._parts.importer
        if time.monotonic() >= self._next_scan or len(changed) > 1_000:
            self._scan()  # sees everything that was heard
            changed = set[str]()
        paths = [*changed, *importer.due_paths()]
        if paths:
            importer.import_paths(paths)

    def _scan(self) -> None:
        parts = self._parts
        self._next_scan = time.monotonic() + parts.settings.watch.scan_seconds
        try:
            parts.importer.scan(settled=not parts.scanned.is_set())
            parts.vault_error = None
        except GatewayError as error:
            if parts.vault_error is None:
                _LOG.warning("the vault cannot be scanned", reason=str(error))
            parts.vault_error = str(error)
            return
        parts.last_scan_at = time.time()
        if not parts.scanned.is_set():
            parts.scanned.set()
            _LOG.info("first scan done", notes=len(parts.importer.seen))

    def _index_step(self) -> None:
        feed = self._parts.feed
        feed.hurry.wait(_GATHER_SECONDS)
        feed.hurry.clear()
        if feed.feed():
            self._embed.wake()
        if feed.needs_optimise():
            self.maintenance.hasten("index")
            self._maintain.wake()

    def _embed_step(self) -> None:
        self._parts.feed.fill_vectors(keep_going=lambda: not self._stopping)

    def _jobs_step(self) -> None:
        if self._parts.scanned.is_set():
            jobs.run(self._parts, lambda: not self._stopping)

    def _audit_step(self) -> None:
        self._parts.reads.flush()
        self._parts.uses.flush()

    def _consolidate_step(self) -> None:
        if self._parts.scanned.is_set():  # what is not read yet looks as if it were gone
            with contextlib.suppress(Busy):  # somebody asked for a pass a moment ago
                self._consolidation.run(keep_going=lambda: not self._stopping)

    def _sync_step(self) -> None:
        if not self._parts.scanned.is_set():
            return
        try:
            sync.run(self._parts, self._branches)
        except GitTrouble as error:
            if self._parts.sync.error != self._said:
                _LOG.warning("the sync with the git remote waits", reason=error.detail)
            self._said = self._parts.sync.error

    def _git_step(self) -> None:
        parts = self._parts
        if self._problems_changed and parts.scanned.is_set():
            self._problems_changed = False
            self._problems_changed |= not problems_note.update(parts.importer)
        parts.committer.flush()
        self._branches.look()
        if time.monotonic() >= self._next_upkeep:
            self._next_upkeep = time.monotonic() + _UPKEEP_SECONDS
            recover(parts.importer)  # writes that an error (a full disk) left half-way
            parts.writes.settle_spares()
            self._authenticator.flush()

    def _maintain_step(self) -> None:
        if self._parts.scanned.is_set():
            self.maintenance.run(lambda: not self._stopping)

    def _migrate_step(self) -> None:
        parts, migration = self._parts, self._parts.migration
        if migration is None:
            rebuild.close_retired(parts)
            return
        if not parts.scanned.is_set():
            return
        share = parts.settings.maintenance.migration_share
        started = time.monotonic()
        self._migrate_pause = _RETIRE_SECONDS
        if not rebuild.migrate(parts):
            spent = (time.monotonic() - started) * (1 - share) / share
            self._migrate_pause = _PROVIDER_SECONDS if migration.error is not None else min(spent, _PROVIDER_SECONDS)

"""The import pipeline: observe paths, plan, apply. Watcher, scan, API and command line all come through here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from gateway import log
from gateway.clock import now_ms
from gateway.config import Settings
from gateway.errors import BadPath, GatewayError, Unavailable
from gateway.importer.absence import AbsenceGuard
from gateway.importer.apply import PERSON, Applied, Circumstances, apply, known_for, problem_row
from gateway.importer.places import Places
from gateway.importer.plan import Action, Known, Observation, Vanish, claim_of, plan
from gateway.importer.screening import all_judged, held_under_other_rules, screened
from gateway.ledger import Ledger, fences, problems, registry
from gateway.ledger.journal import Actor
from gateway.ledger.problems import ProblemRow
from gateway.ledger.registry import NoteRow
from gateway.notes.drafts import folder_of_draft
from gateway.notes.note import NoteProblem, parse
from gateway.notes.paths import leaves_vault
from gateway.vault.files import VaultFiles
from gateway.vault.history import History
from gateway.vault.scan import Snapshot, StatKey, walk

_BATCH = 500
_EMPTY_HOLD_MS = 10_000
_FAILED_AGAIN_MS = 60_000
_LOG = log.get("importer")
_COMPANION_ROUNDS = 10
_JUDGED_AGAIN = frozenset({"duplicate-id"})


Attribute = Callable[[registry.Transaction, list[Action], Circumstances], list[tuple[list[Action], Circumstances]]]


@dataclass(slots=True)
class ImportReport:
    """What an import did; `waiting` are paths to look at again, with the time (ms) to do so."""

    put: int = 0
    held: int = 0
    deleted: int = 0
    paused: int = 0
    problems_changed: bool = False
    own: bool = False

    def add(self, done: Applied) -> None:
        """Count what one batch did."""
        self.put += len(done.put)
        self.held += len(done.held)
        self.deleted += len(done.deleted)
        self.problems_changed |= done.problems_changed


class Importer:
    """Brings ledger and index to what the files say. One lock serialises it with the gateway's own writes."""

    def __init__(self, files: VaultFiles, ledger: Ledger, places: Places, history: History, settings: Settings) -> None:
        self.files = files
        self.ledger = ledger
        self.places = places
        self.history = history
        self.settings = settings
        self.lock = threading.RLock()
        self.seen: dict[str, StatKey] = {}
        self.later: dict[str, int] = {}
        self._rules_settled = False
        self.absence = AbsenceGuard(files.root, history, settings)
        self.on_change: Callable[[ImportReport], None] = lambda _report: None
        # Review drafts are not for this pipeline: whoever decides them is told. Returns whether problems changed.
        self.on_drafts: Callable[[Sequence[str], bool], bool] = lambda _paths, _settled: False
        # Scopes that are being cleared take nothing in until that is done.
        self.closed = fences.Fences()
        # Tells in whose name changes found in the vault were made, where it was not simply the person.
        self.attribute: Attribute = lambda _tx, actions, by: [(actions, by)]
        with ledger.read() as tx:
            self.closed = fences.active(tx)
            for row in registry.all_files(tx):
                self.seen[row.path] = row.stat_key
                if row.missing_since is not None:
                    self.absence.missing[row.path] = row.missing_since

    def person(self) -> Actor:
        """The person whose edits are found in the vault, as git knows them."""
        name, email = self.history.person() or (self.settings.git.person_name, self.settings.git.person_email)
        return Actor(PERSON, name, email, PERSON)

    def import_paths(self, paths: Iterable[str], *, again: bool = False, settled: bool = False) -> ImportReport:
        """Bring these paths up to date; folders among them are walked.

        Args:
            again: judge files anew though their bytes are known.
            settled: do not wait for files that changed a moment ago.
        """
        report = ImportReport()
        with self.lock:
            found = self._files_among(paths, again=again)
            drafts = [path for path in found if folder_of_draft(path) is not None]
            if drafts:
                report.problems_changed |= self.on_drafts(drafts, settled)
            for batch in _batches([path for path in found if folder_of_draft(path) is None]):
                seen = [one for path in batch if (one := self._observe(path, again=again, settled=settled)) is not None]
                report.add(self._import(self._with_companions(seen), self._by_person(), report))
        self._follow_up(report)
        return report

    def scan(self, *, settled: bool = False) -> ImportReport:
        """Compare the whole vault with what is known: stat first, read only what differs.

        Raises:
            Unavailable: the vault's folder is not there; nothing is concluded from that.
        """
        self.check_present()
        snapshot = walk(self.files.root)
        report = ImportReport()
        with self.lock:
            changed = [path for path, key in snapshot.files.items() if self.seen.get(path) != key]
            changed.sort(key=lambda path: (len(path), path))  # as `plan` does within a batch
            absent = self._absent(snapshot, changed)
            back = [path for path in self.absence.missing if path in snapshot.files]
            due = [path for path, at in self.later.items() if at <= now_ms()]
            anew = self._to_judge_anew()
            report = self.import_paths([*changed, *absent, *back, *due, *(anew or ())], settled=settled)
            if anew is not None:
                all_judged(self.ledger, self.settings.secrets)
            self._rules_settled = True
            self._report_unreadable(snapshot, report)
        return report

    def _to_judge_anew(self) -> list[str] | None:
        """All notes that are known, where it changed what counts as a secret; None where it did not."""
        held = None if self._rules_settled else held_under_other_rules(self.ledger, self.settings.secrets)
        if held is None:
            return None
        known = list(self.seen)
        self.import_paths(held, again=True, settled=True)
        return known

    def _absent(self, snapshot: Snapshot, changed: Sequence[str]) -> list[str]:
        known_and_there = len(snapshot.files) - sum(path not in self.seen for path in changed)
        if known_and_there == len(self.seen):
            return []  # the usual case, without looking at every name
        return [path for path in self.seen if path not in snapshot.files and snapshot.covers(path)]

    def check_present(self) -> None:
        """Make sure that there is a vault.

        Raises:
            Unavailable: its folder is gone, or holds nothing though notes are known: its disk is not mounted.
        """
        if self.seen and not self.absence.inhabited():
            raise Unavailable(
                "The vault is empty or gone, but its notes are known; nothing counts as deleted.",
                file=str(self.files.root),
                advice="Is its disk mounted? Bring the files back.",
            )

    def look_again(self, path: str) -> None:
        """Import a path soon, whatever is known of it."""
        self.later[path] = now_ms()

    def due_paths(self) -> list[str]:
        """Paths that were to be looked at again by now."""
        at = now_ms()
        with self.lock:
            return [path for path, due in self.later.items() if due <= at]

    def record(
        self,
        seen: Sequence[Observation],
        by: Circumstances,
        deletions: Collection[str],
        settle: Callable[[registry.Transaction, dict[str, NoteRow], dict[str, NoteRow]], None],
    ) -> Applied:
        """Import what the gateway itself just wrote, in the transaction that also settles its intents.

        Args:
            deletions: paths whose absence is the gateway's own doing and needs no proof.
            settle: is given the transaction, and the notes by path before and after.
        """
        with self.lock:
            with self.ledger.write() as tx:
                known = self._known(tx, seen)
                actions = plan(seen, known, gone=self._gone)
                own = [one for one in actions if not isinstance(one, Vanish) or one.path in deletions]
                done = apply(tx, own, by)
                settle(tx, dict(known.at_path), registry.notes_by_path(tx, [one.path for one in seen]))
            self._remember(seen, done)
        report = ImportReport(own=True)
        report.add(done)
        self._follow_up(report)
        return done

    def observe(self, path: str) -> Observation:
        """Read and parse one path right now.

        Raises:
            BadPath, Unavailable: the file cannot be read as a note.
        """
        read = self.files.read(path)
        place = self.places.place_of(path)
        if read is None or place is None:
            return Observation(path, read, None, place)
        parsed = parse(read.data, max_bytes=self.settings.vault.max_note_bytes)
        parsed = screened(parsed, self.settings.secrets)
        return Observation(path, read, parsed, place, self.places.conflict_copy(path))

    def confirm_deletions(self) -> ImportReport:
        """A person confirms that the notes which vanished in masses are really deleted."""
        with self.lock:
            self.absence.confirmed = True
            try:
                return self.import_paths(list(self.absence.missing))
            finally:
                self.absence.confirmed = False

    def import_merged(self, groups: Sequence[tuple[Sequence[str], Actor]], removed: Sequence[str]) -> ImportReport:
        """Import what a merge with a remote brought, in the names of those who wrote it.

        Args:
            groups: paths by their author.
            removed: paths that the merge took away; a commit says so, and no second look is needed.
        """
        report = ImportReport()
        with self.lock:
            for paths, actor in groups:
                by = replace(self._by_person(), actor=actor, commit_after=now_ms())
                notes = [path for path in paths if path.endswith(".md") and folder_of_draft(path) is None]
                for batch in _batches(notes):
                    seen = [
                        one for path in batch if (one := self._observe(path, again=False, settled=True)) is not None
                    ]
                    report.add(self._import(self._with_companions(seen), by, report))
            self.absence.confirmed = True
            try:
                report.problems_changed |= self.import_paths(removed, settled=True).problems_changed
            finally:
                self.absence.confirmed = False
            drafts = [path for paths, _ in groups for path in paths if folder_of_draft(path) is not None]
            if drafts:
                report.problems_changed |= self.on_drafts(drafts, True)
        self._follow_up(report)
        return report

    def _files_among(self, paths: Iterable[str], *, again: bool) -> list[str]:
        found: dict[str, None] = {}
        for path in paths:
            if leaves_vault(path):
                continue
            if (self.files.root / path).is_dir():
                present = walk(self.files.root, path).files
                changed = [one for one, key in present.items() if again or self.seen.get(one) != key]
                found.update(dict.fromkeys(sorted(changed, key=lambda one: (len(one), one))))
                known = [one for one in self.seen if one.startswith(path + "/") and one not in present]
                found.update(dict.fromkeys(known))
            elif path.endswith(".md"):
                found[path] = None
            else:
                found.update(dict.fromkeys(known for known in self.seen if known.startswith(path + "/")))
        return list(found)

    def _with_companions(self, seen: list[Observation]) -> list[Observation]:
        """Add the files that the claimed ids are known to stand in: notes that swapped names are judged together."""
        have = {one.path for one in seen}
        fresh = seen
        for _ in range(_COMPANION_ROUNDS):
            claims = [claim for one in fresh if (claim := claim_of(one)) is not None]
            if not claims:
                break
            with self.ledger.read() as tx:
                paths = {row.path for row in registry.notes_by_id(tx, claims).values()} - have
            fresh = [one for path in paths if (one := self._observe(path, again=False, settled=True)) is not None]
            seen = [*seen, *fresh]
            have |= paths
        return seen

    def _observe(self, path: str, *, again: bool, settled: bool) -> Observation | None:
        self.later.pop(path, None)
        place = self.places.place_of(path)
        if place is None and path not in self.seen:
            return None
        if place is not None and self.closed.covers(str(place.namespace)):
            self.later[path] = now_ms() + 1_000
            return None
        try:
            seen = self.observe(path)
        except BadPath:  # the scan lists it as a problem; a note that was there is gone
            return Observation(path, None, None, place)
        except Unavailable:
            self.later[path] = now_ms() + 1_000
            return None
        if seen.read is not None and not settled and self._too_fresh(path, seen):
            return None
        return replace(seen, again=again)

    def _too_fresh(self, path: str, seen: Observation) -> bool:
        """Whether a file may still be in the middle of being saved; it is looked at again in a moment."""
        assert seen.read is not None
        changed_ms = seen.read.stat_key[3] // 1_000_000
        wait = int(self.settings.watch.settle_seconds * 1000)
        if not seen.read.data and path in self.seen and self.seen[path][1] > 0:
            wait = _EMPTY_HOLD_MS
        # A time in the future (a clock that runs ahead) says nothing.
        if 0 <= now_ms() - changed_ms < wait and self.seen.get(path) != seen.read.stat_key:
            self.later[path] = changed_ms + wait + 1
            return True
        return False

    def _import(self, seen: Sequence[Observation], by: Circumstances, report: ImportReport) -> Applied:
        """Import together; where that fails for a reason nobody foresaw, one by one, so that each can fail alone."""
        try:
            return self._import_together(seen, by, report) if seen else Applied()
        except GatewayError:
            raise
        except Exception as error:
            if len(seen) == 1:
                self._not_imported(seen[0], error, report)
            else:
                for one in seen:
                    report.add(self._import([one], by, report))
            return Applied()

    def _not_imported(self, seen: Observation, error: Exception, report: ImportReport) -> None:
        _LOG.exception("a note could not be taken in", path=seen.path)
        message = f"The gateway failed to take this note in ({type(error).__name__}); the file is as it was."
        problem = NoteProblem("not-imported", message, None, "Please report it; it is tried again every minute.")
        namespace = str(seen.place.namespace) if seen.place else None
        with self.ledger.write() as tx:
            rows = [problem_row(seen.path, namespace, problem, now_ms())]
            report.problems_changed |= problems.replace_problems(tx, {seen.path}, rows)
        self.later[seen.path] = now_ms() + _FAILED_AGAIN_MS

    def _import_together(self, seen: Sequence[Observation], by: Circumstances, report: ImportReport) -> Applied:
        with self.ledger.write() as tx:
            actions = plan(seen, self._known(tx, seen), gone=self._gone)
            for one in seen:
                if one.read is not None:
                    self.absence.missing.pop(one.path, None)
            proven, unproven = self.absence.judge(tx, [action for action in actions if isinstance(action, Vanish)])
            report.paused = self.absence.paused
            report.problems_changed |= self.absence.alarm_changed
            kept: list[Action] = [action for action in actions if not isinstance(action, Vanish)]
            done = Applied()
            for group, circumstances in self.attribute(tx, [*kept, *proven], by):
                done.add(apply(tx, group, circumstances))
            for path, due in unproven.items():
                self.later[path] = due
        self._remember(seen, done)
        return done

    def _known(self, tx: registry.Transaction, seen: Sequence[Observation]) -> Known:
        files, notes, at_path, by_etag, by_inode = known_for(tx, seen, self.absence.missing, claim_of)
        return Known(files, notes, at_path, by_etag, by_inode)

    def _remember(self, seen: Sequence[Observation], done: Applied) -> None:
        for one in seen:
            if one.read is not None:
                self.seen[one.path] = one.read.stat_key
                self.absence.missing.pop(one.path, None)
        for path, key in done.seen.items():
            if key is None:
                self.seen.pop(path, None)
                self.absence.missing.pop(path, None)

    def _by_person(self) -> Circumstances:
        at = now_ms()
        settings = self.settings.git
        return Circumstances(
            self.person(), at, at + int(settings.quiet_seconds * 1000), keep_for_git=settings.commit_people == "auto"
        )

    def _gone(self, path: str) -> bool:
        return self.files.stat(path) is None and self.absence.provable(path)

    def _follow_up(self, report: ImportReport) -> None:
        """What a deletion or move may have freed is judged anew; whoever listens is told."""
        if report.deleted:
            with self.ledger.read() as tx:
                waiting = [row.path for row in problems.listed(tx) if row.kind in _JUDGED_AGAIN]
            with self.lock:
                seen = [one for path in waiting if (one := self._observe(path, again=True, settled=True)) is not None]
                report.add(self._import(seen, self._by_person(), report))
        if report.put or report.deleted or report.held or report.problems_changed:
            self.on_change(report)

    def _report_unreadable(self, snapshot: Snapshot, report: ImportReport) -> None:
        found: dict[str, NoteProblem] = {}
        for folder in snapshot.unreadable:
            message = "The folder cannot be read; its notes are kept as they were last seen."
            found[folder or "/"] = NoteProblem(
                "unreadable", message, None, "Give the gateway's user the right to read it."
            )
        for path, reason in snapshot.refused.items():
            if self.places.place_of(path if path.endswith(".md") else f"{path}/note.md") is not None:
                message = f"The gateway does not read this: {reason}."
                found[path] = NoteProblem("refused", message, None, "Put a regular note there instead.")
        with self.ledger.read() as tx:
            before = [row for row in problems.listed(tx) if row.kind in ("unreadable", "refused")]
        if {row.path for row in before} == set(found):
            return
        rows: list[ProblemRow] = [problem_row(path, None, problem, now_ms()) for path, problem in found.items()]
        with self.ledger.write() as tx:
            report.problems_changed |= problems.replace_problems(tx, {row.path for row in before} | set(found), rows)
        self.on_change(report)


def _batches(paths: Collection[str]) -> Iterable[list[str]]:
    ordered = list(paths)
    for start in range(0, len(ordered), _BATCH):
        yield ordered[start : start + _BATCH]

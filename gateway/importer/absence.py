"""Absence must be proven: a note counts as deleted only when its folder could be read and it was gone twice.

Design section 2, rule 5. An unmounted or half-synced vault looks like everything deleted; that deletes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gateway.clock import now_ms
from gateway.config import Settings
from gateway.errors import BadPath, Unavailable
from gateway.importer.plan import Vanish
from gateway.ledger import Transaction, problems, registry
from gateway.ledger.problems import ProblemRow
from gateway.vault.history import History
from gateway.vault.paths import open_folder

TOO_MUCH_GONE = "too-much-gone"


class AbsenceGuard:
    """Remembers which files are missing since when, and decides when that means deleted.

    `paused` is the number of deletions held back, `alarm_changed` whether the last judgement raised or ended an alarm.
    """

    def __init__(self, root: Path, history: History, settings: Settings) -> None:
        self._root = root
        self._history = history
        self._settings = settings
        self._identity = _identity(root)
        self.missing: dict[str, int] = {}
        self.paused = 0
        self._alarmed = True  # an alarm of an earlier run may stand in the ledger
        self.alarm_changed = False
        self.confirmed = False

    def provable(self, path: str) -> bool:
        """Whether the absence of a path means anything: it is the same vault, and the folder can be read."""
        if _identity(self._root) != self._identity or not self._history.git_dir.is_dir() or not self.inhabited():
            return False
        if (self._root / path).parent.joinpath(f".{Path(path).name}.icloud").exists():
            return False  # evicted by iCloud, not deleted
        folder = path.rpartition("/")[0]
        try:
            os.close(open_folder(self._root, folder))
        except (FileNotFoundError, BadPath):
            return True  # the folder itself was deleted or replaced, in a vault that is there
        except (Unavailable, OSError):
            return False
        return True

    def inhabited(self) -> bool:
        """Whether the vault's folder is there and holds anything that people see: a bare mount point does not."""
        try:
            with os.scandir(self._root) as entries:
                return any(not entry.name.startswith(".") for entry in entries)
        except OSError:
            return False

    def judge(self, tx: Transaction, vanished: Sequence[Vanish]) -> tuple[list[Vanish], dict[str, int]]:
        """Split into proven deletions and paths to look at again, with the time (ms) to do so."""
        at = now_ms()
        self.alarm_changed = False
        wait = int(self._settings.watch.absence_seconds * 1000)
        proven: list[Vanish] = []
        again: dict[str, int] = {}
        for action in vanished:
            if not self.provable(action.path):
                continue
            since = self.missing.setdefault(action.path, at)
            if action.known.missing_since is None:
                registry.set_missing(tx, [action.path], since)
            if at - since < wait and not self.confirmed:
                again[action.path] = since + wait + 1
            else:
                proven.append(action)
        return self._within_bounds(tx, proven), again

    def _within_bounds(self, tx: Transaction, proven: list[Vanish]) -> list[Vanish]:
        """Hold back deletions in a namespace that lost improbably much at once, until a person confirms."""
        stormy = {} if self.confirmed else self._stormy(tx)
        if stormy or self._alarmed:
            self._alarm(tx, stormy)
        return [action for action in proven if action.note is None or action.note.namespace not in stormy]

    def _stormy(self, tx: Transaction) -> dict[str, int]:
        policy = self._settings.policy
        if len(self.missing) <= policy.deletion_guard_notes:
            return {}
        gone = Counter(row.namespace for row in registry.notes_by_path(tx, self.missing).values())
        totals = registry.counts_by_namespace(tx)
        return {
            namespace: number
            for namespace, number in gone.items()
            if number > policy.deletion_guard_notes
            and number > policy.deletion_guard_share * totals.get(namespace, {}).get("notes", number)
        }

    def _alarm(self, tx: Transaction, stormy: dict[str, int]) -> None:
        self.paused = sum(stormy.values())
        self._alarmed = bool(stormy)
        rows = [
            ProblemRow(
                "",
                TOO_MUCH_GONE,
                f"{number} notes of {namespace} are gone at once; none of them counts as deleted yet.",
                "Bring the files back, or confirm: POST /v1/problems/confirm-deletions.",
                None,
                None,
                namespace,
                now_ms(),
            )
            for namespace, number in sorted(stormy.items())
        ]
        self.alarm_changed = problems.replace_problems(tx, {""}, rows)


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)

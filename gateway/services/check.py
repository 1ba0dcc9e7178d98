"""`check`: vault ≡ ledger ≡ index, read-only, also beside a running server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gateway.config import Settings
from gateway.errors import GatewayError
from gateway.importer.places import Places
from gateway.importer.rows import HELD
from gateway.index.peek import indexed_etags
from gateway.ledger import Ledger, journal, meta, problems, registry
from gateway.ledger.registry import FileRow
from gateway.vault.files import VaultFiles
from gateway.vault.scan import walk

_TRIES = 4
_PAUSE_SECONDS = 1.5


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One disagreement. `where` is a path or an id."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found; consistent when `findings` is empty. `problems` are the person's to mend, not ours."""

    notes: int
    findings: list[Finding]
    problems: list[Finding]


def check(settings: Settings, *, patient: bool) -> CheckReport:
    """Compare the three stores.

    Args:
        patient: a server is at work: only what still disagrees after a moment is a finding.

    Raises:
        GatewayError: the vault or the ledger cannot be read.
    """
    report = _compare(settings)
    for _ in range(_TRIES if patient else 0):
        if not report.findings:
            break
        time.sleep(_PAUSE_SECONDS)
        again = _compare(settings)
        report = CheckReport(again.notes, sorted(set(report.findings) & set(again.findings)), again.problems)
    return report


def _compare(settings: Settings) -> CheckReport:
    ledger = Ledger(settings.ledger, read_only=True)
    places = Places(settings.vault.owner, settings.vault.sources)
    files = VaultFiles(settings.vault_root, settings.data_dir, max_bytes=settings.vault.max_note_bytes)
    with ledger.read() as tx:
        rows = {row.path: row for row in registry.all_files(tx)}
        states = list(registry.note_states(tx))
        stale = {row.note_id for row in registry.unindexed(tx, 1_000_000)}
        slug, generation = meta.get(tx, meta.INDEX_IDENTITY), int(meta.get(tx, meta.INDEX_GENERATION) or 0)
        open_intents = journal.open_intents(tx, "prepared")
        listed = [Finding(row.path or "vault", f"{row.message} {row.advice}") for row in problems.listed(tx)]
    found = [Finding(intent.path, "a write was begun and not finished; start the server") for intent in open_intents]
    found += _vault_against_ledger(
        settings.vault_root, places, files, rows, {path: etag for _, path, etag, _ in states}
    )
    indexed = indexed_etags(settings.index_location, slug or "none", generation)
    found += _ledger_against_index(states, indexed, stale)
    return CheckReport(len(states), sorted(found), listed)


def _vault_against_ledger(
    root: Path, places: Places, files: VaultFiles, rows: dict[str, FileRow], notes: dict[str, str]
) -> list[Finding]:
    found: list[Finding] = []
    snapshot = walk(root)
    for path in snapshot.files:
        if places.place_of(path) is None:
            continue
        try:
            read = files.read(path)
        except GatewayError as error:
            found.append(Finding(path, error.detail))
            continue
        row = rows.get(path)
        if read is None:
            continue
        if row is None:
            found.append(Finding(path, "is in the vault, but not in the ledger"))
        elif row.etag != read.etag:
            found.append(Finding(path, "has another text in the vault than in the ledger"))
        elif row.note_id is not None and notes.get(path) != read.etag:
            found.append(Finding(path, "its memory in the ledger has another text"))
    found += [Finding(path, "is in the ledger, but not in the vault") for path in rows if path not in snapshot.files]
    found += [Finding(path, "is a memory in the ledger without a file") for path in notes if path not in rows]
    return found


def _ledger_against_index(
    states: list[tuple[str, str, str, str]], indexed: dict[str, str] | None, stale: set[str]
) -> list[Finding]:
    if indexed is None:
        return [Finding("index", "there is no index; start the server, or run `rebuild`")] if states else []
    found: list[Finding] = []
    for note_id, path, etag, status in states:
        if status == HELD:
            if note_id in indexed:
                found.append(Finding(path, "is held for a problem, but still in the index"))
        elif note_id in stale:
            found.append(Finding(path, "is not indexed yet"))
        elif indexed.get(note_id) != etag:
            found.append(Finding(path, "is in the index with another text, or not at all"))
    known = {state[0] for state in states}
    return found + [
        Finding(note_id, "is in the index, but not in the ledger") for note_id in indexed if note_id not in known
    ]

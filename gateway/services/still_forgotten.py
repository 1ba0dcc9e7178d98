"""What was forgotten since a backup was made stays forgotten in what is restored of it: memories, the drafts and words
about them, and what was cleared. The other ledger says which, by hashes and ids; no text is taken over."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.errors import GatewayError
from gateway.ledger import Ledger, Transaction, clearing, erasure, jobs, registry, tombstones
from gateway.ledger.erasure import Erasure
from gateway.ledger.fences import CLEAR, RETIRE
from gateway.ledger.jobs import Job
from gateway.ledger.registry import NoteRow
from gateway.ledger.tombstones import Tombstone
from gateway.notes.note import parse
from gateway.services.clearing import fence_of
from gateway.vault.paths import open_note


def keep_forgotten(tx: Transaction, other: Path, vault: Path) -> int:
    """Forget in a restored ledger what another one knows to be forgotten. Returns how many memories that concerns.

    Args:
        other: the file of the ledger that knows.
        vault: the restored vault: what its notes say is taken out of conversations, the files stay for the person.
    """
    buried, known, drafts, cleared = _known(other)
    tombstones.take_over(tx, buried)
    erasure.take_over(tx, known)
    erasure.forget_drafts(tx, drafts)
    for job in cleared:
        clearing.clear_earlier_sessions(tx, fence_of(job), before=job.created_at)
    gone = tombstones.suppressed(tx)
    for row in gone:
        alone = not tombstones.buried(tx, row.namespace, content_hash=row.content_hash)
        erasure.erase(tx, row, _said(vault, row), alone=alone)
    registry.drop_files(tx, [row.path for row in gone])
    registry.drop_notes(tx, [row.note_id for row in gone])
    return len(gone)


def _known(other: Path) -> tuple[list[Tombstone], list[Erasure], list[str], list[Job]]:
    ledger = Ledger(f"sqlite:///{other}", read_only=True)
    try:
        with ledger.read() as theirs:
            done = jobs.of_kinds(theirs, (CLEAR, RETIRE))
            return tombstones.everything(theirs), erasure.everything(theirs), erasure.all_drafts(theirs), done
    finally:
        ledger.close()


def _said(vault: Path, row: NoteRow) -> str:
    try:
        found = open_note(vault, row.path)
    except GatewayError:
        return ""
    if found is None:
        return ""
    with os.fdopen(found, "rb") as file:
        return parse(file.read()).body

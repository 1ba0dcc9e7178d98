"""Writes `Reviews/Problems.md`: problems speak where the person works (design section 2, rule 7)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from gateway.clock import now_ms
from gateway.errors import GatewayError
from gateway.importer.importer import Importer
from gateway.ledger import journal, problems
from gateway.ledger.journal import Version
from gateway.ledger.problems import ProblemRow
from gateway.notes.text import etag_of
from gateway.vault.history import COMMITTER

PATH = "Reviews/Problems.md"
_HEAD = """# Problems

This note is kept by the gateway: what it could not read or take as a memory, and what to do about it.
Nothing here was changed or deleted. A line disappears by itself when its cause is gone.

"""


def render(rows: Sequence[ProblemRow]) -> bytes:
    """The text of the note."""
    if not rows:
        return (_HEAD + "No problems.\n").encode("utf-8")
    lines = [
        f"{len(rows)} problem{'s' if len(rows) != 1 else ''}.\n",
        "| File | Line | What is wrong | What to do |",
        "|---|---|---|---|",
    ]
    for row in rows:
        link = (
            f"[[{_cell(row.path)}]]"
            if row.path and not set(row.path) & set("[]|#^")
            else f"`{_cell(row.path or 'vault')}`"
        )
        lines.append(f"| {link} | {row.line or ''} | {_cell(row.message)} | {_cell(row.advice)} |")
    return (_HEAD + "\n".join(lines) + "\n").encode("utf-8", "replace")


def update(importer: Importer) -> bool:
    """Bring the note up to date where it differs. Returns whether it is; False: try again."""
    with importer.lock:
        with importer.ledger.read() as tx:
            wanted = render(problems.listed(tx))
        intent = f"int_{uuid.uuid4().hex}"
        try:
            importer.check_present()
            found = importer.files.read(PATH)
            if found is None:
                importer.files.create(PATH, wanted, intent)
            elif found.data != wanted:
                importer.files.replace(PATH, found.etag, wanted, intent)
                importer.files.drop_spare(intent)
        except (GatewayError, OSError):
            return False  # somebody edits it, or the disk is full
        _record(importer, wanted)
    return True


def _record(importer: Importer, wanted: bytes) -> None:
    """Give the text to git, once; also where a crash came between writing and this."""
    at = now_ms()
    with importer.ledger.read() as tx:
        newest = next(iter(journal.history(tx, "problems")), None)
    if newest is not None and newest.etag == etag_of(wanted):
        return
    version = Version(
        uuid.uuid4().hex, "problems", 1, "write", PATH, None, etag_of(wanted), *COMMITTER, "gateway", at, at
    )
    with importer.ledger.write() as tx:
        journal.record_versions(tx, [(version, wanted)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("\r", " ")

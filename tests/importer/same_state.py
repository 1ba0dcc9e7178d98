"""Two data directories with the same files must say the same: what tests of the importer compare."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from gateway.importer import problems_note
from gateway.ledger import problems, registry
from gateway.notes.text import etag_of
from gateway.vault.scan import walk


class Known(NamedTuple):
    """What the gateway makes of one file."""

    namespace: str | None
    etag: str
    status: str
    searchable: bool


def state(gateway: Gateway) -> dict[str, Known]:
    """What ledger and index say, by path; a held note counts as no memory, whether or not it was one before."""
    parts = gateway.parts
    indexed = parts.feed.index.note_etags()
    with parts.ledger.read() as tx:
        files = list(registry.all_files(tx))
        notes = registry.notes_by_path(tx, [file.path for file in files])
        strays = {path for _, path, _, _ in registry.note_states(tx)} - {file.path for file in files}
        assert registry.removals(tx, 10) == []
    assert strays == set(), "notes without a file"
    ids = {note.note_id for note in notes.values() if note.status != "held"}
    assert set(indexed) == ids, "the index holds exactly the memories"
    found: dict[str, Known] = {}
    for file in files:
        note = notes.get(file.path)
        if note is None or note.status == "held":
            found[file.path] = Known(None, file.etag, "held", False)
        else:
            assert file.note_id == note.note_id
            found[file.path] = Known(note.namespace, note.etag, note.status, indexed.get(note.note_id) == note.etag)
    return found


def settle(gateway: Gateway) -> None:
    """Scan as often as deletions need to be proven, then index and commit."""
    for _ in range(3):
        gateway.settle()


def fresh(gateway: Gateway, **settings) -> tuple[dict[str, Known], set[tuple[str, str]]]:
    """State and problems of a new data directory that imports a copy of the same files."""
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        root = gateway.parts.files.root
        shutil.copytree(root, vault, symlinks=True, ignore=shutil.ignore_patterns(".git", "pipe.md"))
        for pipe in root.rglob("pipe.md"):
            os.mkfifo(vault / pipe.relative_to(root))
        other = open_gateway(load_settings(data_dir=Path(folder), **settings))
        try:
            settle(other)
            return state(other), problem_kinds(other)
        finally:
            other.close()


def problem_kinds(gateway: Gateway) -> set[tuple[str, str]]:
    """(path, kind) of all problems."""
    with gateway.parts.ledger.read() as tx:
        return {(row.path, row.kind) for row in problems.listed(tx)}


def disk(gateway: Gateway) -> dict[str, str]:
    """Hash of every note of a person's that is in the vault, by path."""
    root = gateway.parts.files.root
    return {path: etag_of((root / path).read_bytes()) for path in walk(root).files if path != problems_note.PATH}

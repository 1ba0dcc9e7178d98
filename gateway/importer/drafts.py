"""The files of review drafts: written by the journal like every note, known by their hashes, given to git.

Drafts are no memories: they have no row in the registry and are never indexed.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable

from gateway.clock import now_ms
from gateway.errors import AlreadyExists, ChangedElsewhere, GatewayError, Unavailable
from gateway.importer.importer import Importer
from gateway.importer.write import place
from gateway.ledger import Transaction, journal, registry
from gateway.ledger.journal import Actor, Intent, Version
from gateway.ledger.registry import FileRow
from gateway.notes.text import etag_of
from gateway.vault.files import FileRead

_NAMES = 100
GATEWAY = Actor("gateway", "Memory Gateway", "gateway@memory.local", "gateway")


class DraftFiles:
    """Reads and writes the files of drafts. Call its methods with the importer's lock held."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._files = importer.files
        self._ledger = importer.ledger

    def read(self, path: str) -> FileRead | None:
        """A draft's file as it is now; None where there is none.

        Raises:
            BadPath, Unavailable: it cannot be read.
        """
        return self._files.read(path)

    def exists(self, path: str) -> bool:
        """Whether a regular file stands at a path."""
        return self._files.stat(path) is not None

    def create(self, review_id: str, path: str, data: bytes) -> str:
        """Write a new file, under the first free name like the given one. Returns its path."""
        stem = path.removesuffix(".md")
        for number in range(1, _NAMES):
            name = path if number == 1 else f"{stem} {number}.md"
            staged = f"int_{uuid.uuid4().hex}"
            try:
                self._files.create(name, data, staged)
            except AlreadyExists:
                found = self._files.read(name)
                if found is not None and found.data == data:
                    return name  # written before a crash
                continue
            return name
        raise Unavailable(f"There is no free name for the draft {review_id}.", file=path)

    def intent(self, review_id: str, path: str, base_etag: str, data: bytes | None) -> Intent:
        """A journal entry for replacing a draft's file, or for taking it away (`data` None)."""
        new = None if data is None else etag_of(data)
        op = "delete" if data is None else "update"
        return Intent(f"int_{uuid.uuid4().hex}", op, review_id, path, base_etag, new, data, GATEWAY, {})

    def carry_out(self, intent: Intent) -> None:
        """Do to the file what a written-down intent says; where that fails, the intent is gone.

        Raises:
            ChangedElsewhere: the file has other bytes by now; it is as it was found.
        """
        try:
            place(self._importer, intent)
        except (GatewayError, OSError) as error:
            with self._ledger.write() as tx:
                journal.drop(tx, [intent.id])
            if isinstance(error, OSError):
                raise Unavailable(f"The vault cannot be written: {error.strerror}.", file=intent.path) from error
            raise

    def rewrite(
        self, review_id: str, path: str, base_etag: str, data: bytes, *, settle: Callable[[Transaction], None]
    ) -> None:
        """Replace a draft's file; `settle` records it in the transaction that also settles the intent.

        Raises:
            ChangedElsewhere: the file has other bytes than `base_etag` by now.
        """
        intent = self.intent(review_id, path, base_etag, data)
        with self._ledger.write() as tx:
            journal.begin(tx, [intent])
        self.carry_out(intent)
        with self._ledger.write() as tx:
            settle(tx)
            self.know(tx, path)
            journal.settle(tx, [intent.id])

    def relocate(
        self,
        review_id: str,
        path: str,
        base_etag: str,
        new_path: str,
        data: bytes,
        *,
        settle: Callable[[Transaction, str], None],
    ) -> str:
        """Write a draft anew under another path, then take the old file away if it still is as it was read.

        Returns:
            The new path. Where the old file was changed meanwhile it stays, for the person to look at.
        """
        created = self.create(review_id, new_path, data)
        intent = self.intent(review_id, path, base_etag, None)
        with self._ledger.write() as tx:
            settle(tx, created)
            self.know(tx, created)
            journal.begin(tx, [intent])
        with contextlib.suppress(ChangedElsewhere):
            self.carry_out(intent)
        with self._ledger.write() as tx:
            self.know(tx, path)
            journal.settle(tx, [intent.id])
        return created

    def know(self, tx: Transaction, path: str) -> None:
        """Remember a draft's file as it is now, so that a scan reads it again only when it changed."""
        found = self._files.read(path)
        if found is None:
            self.forget(tx, path)
            return
        registry.save_files(tx, [FileRow(path, None, found.etag, *found.stat_key)])
        self._importer.seen[path] = found.stat_key
        self._importer.absence.missing.pop(path, None)

    def forget(self, tx: Transaction, path: str) -> None:
        """The file is not there any more."""
        registry.drop_files(tx, [path])
        self._importer.seen.pop(path, None)
        self._importer.absence.missing.pop(path, None)

    def record(
        self,
        tx: Transaction,
        review_id: str,
        path: str,
        data: bytes | None,
        *,
        actor: Actor,
        old_path: str | None = None,
    ) -> None:
        """Give a version of a draft to git; the same text at the same path is given once."""
        known = journal.history(tx, review_id)
        newest = known[0] if known else None
        etag = None if data is None else etag_of(data)
        if newest is not None and newest.etag == etag and newest.path == path and newest.op != "delete":
            return
        moved = old_path is not None and old_path != path
        at = now_ms()
        quiet = int(self._importer.settings.git.quiet_seconds * 1000) if actor.kind == "person" else 0
        kept = actor.kind != "person" or self._importer.settings.git.commit_people == "auto"
        version = Version(
            key=uuid.uuid4().hex,
            note_id=review_id,
            version=(newest.version if newest else 0) + 1,
            op="delete" if data is None else "move" if moved else "write",
            path=path,
            old_path=old_path if moved else None,
            etag=etag,
            author_name=actor.name,
            author_email=actor.email,
            actor=actor.label,
            at=at,
            not_before=at + quiet,
            state="pending" if kept else "skipped",
            review_id=review_id,
        )
        journal.record_versions(tx, [(version, data if kept else None)])

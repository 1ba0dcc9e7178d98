"""At start: each write that was begun and not settled is finished or taken back, by comparing hashes."""

from __future__ import annotations

from gateway import log
from gateway.errors import AlreadyExists, BadPath, ChangedElsewhere, GatewayError, TooLarge
from gateway.importer.importer import Importer
from gateway.importer.plan import claim_of
from gateway.importer.write import as_written, moved_from, place, settle
from gateway.ledger import idempotency, journal
from gateway.ledger.journal import Intent
from gateway.notes.text import etag_of

_LOG = log.get("recovery")


def recover(importer: Importer) -> tuple[int, int]:
    """Replay or roll back every open intent. Returns how many were finished and how many dropped.

    An intent whose file cannot be looked at right now stays for the next time; what it swapped out stays with it.
    """
    with importer.lock:
        with importer.ledger.read() as tx:
            begun = journal.open_intents(tx, "prepared")
        done = [_recover_one(importer, intent) for intent in begun]
        _drop_strays(importer)
    if begun:
        _LOG.info("interrupted writes recovered", finished=done.count(True), dropped=done.count(False))
    return done.count(True), done.count(False)


def _recover_one(importer: Importer, intent: Intent) -> bool | None:
    try:
        stands = _recover(importer, intent)
    except (AlreadyExists, BadPath, ChangedElsewhere, TooLarge) as error:
        _LOG.warning("an interrupted write was dropped", path=intent.path, reason=error.detail)
        stands = False
    except (GatewayError, OSError) as error:
        _LOG.warning("an interrupted write waits", path=intent.path, reason=str(error)[:200])
        return None
    if stands:
        settle(importer, [(intent, as_written(importer, intent))])
        return True
    with importer.ledger.write() as tx:
        idempotency.abandon(tx, intent.id)
        journal.drop(tx, [intent.id])
    importer.look_again(intent.path)
    return False


def _recover(importer: Importer, intent: Intent) -> bool:
    """Whether the write stands on disk now."""
    files = importer.files
    found = files.read(intent.path)
    spare = files.spare(intent.id)
    on_disk = found.etag if found else None
    swapped_out = etag_of(spare) if spare is not None else None
    match intent.op:
        case "create":
            return _recover_create(importer, intent, on_disk)
        case "update":
            return _recover_update(importer, intent, on_disk, swapped_out)
        case "move":
            return _recover_move(importer, intent, on_disk)
        case _:
            return _recover_delete(importer, intent, on_disk, swapped_out)


def _recover_create(importer: Importer, intent: Intent, on_disk: str | None) -> bool:
    assert intent.body is not None
    if on_disk is not None and on_disk != intent.new_etag and importer.files.spare(intent.id) == intent.body:
        on_disk = None if importer.files.discard_part(intent.path, intent.body) else on_disk
    if on_disk is None:
        place(importer, intent)
        return True
    importer.files.drop_spare(intent.id)
    return on_disk == intent.new_etag or claim_of(importer.observe(intent.path)) == intent.note_id


def _recover_update(importer: Importer, intent: Intent, on_disk: str | None, swapped_out: str | None) -> bool:
    files = importer.files
    if swapped_out is None or swapped_out == intent.new_etag:  # not swapped, or on a disk that cannot exchange
        if on_disk == intent.base_etag:
            place(importer, intent)
            return True
        files.drop_spare(intent.id)
        return on_disk == intent.new_etag
    if swapped_out == intent.base_etag:  # swapped; whatever stands there now came after our text
        return True
    if on_disk == intent.new_etag:  # we swapped out a person's save that we had not seen: it goes back
        files.undo_exchange(intent.id, intent.path, on_disk)
        return False
    if on_disk != swapped_out:
        files.give_back(intent.id, intent.path)
    return False


def _recover_move(importer: Importer, intent: Intent, on_disk: str | None) -> bool:
    before = importer.files.read(moved_from(intent))
    if on_disk is None and before is not None and before.etag == intent.base_etag:
        place(importer, intent)
        return True
    return on_disk == intent.new_etag and before is None


def _recover_delete(importer: Importer, intent: Intent, on_disk: str | None, swapped_out: str | None) -> bool:
    if swapped_out is not None and swapped_out != intent.base_etag:
        importer.files.give_back(intent.id, intent.path)
        return False
    if on_disk is None:
        return swapped_out is not None
    if swapped_out is None and on_disk == intent.base_etag:
        place(importer, intent)
        return True
    return False


def _drop_strays(importer: Importer) -> None:
    """Staged files whose intent is gone were never answered for."""
    with importer.ledger.read() as tx:
        kept = {intent.id for state in ("prepared", "applied") for intent in journal.open_intents(tx, state)}
    for name in importer.files.spares():
        if name not in kept:
            importer.files.drop_spare(name)

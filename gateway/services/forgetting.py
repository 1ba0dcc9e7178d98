"""Forgetting one memory: everywhere it stood, with a report of each place; and having back what was forgotten.

Design section 8, seed 002. Only hashes stay (`gateway.ledger.tombstones`); the audit keeps ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from gateway import log
from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import NOWHERE
from gateway.errors import GatewayError, Invalid, NotAllowed, NotFound
from gateway.importer.apply import FORGOTTEN
from gateway.importer.drafts import GATEWAY, DraftFiles
from gateway.importer.parts import Parts
from gateway.importer.plan import claim_of
from gateway.importer.rows import HELD
from gateway.importer.write import Order
from gateway.ledger import Transaction, audit, erasure, idempotency, journal, problems, registry, reviews, tombstones
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.notes.text import content_hash, normalise
from gateway.services import memories, policy, versions
from gateway.services.authors import actor_of
from gateway.services.lookup import missing
from gateway.services.proposing import Origin, propose_archive
from gateway.services.records import DONE, PENDING, Deleted, Erased, InReview, Written, content_of
from gateway.services.requests import Precondition

_LOG = log.get("forgetting")
IN_GIT = "remains in git history"
# Shorter texts are said by chance.
_LEAST_QUOTED = 8
# Deleted rows stay in old files of the index and in the ledger's log until these are compacted.
IN_FILES = "may remain in unused pages until compaction; a purge compacts at once"
IN_BACKUPS = "remains in backups made before; the tombstone holds it back"


def forget(
    principal: Principal,
    parts: Parts,
    note_id: str,
    precondition: Precondition,
    *,
    alone: bool = False,
    claim: Claim | None = None,
) -> Deleted | InReview | FirstAnswer:
    """Forget a memory: file, row, index entry, drafts, feedback, words in conversations. Hash-only tombstones keep it
    from coming back.

    Other memories of its namespace with the same text are forgotten with it: their files stay, and are listed as
    problems. What a person wrote or accepted an agent can only propose to retire.

    Args:
        alone: forget this one only, though others say the same.

    Raises:
        NotFound: there is no such memory for this principal.
        ChangedElsewhere: the precondition does not hold; carries the current etag and a diff.
        NotAllowed: the note is one of the user's own, read-only.
    """
    context = guard.identify(parts.ledger, principal)
    with parts.importer.lock:
        if (first := memories.recalled(parts, claim)) is not None:
            return first
        row, decision = memories.current(principal, parts, note_id)
        read = parts.files.read(row.path)
        precondition.check(
            row, lambda wanted: versions.explain_difference(parts, row, read.data if read else b"", wanted)
        )
        entry = guard.entry(
            principal, "delete", "memory", target_id=row.note_id, namespace=row.namespace, decision=decision
        )
        with parts.ledger.read() as tx:
            why = policy.for_change(tx, parts.settings.review, row, agent_id=context.agent_id, texts=())
        if why is not None:
            text = content_of(read.data) if read else ""
            return propose_archive(parts, row, text, Origin(context, entry, why, claim))
        others = _others(parts, row)
        # An archived copy is tidied away; the memory that goes on saying the same is not meant.
        alone = alone or (row.status == "archived" and others != [])
        quoting = () if alone or read is None else _quoting_drafts(parts, row, content_of(read.data))
        order = Order(
            "delete", row.note_id, row.path, row.etag, None, actor_of(context), entry, False, claim,
            alone=alone, drafts=quoting,
        )  # fmt: skip
        parts.writes.write(order)
        finish(parts)
        twins = [] if alone else others
        _list_twins(parts, twins)
        answer = _answer(parts, row.note_id)
        if claim is not None:
            with parts.ledger.write() as tx:
                idempotency.amend(tx, claim, asdict(answer))
    parts.on_forgotten([row.note_id, *(one.note_id for one in twins)])
    parts.wake()
    return answer


def report(parts: Parts, note_id: str) -> list[Erased]:
    """What became of a forgotten memory at each place where it stood."""
    with parts.ledger.read() as tx:
        left = erasure.remains(tx, note_id)
        known = erasure.erasure(tx, note_id)
    committed = left.committed > 0 or (left.paths != () and parts.history.holds(left.paths))
    in_git = IN_GIT if committed else PENDING if left.uncommitted else DONE
    found = {
        "file": DONE,
        "spare copy": PENDING if left.spares else DONE,
        "ledger": DONE,
        "feedback": DONE,
        "conversations": DONE,
        "caches": DONE,
        "drafts": PENDING if left.drafts else DONE,
        "index": PENDING if left.index_rows else DONE,
        "git": in_git,
    }
    if parts.settings.git.remote is not None:
        found["remote"] = in_git
    if known is None or known.purged_at is None:
        found["database files"] = IN_FILES
        found["backups"] = IN_BACKUPS
    return [Erased(place, state) for place, state in found.items()]


def erasure_of(principal: Principal, parts: Parts, note_id: str) -> Deleted:
    """The erasure report of a memory that was forgotten, as things stand now.

    Raises:
        NotFound: no such memory was forgotten, or none of this principal's.
    """
    with parts.ledger.read() as tx:
        known = erasure.erasure(tx, note_id)
        resource = NOWHERE
        if known is not None:
            resource = replace(guard.resource_at(tx, parse_namespace(known.namespace)), visibility=known.visibility)
    guard.check(parts.ledger, principal, "read", resource, missing(note_id))
    if known is None:
        raise missing(note_id)
    return _answer(parts, note_id)


def finish(parts: Parts) -> int:
    """Take the files of forgotten drafts out of the vault; what a crash left undone as well. Returns how many."""
    files = DraftFiles(parts.importer)
    done = 0
    with parts.importer.lock:
        with parts.ledger.read() as tx:
            waiting = erasure.forgotten_drafts(tx)
        for review_id, path in waiting:
            try:
                _take_away(parts, files, review_id, path)
                done += 1
            except (GatewayError, OSError) as error:
                _LOG.warning("a forgotten draft is taken away later", review=review_id, reason=type(error).__name__)
    return done


def undo(principal: Principal, parts: Parts, path: str) -> Written:
    """Have a forgotten text back whose file stands in the vault again: a person's explicit wish, and audited.

    Only files that are listed as such a problem are looked at: a path is a wish from outside.

    Raises:
        NotFound: no forgotten text stands there, or not this principal's.
        NotAllowed: agents and readers may not.
        Invalid: the note has another problem.
    """
    if principal.agent_id is not None or principal.role not in ("admin", "user"):
        raise NotAllowed("Only people have forgotten texts back.", advice="Use a user's key.")
    nothing = NotFound("No forgotten text stands there.", field="path", advice="See the problems of kind `forgotten`.")
    with parts.importer.lock:
        with parts.ledger.read() as tx:
            held = [row for row in problems.listed(tx) if row.path == path and row.kind == FORGOTTEN]
            place = parts.importer.places.place_of(path) if held else None
            resource = guard.resource_at(tx, place.namespace) if place is not None else NOWHERE
        decision = guard.check(parts.ledger, principal, "write", resource, nothing)
        if place is None:
            raise nothing
        entry = guard.entry(principal, "release_tombstone", "memory", namespace=str(place.namespace), decision=decision)
        with parts.ledger.write() as tx:
            _release(tx, parts, path, str(place.namespace), principal)
            audit.write(tx, entry)
        parts.importer.import_paths([path], again=True, settled=True)
        with parts.ledger.read() as tx:
            row = registry.notes_by_path(tx, [path]).get(path)
    parts.wake()
    if row is None or row.status == HELD:
        raise Invalid("The note has another problem; see /v1/problems.", field="path")
    with parts.ledger.write() as tx:
        erasure.undone(tx, row.note_id)
    return versions.written(parts, row)


def _release(tx: Transaction, parts: Parts, path: str, namespace: str, principal: Principal) -> None:
    seen = parts.importer.observe(path)
    if seen.parsed is None:
        return
    who = f"user:{principal.user_id or parts.settings.vault.owner}"
    tombstones.release(
        tx, namespace, content_hash=content_hash(seen.parsed.body), memory_id=claim_of(seen) or "", by=who
    )


def _others(parts: Parts, row: NoteRow) -> list[NoteRow]:
    with parts.ledger.read() as tx:
        return [
            one for one in registry.others_saying(tx, row.namespace, row.content_hash) if one.note_id != row.note_id
        ]


def _quoting_drafts(parts: Parts, row: NoteRow, text: str) -> tuple[str, ...]:
    """Open drafts for the same owner that say the same words among others, such as a line for a profile: they go too.

    One that cannot be read is left: nobody is shown it, and nothing else must wait for it.
    """
    said = normalise(text)
    if len(said) < _LEAST_QUOTED:
        return ()
    with parts.ledger.read() as tx:
        home = row.namespace.rpartition("/")[0] + "/"
        waiting = [one for one in reviews.pending(tx) if one.namespace.startswith(home)]
    quoting: list[str] = []
    for one in waiting:
        try:
            draft = parts.files.read(one.path)
        except GatewayError as error:
            _LOG.warning("a draft cannot be read", review=one.id, reason=error.detail)
            continue
        if draft is not None and said in normalise(content_of(draft.data)):
            quoting.append(one.id)
    return tuple(quoting)


def _list_twins(parts: Parts, twins: Sequence[NoteRow]) -> None:
    """The files of twins are the person's and stay; they are listed as problems, at the next scan at the latest."""
    if not twins:
        return
    try:
        parts.importer.import_paths([one.path for one in twins], again=True, settled=True)
    except GatewayError as error:
        _LOG.warning("files that say the same are listed later", reason=error.detail)


def _take_away(parts: Parts, files: DraftFiles, review_id: str, path: str) -> None:
    read = files.read(path)
    if read is not None:
        intent = files.intent(review_id, path, read.etag, None)
        with parts.ledger.write() as tx:
            journal.begin(tx, [intent])
        files.carry_out(intent)
        with parts.ledger.write() as tx:
            journal.settle(tx, [intent.id])
    with parts.ledger.write() as tx:
        files.record(tx, review_id, path, None, actor=GATEWAY)
        files.forget(tx, path)
        problems.replace_problems(tx, {path}, [])
        erasure.draft_gone(tx, review_id)


def _answer(parts: Parts, note_id: str) -> Deleted:
    return Deleted(True, note_id, versions.deletion_receipt(), report(parts, note_id))

"""What happens to drafts in the vault: a person edits, decides, moves, copies, breaks or deletes them there.

Every file of `Reviews/` that changed comes here, from the watcher and from the scan alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway import log
from gateway.clock import now_ms
from gateway.errors import BadNote, BadPath, GatewayError, Invalid, Unavailable
from gateway.importer.drafts import DraftFiles
from gateway.importer.parts import Parts
from gateway.importer.screening import screened
from gateway.ledger import problems, registry, reviews
from gateway.ledger.audit import AuditEntry
from gateway.ledger.problems import ProblemRow
from gateway.ledger.reviews import ACCEPTED, FORGOTTEN, PENDING, REJECTED, WITHDRAWN, Review
from gateway.notes import drafts
from gateway.notes.drafts import Decision, DraftNote, folder_of_draft, read_draft
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import ParsedNote, parse
from gateway.notes.text import content_hash, new_memory_id
from gateway.skills.deciding import Decider
from gateway.skills.import_from_obsidian import DecidedDraft, decide
from gateway.vault.files import FileRead

_LOG = log.get("reviews")
_AGAIN_MS = 1_000
_BY_FOLDER: dict[str, Decision] = {drafts.ACCEPTED: "accept", drafts.REJECTED: "reject"}


@dataclass(slots=True)
class _Look:
    """One look at the files of drafts; `changed` tells whether problems did."""

    parts: Parts
    files: DraftFiles
    settled: bool
    changed: bool = False


def take_in(parts: Parts, paths: Sequence[str], settled: bool) -> bool:
    """Look at files of `Reviews/` that changed, and carry out what a person decided there.

    Args:
        settled: do not wait for files that changed a moment ago.

    Returns:
        Whether the list of problems changed.
    """
    look = _Look(parts, DraftFiles(parts.importer), settled)
    for path in _arrivals_first(parts, paths):
        try:
            _take_in_one(look, path)
        except Unavailable:
            parts.importer.later[path] = now_ms() + _AGAIN_MS
        except (GatewayError, OSError) as error:
            _LOG.warning("a draft is looked at later", path=path, reason=str(error)[:200])
            parts.importer.later[path] = now_ms() + 10 * _AGAIN_MS
    return look.changed


def decider_in_vault(parts: Parts, via: str = "vault", reason: str = "decided in the vault") -> Decider:
    """The person who works in the vault itself: its owner."""
    owner = parts.settings.vault.owner
    entry = AuditEntry(
        action="accept",
        target_type="memory",
        target_id=None,
        namespace=None,
        decision="allow",
        reason=reason,
        request_id=None,
        key_id=None,
        actor_user_id=owner,
        actor_agent_id=None,
    )
    return Decider(f"user:{owner}", parts.importer.person(), via, entry)


def _arrivals_first(parts: Parts, paths: Sequence[str]) -> list[str]:
    """A file that arrived is looked at before one that left: a move is not taken for a deletion."""
    return sorted(dict.fromkeys(paths), key=lambda path: (parts.files.stat(path) is None, path))


def _take_in_one(look: _Look, path: str) -> None:
    parts = look.parts
    parts.importer.later.pop(path, None)
    try:
        read = look.files.read(path)
    except BadPath:
        read = None
    if read is None:
        _absent(look, path)
        return
    if not look.settled and _too_fresh(parts, path, read):
        return
    parsed = screened(parse(read.data, max_bytes=parts.files.max_bytes), parts.settings.secrets)
    with parts.ledger.read() as tx:
        here = reviews.of_paths(tx, [path]).get(path)
    try:
        draft = read_draft(parsed)
    except BadNote as error:
        _unreadable(look, path, here, parsed, error)
        return
    with parts.ledger.read() as tx:
        review = reviews.review(tx, draft.review_id)
    if review is None:
        review = _adopted(look, path, read, draft, parsed)
        if review is None:
            return
    if review.status == FORGOTTEN:
        message = "What this draft says was forgotten on request; it is not proposed again."
        _say(look, path, None, _problem("forgotten", message, "Delete the draft."))
    elif review.status in (ACCEPTED, REJECTED):
        _decided_before(look, path, read, review)
    else:
        _open(look, path, read, review, draft)


def _open(look: _Look, path: str, read: FileRead, review: Review, draft: DraftNote) -> None:
    if path != review.path and look.files.exists(review.path):
        _say(look, path, review, _problem("duplicate-draft", f"This is a copy of the draft `{review.path}`."))
        look.parts.importer.later[path] = now_ms() + 5 * _AGAIN_MS  # a sync tool may copy first and delete then
        return
    review = _seen(look, path, read, review)
    wanted = _decision(path, draft)
    if isinstance(wanted, ProblemRow):
        _say(look, path, review, wanted)
        return
    if wanted is None:
        foreign = _foreign_claims(review, draft)
        _say(look, path, review, *foreign)
        return
    try:
        done = decide(look.parts, DecidedDraft(review.id, wanted), decider_in_vault(look.parts))
    except Unavailable:
        raise
    except GatewayError as error:
        with look.parts.ledger.read() as tx:
            now = reviews.review(tx, review.id) or review
        row = ProblemRow(
            "", error.code, error.detail, error.advice or "Look at the draft again.", error.line, None, None, 0
        )
        _say(look, now.path, now, row)
        if now.path != path:
            _say(look, path, now)
        _LOG.info("a decision in the vault waits", review=review.id, reason=error.code)
        return
    _clear(look, {path, done.review.path})


def _seen(look: _Look, path: str, read: FileRead, review: Review) -> Review:
    """Record where a draft stands and what it says now; whoever moved or changed it was a person."""
    if review.path == path and review.etag == read.etag and review.status == PENDING:
        with look.parts.ledger.write() as tx:
            look.files.know(tx, path)
        return review
    moved_from = review.path if review.path != path else None
    changed = review.etag != read.etag
    fresh = replace(review, path=path, etag=read.etag, status=PENDING, updated_at=now_ms())
    fresh = replace(fresh, branch_etag=None) if changed else fresh
    with look.parts.ledger.write() as tx:
        reviews.save(tx, fresh)
        if moved_from is not None:
            look.files.forget(tx, moved_from)
            look.changed |= problems.replace_problems(tx, {moved_from}, [])
        person = look.parts.importer.person()
        look.files.record(tx, review.id, path, read.data, actor=person, old_path=moved_from)
        look.files.know(tx, path)
    return fresh


def _decision(path: str, draft: DraftNote) -> Decision | ProblemRow | None:
    """What the folder and the property say together; None while they say nothing."""
    folder = folder_of_draft(path)
    by_folder = _BY_FOLDER.get(folder or "")
    if by_folder is not None and draft.decision is not None and by_folder != draft.decision:
        return _problem(
            "contradictory-decision",
            f"The draft lies in `{folder}`, but its `decision` says `{draft.decision}`.",
            "Change `decision`, or move the draft.",
        )
    return by_folder or draft.decision


def _decided_before(look: _Look, path: str, read: FileRead, review: Review) -> None:
    """A decided draft may be moved about and edited; a copy in the queue decides nothing."""
    copied = path != review.path and look.files.exists(review.path)
    if not copied:
        with look.parts.ledger.write() as tx:
            if (path, read.etag) != (review.path, review.etag):
                reviews.save(tx, replace(review, path=path, etag=read.etag))
                person = look.parts.importer.person()
                look.files.record(tx, review.id, path, read.data, actor=person, old_path=review.path)
            if path != review.path:
                look.files.forget(tx, review.path)
            look.files.know(tx, path)
    if folder_of_draft(path) == drafts.QUEUE:
        message = f"The draft was {review.status} already ({review.path}); this text is not part of the memory."
        _say(look, path, review, _problem("already-decided", message, "Change the memory itself, then delete this."))
    else:
        _clear(look, {path})
        with look.parts.ledger.write() as tx:
            look.files.know(tx, path)


def _absent(look: _Look, path: str) -> None:
    """A draft that a person deletes is put aside: not accepted, and free to be proposed again."""
    parts, guard = look.parts, look.parts.importer.absence
    with parts.ledger.read() as tx:
        review = reviews.of_paths(tx, [path]).get(path)
    if review is not None and review.status == PENDING:
        if not guard.provable(path):
            return
        since = guard.missing.setdefault(path, now_ms())
        wait = int(parts.settings.watch.absence_seconds * 1000)
        if now_ms() - since < wait:
            parts.importer.later[path] = since + wait + 1
            return
    with parts.ledger.write() as tx:
        if review is not None:
            look.files.record(tx, review.id, path, None, actor=parts.importer.person())
            if review.status == PENDING:
                reviews.save(tx, replace(review, status=WITHDRAWN, updated_at=now_ms()))
        look.files.forget(tx, path)
        look.changed |= problems.replace_problems(tx, {path}, [])


def _unreadable(look: _Look, path: str, here: Review | None, parsed: ParsedNote, error: BadNote) -> None:
    """A draft whose properties cannot be read waits as it is; another note in these folders is no draft."""
    open_draft = here is not None and here.status in (PENDING, WITHDRAWN)
    secret = next((one for one in parsed.problems if one.kind == "secret"), None)
    if secret is not None:
        _say(look, path, here, _problem("secret", secret.message, secret.advice, secret.line))
        return
    if open_draft or "review_id" in parsed.text[:4_000]:
        advice = "Mend it; or put the properties back as git has them."
        _say(look, path, here, _problem("broken-draft", error.detail, advice, error.line, error.field))
        return
    if folder_of_draft(path) == drafts.QUEUE and parsed.readiness != "empty":
        advice = "Move it to another folder; memories belong in `Memories/LongTerm`."
        _say(
            look, path, None, _problem("no-draft", "This note in the review queue is no draft of the gateway.", advice)
        )
        return
    _clear(look, {path})
    with look.parts.ledger.write() as tx:
        look.files.know(tx, path)


def _adopted(look: _Look, path: str, read: FileRead, draft: DraftNote, parsed: ParsedNote) -> Review | None:
    """A draft that the ledger does not know: the vault alone must bring everything back."""
    try:
        namespace = str(parse_namespace(draft.target_namespace))
        with look.parts.ledger.read() as tx:
            target = registry.note(tx, draft.target) if draft.target else None
        if draft.target is not None and target is not None and target.namespace != namespace:
            raise Invalid("`target_namespace` is not where the target stands.", field="target_namespace")
    except Invalid as error:
        _say(
            look,
            path,
            None,
            _problem("broken-draft", error.detail, "Correct it, or delete the draft.", None, error.field),
        )
        return None
    review = _row_of(path, read, draft, parsed, namespace)
    with look.parts.ledger.write() as tx:
        reviews.save(tx, review)
        look.files.record(tx, review.id, path, read.data, actor=look.parts.importer.person())
        look.files.know(tx, path)
    return review


def _row_of(path: str, read: FileRead, draft: DraftNote, parsed: ParsedNote, namespace: str) -> Review:
    content = content_hash(draft.text)
    decided = parsed.properties.get("decided_by")
    status = {drafts.ACCEPTED: ACCEPTED, drafts.REJECTED: REJECTED}.get(folder_of_draft(path) or "", PENDING)
    if not decided:
        status = PENDING
    agent = draft.proposed_by.removeprefix("agent:") if draft.proposed_by.startswith("agent:") else None
    confidence = draft.memory.get("confidence")
    at = now_ms()
    return Review(
        id=draft.review_id,
        proposal=draft.proposal,
        status=status,
        subject=f"memory:{draft.target}" if draft.target else f"text:{namespace}:{content}",
        namespace=namespace,
        target_id=draft.target,
        memory_id=draft.target or new_memory_id(),
        title=str(draft.memory.get("summary") or path.rpartition("/")[2].removesuffix(".md")),
        confidence=float(confidence) if isinstance(confidence, int | float) else 1.0,
        path=path,
        etag=read.etag,
        written_etag="",
        base={draft.target: draft.target_etag} if draft.target and draft.target_etag else {},
        content_hash=content,
        proposed_by=draft.proposed_by or "user:unknown",
        user_id=None,
        agent_id=agent,
        why="found in the vault",
        evidence=list(draft.evidence),
        candidate_id=None,
        branch_sha=None,
        branch_etag=None,
        pushed_sha=None,
        decided_by=str(decided) if decided else None,
        decided_via="vault" if decided else None,
        decision_reason=None,
        created_at=at,
        updated_at=at,
        decided_at=at if decided else None,
    )


def _foreign_claims(review: Review, draft: DraftNote) -> list[ProblemRow]:
    """What a draft is about is the ledger's to say; other claims in its properties change nothing."""
    claims = (
        ("target_namespace", draft.target_namespace, review.namespace),
        ("proposal", draft.proposal, review.proposal),
        ("target", draft.target or "", review.target_id or ""),
    )
    return [
        _problem(
            "foreign-claim", f"`{name}` was changed; the draft is still about `{known}`.", "Change it back.", None, name
        )
        for name, said, known in claims
        if said != known
    ]


def _too_fresh(parts: Parts, path: str, read: FileRead) -> bool:
    wait = int(parts.settings.watch.settle_seconds * 1000)
    changed_ms = read.stat_key[3] // 1_000_000
    if 0 <= now_ms() - changed_ms < wait and parts.importer.seen.get(path) != read.stat_key:
        parts.importer.later[path] = changed_ms + wait + 1
        return True
    return False


def _problem(
    kind: str, message: str, advice: str = "Delete the copy.", line: int | None = None, field: str | None = None
) -> ProblemRow:
    return ProblemRow("", kind, message, advice, line, field, None, now_ms())


def _say(look: _Look, path: str, review: Review | None, *found: ProblemRow) -> None:
    """State the problems of a draft's file, and remember the file."""
    namespace = review.namespace if review else None
    rows = [replace(row, path=path, namespace=namespace, since=now_ms()) for row in found]
    with look.parts.ledger.write() as tx:
        look.changed |= problems.replace_problems(tx, {path}, rows)
        look.files.know(tx, path)


def _clear(look: _Look, paths: set[str]) -> None:
    with look.parts.ledger.write() as tx:
        look.changed |= problems.replace_problems(tx, paths, [])

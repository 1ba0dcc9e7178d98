"""Step 7, profile evolution: a preference that was said in enough conversations is proposed for the user's profile.

Always a draft, whoever said it and however often: it adds lines, and never changes one that stands there.
"""

from __future__ import annotations

import re

from gateway import log
from gateway.errors import GatewayError, Unavailable
from gateway.importer.rows import HELD
from gateway.ledger import consolidating, registry
from gateway.ledger.dirty import Dirty
from gateway.ledger.registry import NoteRow
from gateway.ledger.reviews import Review
from gateway.notes.drafts import read_draft
from gateway.notes.instruction_like import instruction_like
from gateway.notes.namespace import Namespace
from gateway.notes.note import parse
from gateway.services.fixed_notes import path_of
from gateway.skills.contradiction import contradiction
from gateway.skills.export_to_obsidian import Proposal
from gateway.skills.scoring import is_lasting
from gateway.starter import templates
from gateway.workers.consolidation.report import Failure
from gateway.workers.consolidation.work import (
    LABEL,
    Claim,
    NotNow,
    Pass,
    Seen,
    Stale,
    distinct,
    fingerprint,
    propose_draft,
)

_LOG = log.get("consolidation")
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*\s*$")
_ITEM = re.compile(r"^\s*[-*+]\s+(?P<text>.+?)\s*$")
_PREFERENCES = ("preference", "偏好")
_SECTION = "## Preferences"
_MOST_CHARS = 300


def evolve(run: Pass) -> set[Dirty]:
    """Propose what has become stable, one draft a user and one at least. Returns the work whose claims have to wait."""
    stable = [one for one in run.claims if _is_stable(run, one)]
    run.claims.clear()
    waiting: set[Dirty] = set()
    for number, user_id in enumerate(distinct(one.user_id for one in stable)):
        claims = [one for one in stable if one.user_id == user_id]
        if not (run.budget.more(first=number == 0) and _tried(run, user_id, claims)):
            waiting |= {one.work for one in claims if one.work is not None}
    return waiting


def _tried(run: Pass, user_id: str, claims: list[Claim]) -> bool:
    """Whether the claims of a user have been dealt with; what comes of one user keeps no other out."""
    try:
        _propose(run, user_id, claims)
    except (NotNow, Stale) as error:
        run.report.skipped.append(Failure("profile", user_id, str(error)))
    except Exception as error:
        _LOG.warning("a profile could not be proposed", user=user_id, exc_info=not isinstance(error, GatewayError))
        reason = error.code if isinstance(error, GatewayError) else type(error).__name__
        run.report.failed.append(Failure("profile", user_id, reason))
    else:
        return True
    return False


def _is_stable(run: Pass, one: Claim) -> bool:
    """Said in enough distinct conversations, sure enough, lasting, short, and no order to an agent."""
    return (
        one.sessions >= run.settings.profile_sessions
        and one.confidence >= run.settings.profile_confidence
        and len(one.text) <= _MOST_CHARS
        and "\n" not in one.text
        and is_lasting(one.text)
        and instruction_like(one.text) is None
    )


def with_lines(text: str, lines: list[str]) -> str:
    """A profile's text with list items added at the end of its section on preferences; one is begun where none is."""
    given = text.rstrip("\n").split("\n")
    added = [f"- {line}" for line in lines]
    start = next((number for number, line in enumerate(given) if _is_section(line)), None)
    if start is None:
        return "\n".join([*given, "", _SECTION, "", *added]) + "\n"
    end = next((n for n in range(start + 1, len(given)) if _HEADING.match(given[n])), len(given))
    last = max((n for n in range(start, end) if given[n].strip()), default=start)
    gap = [""] if last == start else []
    return "\n".join([*given[: last + 1], *gap, *added, *given[last + 1 :]]) + "\n"


def _is_section(line: str) -> bool:
    heading = _HEADING.match(line)
    return heading is not None and any(word in heading["title"].casefold() for word in _PREFERENCES)


def _propose(run: Pass, user_id: str, claims: list[Claim]) -> None:
    path = path_of(run.parts, user_id, "profile")
    with run.parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, [path]).get(path)
        etags = {row.note_id: row.etag} if row is not None else {}
        seen = Seen(None, fingerprint(run, tx, user_id), user_id, etags)
        target = row.note_id if row is not None else None
        namespace = str(Namespace("user", user_id, "profile"))
        standing = consolidating.open_draft(tx, namespace, LABEL, target)
        decided = consolidating.decided_drafts(tx, namespace, LABEL)
    if row is not None and (row.status == HELD or row.read_only):
        raise NotNow("the profile has a problem, or is only read")
    present = run.text_of(row) if row is not None else _form()
    if present is None:
        raise Stale("the profile has moved on")
    before = _standing_text(run, standing) if standing is not None else None
    new = _new_lines(run, before or present, claims, decided)
    if not new:
        return
    if standing is not None and row is None:
        raise NotNow("the draft of a first profile waits")
    _draft(run, seen, row, (before or present, present), (new, standing))


def _draft(
    run: Pass, seen: Seen, row: NoteRow | None, texts: tuple[str, str], claims: tuple[list[Claim], Review | None]
) -> None:
    (text, present), (new, standing) = texts, claims
    user_id = seen.user_id
    evidence = distinct((*(standing.evidence if standing else ()), *(part for one in new for part in one.evidence)))
    wanted = Proposal(
        "update" if row is not None else "create",
        str(Namespace("user", user_id, "profile")),
        with_lines(text, [one.text for one in new]).strip("\n"),
        LABEL,
        _why(present, new, user_id),
        properties={} if row is not None else {"type": "profile", "source": "conversation"},
        target_id=row.note_id if row is not None else None,
        evidence=evidence,
        user_id=user_id,
    )
    propose_draft(run, seen, wanted, extend=True)


def _form() -> str:
    """What a profile begins with, where the user has none."""
    return parse((templates() / "Profile.md").read_bytes()).body.strip("\n")


def _new_lines(run: Pass, text: str, claims: list[Claim], decided: list[tuple[str, list[str]]]) -> list[Claim]:
    """What neither the profile nor a draft that a person decided says already, each once."""
    items = [match["text"] for line in text.split("\n") if (match := _ITEM.match(line))]
    past = [match["text"] for path, _ in decided for line in _lines_of(run, path) if (match := _ITEM.match(line))]
    known = {one for _, evidence in decided for one in evidence}
    new: list[Claim] = []
    for one in claims:
        said = [*items, *past, *(other.text for other in new)]
        if known.issuperset(one.evidence):
            continue  # nothing new was said since a person decided
        if not any(run.compared(one.text, other, one.user_id).verdict == "same" for other in said):
            new.append(one)
    return new


def _lines_of(run: Pass, path: str) -> list[str]:
    try:
        read = run.parts.files.read(path)
    except Unavailable:
        return []
    return read.data.decode("utf-8", "replace").split("\n") if read is not None else []


def _standing_text(run: Pass, standing: Review) -> str | None:
    if standing.proposed_by != LABEL or standing.etag != standing.written_etag:
        raise NotNow("another draft of the profile waits")
    read = run.parts.files.read(standing.path)
    if read is None or read.etag != standing.etag:
        raise NotNow("a person is editing the draft of the profile")
    return read_draft(parse(read.data)).text


def _why(present: str, new: list[Claim], user_id: str) -> str:
    said = "; ".join(f"“{one.text}” in {one.sessions} conversations" for one in new)
    items = [match["text"] for line in present.split("\n") if (match := _ITEM.match(line))]
    against = [item for one in new for item in items if contradiction(one.text, item, own_name=user_id) is not None]
    contrary = f" It contradicts what stands there: “{against[0]}”." if against else ""
    return f"Said repeatedly: {said}. Accepting adds it to the profile.{contrary}"

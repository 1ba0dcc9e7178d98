"""What goes with a forgotten memory, in the transaction that removes its row; and what its erasure report is made of.

Tombstones, feedback, counts, drafts, candidates and the words in episodes go; the audit and the lineage keep ids only.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import feedback, registry, tombstones
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.registry import BLANK, NoteRow
from gateway.ledger.reviews import FORGOTTEN, by_id, save
from gateway.ledger.schema import (
    candidates,
    decisions,
    episodes,
    idempotency,
    index_removals,
    intents,
    reviews,
    sessions,
    versions,
)
from gateway.ledger.schema_upkeep import erasures
from gateway.notes.text import content_hash

REDACTED = "[forgotten]"
# Shorter words are said by chance; nobody's conversation is cut up for them.
_LEAST_CHARS = 4
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Erasure:
    """A memory that was forgotten; times in ms since 1970 UTC. `job_id` names the clear job that did it, if one did."""

    note_id: str
    namespace: str
    visibility: str
    deleted_at: int
    purged_at: int | None
    job_id: str | None


@dataclass(frozen=True, slots=True)
class Remains:
    """Where something of a forgotten memory still is: numbers, no text.

    Attributes:
        paths: where texts stood that the gateway itself did not commit: git is to be asked whether a person did.
    """

    spares: int
    index_rows: int
    drafts: int
    committed: int
    uncommitted: int
    paths: tuple[str, ...]


_COLUMNS = [erasures.c[field.name] for field in fields(Erasure)]


def erase(tx: Transaction, row: NoteRow, text: str, *, alone: bool = False, drafts: Collection[str] = ()) -> list[str]:
    """Bury a memory and take away all that the ledger says of it beside its row, and the rows of its twins.

    Args:
        text: what the memory said, to be taken out of conversations; empty where nobody knows.
        alone: its id is buried, its text is not, since another memory goes on saying it.
        drafts: further drafts that quote it.

    Returns:
        The files of the twins: they stay in the vault, to be judged anew when next seen.
    """
    bury(tx, [row], alone=alone)
    forget_drafts(tx, {*_drafts_about(tx, row), *drafts}, of=row.note_id)
    _forget_candidates(tx, row)
    shorten_answers(tx, row.note_id)
    if alone:
        return []
    _redact_conversations(tx, row, text.strip())
    return _drop_twins(tx, row)


def clear(tx: Transaction, row: NoteRow, text: str, job_id: str) -> None:
    """Bury a memory of a scope that a job clears. Conversations go with their user or agent; those of a workspace's
    members stay, without its words."""
    bury(tx, [row], job_id=job_id)
    if row.workspace_id is not None:
        _forget_candidates(tx, row)
        _redact_conversations(tx, row, text.strip())


def bury(tx: Transaction, rows: Sequence[NoteRow], *, job_id: str | None = None, alone: bool = False) -> None:
    """Tombstones for memories, and what their erasure reports begin with; what was said of them goes.

    Args:
        job_id: the clear job that forgets them.
        alone: as for `erase`.
    """
    at = now_ms()
    values: list[dict[str, Any]] = []
    for row in rows:
        buried = None if alone or row.status == BLANK else row.content_hash
        tombstones.bury(tx, row.namespace, content_hash=buried, memory_id=row.note_id)
        feedback.forget(tx, row.note_id)
        named = {"note_id": row.note_id, "namespace": row.namespace, "visibility": row.visibility}
        values.append(named | {"deleted_at": at, "purged_at": None, "job_id": job_id})
    upsert(tx, erasures, values, keys=["note_id"])


def forget_drafts(tx: Transaction, review_ids: Collection[str], *, of: str | None = None) -> None:
    """Drafts are no longer shown; their files go next. What they said goes from the ledger now.

    Args:
        of: the memory that is forgotten, by which a purge finds what git has of them.
    """
    nothing: dict[str, Any] = {"title": "", "why": "", "decision_reason": None, "content_hash": ""}
    for review in by_id(tx, review_ids).values():
        subject = {"subject": f"forgotten:{review.id}", "target_id": review.target_id if of is None else of}
        save(tx, replace(review, status=FORGOTTEN, updated_at=now_ms(), **nothing, **subject))
        tx.execute(sa.delete(decisions).where(decisions.c.review_id == review.id))


def forgotten_drafts(tx: Transaction, limit: int = 256) -> list[tuple[str, str]]:
    """(review id, path) of forgotten drafts whose file still has to go."""
    query = sa.select(reviews.c.id, reviews.c.path).where(reviews.c.status == FORGOTTEN, reviews.c.path != "")
    return [(row[0], row[1]) for row in tx.execute(query.limit(limit))]


def draft_gone(tx: Transaction, review_id: str) -> None:
    """The file of a forgotten draft is gone."""
    tx.execute(sa.update(reviews).where(reviews.c.id == review_id).values(path="", etag="", written_etag=""))


def erasure(tx: Transaction, note_id: str) -> Erasure | None:
    """What is known of a forgotten memory."""
    row = tx.execute(sa.select(*_COLUMNS).where(erasures.c.note_id == note_id)).first()
    return Erasure(*row) if row else None


def everything(tx: Transaction) -> list[Erasure]:
    """All memories that were forgotten."""
    return [Erasure(*row) for row in tx.execute(sa.select(*_COLUMNS))]


def take_over(tx: Transaction, others: Sequence[Erasure]) -> None:
    """Take over what another ledger knows to be forgotten; its purges rewrote another copy of the history."""
    upsert(tx, erasures, [asdict(replace(one, purged_at=None)) for one in others], keys=["note_id"])


def undone(tx: Transaction, note_id: str) -> None:
    """A person has the memory back: there is nothing to report or to purge any more."""
    tx.execute(sa.delete(erasures).where(erasures.c.note_id == note_id))


def unpurged(tx: Transaction) -> list[Erasure]:
    """Forgotten memories whose traces in git's history have not been purged, oldest first."""
    query = sa.select(*_COLUMNS).where(erasures.c.purged_at.is_(None)).order_by(erasures.c.deleted_at)
    return [Erasure(*row) for row in tx.execute(query)]


def remains(tx: Transaction, note_id: str) -> Remains:
    """Where something of a forgotten memory still is."""
    drafts = review_ids(tx, note_id)
    traced = versions.c.note_id.in_([note_id, *drafts])
    with_text = sa.and_(traced, versions.c.op != "delete")
    waiting = sa.and_(reviews.c.id.in_(drafts), reviews.c.path != "")
    not_ours = sa.and_(versions.c.state == "skipped", versions.c.path != "")

    def number(table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
        return tx.scalar(sa.select(sa.func.count()).select_from(table).where(*where)) or 0

    return Remains(
        spares=number(intents, intents.c.note_id.in_([note_id, *drafts])),
        index_rows=number(index_removals, index_removals.c.note_id == note_id),
        drafts=number(reviews, waiting),
        committed=number(versions, with_text, versions.c.sha.is_not(None)),
        uncommitted=number(versions, traced, versions.c.state == "pending"),
        paths=tuple(tx.scalars(sa.select(versions.c.path).where(with_text, not_ours).distinct())),
    )


def review_ids(tx: Transaction, note_id: str) -> list[str]:
    """The drafts that were about a forgotten memory."""
    about = sa.or_(reviews.c.memory_id == note_id, reviews.c.target_id == note_id)
    return list(tx.scalars(sa.select(reviews.c.id).where(about, reviews.c.status == FORGOTTEN)))


def all_drafts(tx: Transaction) -> list[str]:
    """All forgotten drafts."""
    return list(tx.scalars(sa.select(reviews.c.id).where(reviews.c.status == FORGOTTEN)))


def follow_commits(tx: Transaction, moved: Mapping[str, str]) -> None:
    """Git's history was rewritten: commit ids become the new ones.

    Args:
        moved: new commit ids by old ones.
    """
    for column in (versions.c.sha, reviews.c.branch_sha, reviews.c.pushed_sha):
        for (old,) in tx.execute(sa.select(column).where(column.is_not(None)).distinct()).all():
            if (new := moved.get(old)) is not None and new != old:
                tx.execute(sa.update(column.table).where(column == old).values({column.name: new}))


def purged(
    tx: Transaction, note_ids: Collection[str], drafts: Collection[str], *, until: Mapping[str, int] | None = None
) -> None:
    """Git's history no longer has these memories and drafts: their names go from the ledger.

    Args:
        until: of memories that live again, the number of the last version that was forgotten.
    """
    ids = list(note_ids)
    living = until or {}
    nothing = {"path": "", "old_path": None, "sha": None, "state": "skipped", "etag": None}
    gone = [one for one in (*ids, *drafts) if one not in living]
    for start in range(0, len(gone), _AT_ONCE):
        traced = versions.c.note_id.in_(gone[start : start + _AT_ONCE])
        tx.execute(sa.update(versions).where(traced).values(**nothing))
    for note_id, last in living.items():
        earlier = sa.and_(versions.c.note_id == note_id, versions.c.seq <= last)
        tx.execute(sa.update(versions).where(earlier).values(**nothing))
    for start in range(0, len(ids), _AT_ONCE):
        gone = erasures.c.note_id.in_(ids[start : start + _AT_ONCE])
        tx.execute(sa.update(erasures).where(gone).values(purged_at=now_ms()))


def _drop_twins(tx: Transaction, row: NoteRow) -> list[str]:
    """Other memories of the namespace with this text are no longer known; their files are judged anew: the paths."""
    twins = registry.others_saying(tx, row.namespace, row.content_hash)
    registry.drop_files(tx, [one.path for one in twins])
    registry.drop_notes(tx, [one.note_id for one in twins])
    for one in twins:
        feedback.forget(tx, one.note_id)
    return [one.path for one in twins]


def _drafts_about(tx: Transaction, row: NoteRow) -> list[str]:
    """Drafts of this memory, into it, or of the same text."""
    same = sa.and_(reviews.c.namespace == row.namespace, reviews.c.content_hash == row.content_hash)
    about = sa.or_(reviews.c.memory_id == row.note_id, reviews.c.target_id == row.note_id, same)
    found = list(tx.scalars(sa.select(reviews.c.id).where(about, reviews.c.status != FORGOTTEN)))
    # A merge names the memories that it takes in by their hashes.
    taking = sa.select(reviews.c.id, reviews.c.base).where(
        reviews.c.namespace == row.namespace, reviews.c.proposal.in_(["merge", "conflict"])
    )
    taking = taking.where(reviews.c.status != FORGOTTEN)
    found += [one for one, base in tx.execute(taking) if row.note_id in base and one not in found]
    return found


def _forget_candidates(tx: Transaction, row: NoteRow) -> None:
    query = sa.select(candidates.c.id, candidates.c.content, candidates.c.memory_id).where(
        candidates.c.namespace == row.namespace
    )
    gone = [
        one
        for one, content, memory_id in tx.execute(query)
        if memory_id == row.note_id or content_hash(content) == row.content_hash
    ]
    for one in gone:
        tx.execute(sa.delete(candidates).where(candidates.c.id == one))


def _redact_conversations(tx: Transaction, row: NoteRow, text: str) -> None:
    """Conversations of the memory's user, agent or workspace keep their place where they say it, not the words."""
    if len(text) < _LEAST_CHARS:
        return
    owner = next((name for name in ("user_id", "agent_id", "workspace_id") if getattr(row, name) is not None), None)
    if owner is None:
        return
    _redact_episodes(tx, episodes.c[owner] == getattr(row, owner), text)
    told = sa.select(sessions.c.user_id, sessions.c.id, sessions.c.summary).where(
        sessions.c[owner] == getattr(row, owner), sessions.c.summary.contains(text, autoescape=True)
    )
    for user_id, session_id, summary in tx.execute(told).all():
        where = sa.and_(sessions.c.user_id == user_id, sessions.c.id == session_id)
        tx.execute(sa.update(sessions).where(where).values(summary=summary.replace(text, REDACTED)))


def _redact_episodes(tx: Transaction, theirs: sa.ColumnElement[bool], text: str) -> None:
    written = json.dumps(text, ensure_ascii=True)[1:-1]
    stored = sa.cast(episodes.c.events, sa.Text)
    said = sa.or_(
        episodes.c.content.contains(text, autoescape=True),
        episodes.c.summary.contains(text, autoescape=True),
        stored.contains(written, autoescape=True),
        stored.contains(text, autoescape=True),
    )
    query = sa.select(episodes.c.seq, episodes.c.content, episodes.c.summary, episodes.c.events)
    for seq, content, summary, happened in tx.execute(query.where(theirs, said)).all():
        values = {
            "content": content.replace(text, REDACTED),
            "summary": summary.replace(text, REDACTED),
            "events": _redacted(happened, text),
        }
        tx.execute(sa.update(episodes).where(episodes.c.seq == seq).values(**values))


def _redacted(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(text, REDACTED)
    if isinstance(value, list):
        return [_redacted(one, text) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _redacted(one, text) for name, one in cast("dict[str, Any]", value).items()}
    return value


def shorten_answers(tx: Transaction, naming: str) -> None:
    """A retried request still gets its first answer, without the file's name: a name is made of what the note says.

    Args:
        naming: a part of the answers concerned: an id, or the beginning of a namespace.
    """
    query = sa.select(idempotency.c.principal_id, idempotency.c.key, idempotency.c.answer)
    named = sa.cast(idempotency.c.answer, sa.Text).contains(naming, autoescape=True)
    for principal_id, key, answer in tx.execute(query.where(named)).all():
        short = {name: value for name, value in answer.items() if name in ("id", "namespace", "version", "deleted")}
        where = sa.and_(idempotency.c.principal_id == principal_id, idempotency.c.key == key)
        tx.execute(sa.update(idempotency).where(where).values(answer=short))

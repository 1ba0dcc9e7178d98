"""What was said of memories: `incorrect | duplicate | outdated | useful`; of one text, not of what replaces it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction
from gateway.ledger.schema import feedback

# A memory whose newest judgement is one of these is not recalled by default.
HIDING = frozenset({"incorrect"})


def give(
    tx: Transaction,
    note_id: str,
    content_hash: str,
    judgement: str,
    *,
    comment: str,
    who: tuple[str | None, str | None],
) -> None:
    """Record a judgement. `who` is (user id, agent id)."""
    user_id, agent_id = who
    tx.execute(
        sa.insert(feedback).values(
            note_id=note_id,
            content_hash=content_hash,
            user_id=user_id,
            agent_id=agent_id,
            feedback=judgement,
            comment=comment,
            created_at=now_ms(),
        )
    )


def of_texts(tx: Transaction, notes: Collection[tuple[str, str]]) -> dict[str, list[str]]:
    """What was said of these (note id, content hash), oldest first; of other texts of a note nothing counts."""
    if not notes:
        return {}
    texts = dict(notes)
    query = (
        sa.select(feedback.c.note_id, feedback.c.content_hash, feedback.c.feedback)
        .where(feedback.c.note_id.in_(list(texts)))
        .order_by(feedback.c.seq)
    )
    found: dict[str, list[str]] = {}
    for note_id, content_hash, judgement in tx.execute(query):
        if texts[note_id] == content_hash:
            found.setdefault(note_id, []).append(judgement)
    return found


def hides(judgements: Sequence[str]) -> bool:
    """Whether the newest telling judgement keeps a memory from being recalled."""
    newest = next((one for one in reversed(judgements) if one in HIDING or one == "useful"), None)
    return newest in HIDING


def judgements(tx: Transaction, note_id: str) -> list[str]:
    """All judgements of a memory, oldest first."""
    return list(
        tx.scalars(sa.select(feedback.c.feedback).where(feedback.c.note_id == note_id).order_by(feedback.c.seq))
    )


def forget(tx: Transaction, note_id: str) -> None:
    """Remove what was said of a memory."""
    tx.execute(sa.delete(feedback).where(feedback.c.note_id == note_id))

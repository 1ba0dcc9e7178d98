"""What needs a person's decision before it becomes memory (design section 3). Pure, except for looking at versions."""

from __future__ import annotations

from gateway.config import ReviewSettings
from gateway.ledger import Transaction, journal, reviews
from gateway.ledger.registry import NoteRow
from gateway.notes.instruction_like import instruction_like
from gateway.notes.namespace import Namespace

INFERRED = "An agent inferred this; no person told it."
PERSONS = "It changes a memory that a person wrote or accepted."
ANOTHERS = "It changes a memory that another agent wrote."
EVERY_WRITE = "Every write is reviewed here."


def for_new(
    settings: ReviewSettings,
    namespace: Namespace,
    *,
    agent_id: str | None,
    source: str,
    confidence: float,
    texts: tuple[str | None, ...],
) -> str | None:
    """Why a new memory must be reviewed; None where it is active at once.

    Args:
        agent_id: the agent that acts; None for a user.
        texts: everything that will be read: content, summary.
    """
    if agent_id is None:
        return _for_user(settings, texts)
    level = settings.agents
    instruction = _instruction(texts)
    if instruction is not None:
        return instruction
    told = source == "manual" and confidence >= settings.told_confidence
    if level != "strict" or told or (namespace.kind == "agent" and namespace.owner == agent_id):
        return None
    return INFERRED


def for_change(
    tx: Transaction, settings: ReviewSettings, row: NoteRow, *, agent_id: str | None, texts: tuple[str | None, ...]
) -> str | None:
    """Why a change of a memory must be reviewed; None where it is done at once.

    Args:
        texts: what the change brings in; none for retiring a memory.
    """
    if agent_id is None:
        return _for_user(settings, texts)
    level = settings.agents
    if level != "none":
        if is_persons(tx, row):
            return PERSONS
        if level == "strict" and not _only_by(tx, row, f"agent:{agent_id}"):
            return ANOTHERS
    return _instruction(texts)


def is_persons(tx: Transaction, row: NoteRow) -> bool:
    """Whether a person had a hand in a memory: wrote it, changed it, or accepted its draft."""
    authors = {version.actor for version in journal.history(tx, row.note_id)}
    by_people = any(not one.startswith("agent:") and one != "gateway" for one in authors)
    return by_people or not authors or reviews.was_reviewed(tx, row.note_id)


def _for_user(settings: ReviewSettings, texts: tuple[str | None, ...]) -> str | None:
    """Why what a user's own key writes must be reviewed, new or changed."""
    if settings.users != "none" and (instruction := _instruction(texts)) is not None:
        return instruction
    return EVERY_WRITE if settings.users == "strict" else None


def _only_by(tx: Transaction, row: NoteRow, label: str) -> bool:
    return all(version.actor == label for version in journal.history(tx, row.note_id))


def _instruction(texts: tuple[str | None, ...]) -> str | None:
    for text in texts:
        found = instruction_like(text) if text else None
        if found is not None:
            return f"It reads like an instruction to an agent: {found}."
    return None

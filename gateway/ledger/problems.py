"""What is wrong with which file, as `/v1/problems` and `Reviews/Problems.md` say it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger import events
from gateway.ledger.database import Transaction
from gateway.ledger.events import Event
from gateway.ledger.schema import problems


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One problem of one file; `since` in ms since 1970 UTC. `path` is in the vault, or `""` for no file."""

    path: str
    kind: str
    message: str
    advice: str
    line: int | None
    field: str | None
    namespace: str | None
    since: int


def replace_problems(tx: Transaction, paths: Collection[str], found: Sequence[ProblemRow]) -> bool:
    """State the present problems of these paths; an unchanged problem keeps its `since`.

    Returns:
        Whether anything changed.
    """
    touched = set(paths)
    before = [row for row in listed(tx) if row.path in touched]
    known = {_identity(row): row.since for row in before}
    after = [_dated(row, known.get(_identity(row))) for row in found]
    if {_identity(row) for row in after} == set(known):
        return False
    for path in {row.path for row in before}:
        tx.execute(sa.delete(problems).where(problems.c.path == path))
    if after:
        tx.execute(sa.insert(problems), [_values(row) for row in after])
    stand = {_identity(row) for row in after}
    events.write(
        tx,
        *(_event(row, "cleared") for row in before if _identity(row) not in stand),
        *(_event(row, "appeared") for row in after if _identity(row) not in known),
    )
    return True


def problem_id(path: str) -> str:
    """What events call a file in problem: its path is a title, and a title is content."""
    return "prb_" + hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _event(row: ProblemRow, change: str) -> Event:
    return Event(events.PROBLEM, change, problem_id(row.path), row.namespace, data={"problem": row.kind})


def listed(tx: Transaction) -> list[ProblemRow]:
    """All problems, by path and line."""
    columns = [problems.c[name] for name in ProblemRow.__slots__]
    rows = tx.execute(sa.select(*columns).order_by(problems.c.path, problems.c.line, problems.c.id))
    return [ProblemRow(*row) for row in rows]


def count(tx: Transaction) -> int:
    """How many problems stand."""
    return tx.scalar(sa.select(sa.func.count()).select_from(problems)) or 0


def _identity(row: ProblemRow) -> tuple[object, ...]:
    return (row.path, row.kind, row.message, row.advice, row.line, row.field, row.namespace)


def _values(row: ProblemRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in ProblemRow.__slots__}


def _dated(row: ProblemRow, since: int | None) -> ProblemRow:
    return ProblemRow(
        row.path, row.kind, row.message, row.advice, row.line, row.field, row.namespace, since or now_ms()
    )

"""Lineage as a graph: what a note says of its own origin, and the edges around things (docs/vault-guide.md)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from gateway.ledger.database import Transaction
from gateway.ledger.reviews import Edge, add_edges
from gateway.ledger.schema import candidates, episodes, lineage, notes
from gateway.ledger.sessions import Candidate, Episode

SUPERSEDES, DERIVED_FROM = "supersedes", "derived_from"
_DECLARED = (SUPERSEDES, DERIVED_FROM)
_LINK = re.compile(r"\[\[([^\]|#^]+)[^\]]*\]\]")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,79}")
_MOST = 100
_AT_ONCE = 500


def declare(tx: Transaction, note_id: str, named: Mapping[str, Sequence[str]], *, known: bool) -> None:
    """State what a note names as its origin: ids, or links to notes; what it no longer names goes.

    Args:
        known: the note was there before, and may have named something else.
    """
    if known:
        where = (lineage.c.child == note_id, lineage.c.relation.in_(_DECLARED))
        tx.execute(sa.delete(lineage).where(*where))
    edges = [
        (note_id, parent, relation)
        for relation in _DECLARED
        for text in named.get(relation, ())[:_MOST]
        if (parent := _named(tx, text)) is not None and parent != note_id
    ]
    add_edges(tx, list(dict.fromkeys(edges)))


def parents_of(tx: Transaction, identifiers: Collection[str], most: int) -> list[Edge]:
    """Edges from these things to what they came from, oldest first."""
    return _edges(tx, lineage.c.child, identifiers, most)


def children_of(tx: Transaction, identifiers: Collection[str], most: int) -> list[Edge]:
    """Edges to these things from what came of them, oldest first."""
    return _edges(tx, lineage.c.parent, identifiers, most)


def episodes_by_id(tx: Transaction, identifiers: Collection[str]) -> dict[str, Episode]:
    """Episodes that are still there."""
    columns = [episodes.c[name] for name in Episode.__slots__]
    query = sa.select(*columns).where(episodes.c.id.in_(list(identifiers)))
    return {row.id: Episode(*row) for row in tx.execute(query)}


def candidates_by_id(tx: Transaction, identifiers: Collection[str]) -> dict[str, Candidate]:
    """Candidates that are still there."""
    columns = [candidates.c[name] for name in Candidate.__slots__]
    query = sa.select(*columns).where(candidates.c.id.in_(list(identifiers)))
    return {row.id: Candidate(*row) for row in tx.execute(query)}


def _edges(tx: Transaction, column: sa.Column[str], identifiers: Collection[str], most: int) -> list[Edge]:
    found: list[Edge] = []
    ordered = list(identifiers)
    columns = (lineage.c.child, lineage.c.parent, lineage.c.relation, lineage.c.created_at)
    for start in range(0, len(ordered), _AT_ONCE):
        where = column.in_(ordered[start : start + _AT_ONCE])
        query = sa.select(*columns).where(where).order_by(lineage.c.id).limit(most)
        found += [Edge(*row) for row in tx.execute(query)]
    return found


def _named(tx: Transaction, text: str) -> str | None:
    """The id that a text names: itself, or that of the one note which a link can mean."""
    link = _LINK.fullmatch(text.strip())
    if link is None:
        return text.strip() if _ID.fullmatch(text.strip()) else None
    target = link.group(1).strip().removesuffix(".md") + ".md"
    anywhere = notes.c.path.endswith("/" + target, autoescape=True)
    query = sa.select(notes.c.note_id).where(sa.or_(notes.c.path == target, anywhere)).limit(2)
    found = [row[0] for row in tx.execute(query)]
    return found[0] if len(found) == 1 else None

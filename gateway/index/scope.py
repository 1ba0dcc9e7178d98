"""Which rows a search may see, as a value, and its SQL. Quoting is here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# Compares like no row: an empty list of namespaces sees nothing, never everything.
_NOTHING = "false"


@dataclass(frozen=True, slots=True)
class Grant:
    """One alternative by which a row may be seen; what is None is not asked for."""

    visibility: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None

    def sql(self) -> str:
        """The condition; an empty grant lets everything through."""
        named = (
            ("visibility", self.visibility),
            ("user_id", self.user_id),
            ("agent_id", self.agent_id),
            ("workspace_id", self.workspace_id),
        )
        return " AND ".join(f"{column} = {quoted(value)}" for column, value in named if value is not None) or "true"


@dataclass(frozen=True, slots=True)
class Scope:
    """The filter of a search. Times are epoch milliseconds; ranges are half open: from included, until not.

    Args:
        namespaces: exact names; none of them means nothing is found.
        grants: alternatives of which one must hold; none means no such condition.
        user_id, agent_id, session_id, source: exact, or None.
        tags_any, tags_all: tags as stored.
        not_expired_at: leaves out what expires at or before this moment.
    """

    namespaces: tuple[str, ...]
    grants: tuple[Grant, ...] = ()
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None
    source: str | None = None
    visibilities: tuple[str, ...] | None = None
    statuses: tuple[str, ...] = ("active",)
    memory_types: tuple[str, ...] | None = None
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    created_from: int | None = None
    created_until: int | None = None
    updated_from: int | None = None
    updated_until: int | None = None
    min_confidence: float | None = None
    not_expired_at: int | None = None

    def sql(self) -> str:
        """The condition in LanceDB's SQL."""
        return " AND ".join(self._conditions())

    def _conditions(self) -> Iterator[str]:
        yield one_of("namespace", self.namespaces)
        yield one_of("status", self.statuses)
        for column, values in (("visibility", self.visibilities), ("memory_type", self.memory_types)):
            if values is not None:
                yield one_of(column, values)
        if self.grants:
            yield "(" + " OR ".join(f"({grant.sql()})" for grant in self.grants) + ")"
        yield from self._exact()
        yield from self._tags()
        yield from self._ranges()

    def _exact(self) -> Iterator[str]:
        for column, value in (
            ("user_id", self.user_id),
            ("agent_id", self.agent_id),
            ("workspace_id", self.workspace_id),
            ("session_id", self.session_id),
            ("source", self.source),
        ):
            if value is not None:
                yield f"{column} = {quoted(value)}"

    def _tags(self) -> Iterator[str]:
        if self.tags_any:
            yield f"array_has_any(tags, {_listed(self.tags_any)})"
        if self.tags_all:
            yield f"array_has_all(tags, {_listed(self.tags_all)})"

    def _ranges(self) -> Iterator[str]:
        for column, start, end in (
            ("created_at", self.created_from, self.created_until),
            ("updated_at", self.updated_from, self.updated_until),
        ):
            if start is not None:
                yield f"{column} >= {int(start)}"
            if end is not None:
                yield f"{column} < {int(end)}"
        if self.min_confidence is not None:
            # Stored as float32: 0.8 there is a little less or more than 0.8 here.
            yield f"confidence >= {float(self.min_confidence) - 1e-6!r}"
        if self.not_expired_at is not None:
            yield f"expires_at > {int(self.not_expired_at)}"


def one_of(column: str, values: Sequence[str]) -> str:
    """The column equals one of the values; no values, no rows."""
    distinct = list(dict.fromkeys(values))
    if not distinct:
        return _NOTHING
    if len(distinct) == 1:
        return f"{column} = {quoted(distinct[0])}"
    return f"{column} IN ({', '.join(map(quoted, distinct))})"


def quoted(value: str) -> str:
    """A string literal. A quotation mark is doubled; a backslash is a plain character in this dialect."""
    return "'" + value.replace("'", "''") + "'"


def _listed(values: Iterable[str]) -> str:
    return "[" + ", ".join(map(quoted, dict.fromkeys(values))) + "]"

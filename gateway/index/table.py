"""A LanceDB table with types: the only module that imports lancedb."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
from lancedb.index import FTS, Bitmap, BTree, LabelList
from lancedb.query import FullTextOperator, MatchQuery

from gateway.errors import Unavailable
from gateway.index.embed import Vector
from gateway.index.schema import BITMAP_COLUMNS, BTREE_COLUMNS, LABEL_COLUMNS, Row

# Its pydantic dataclass declares the defaults in a way that the type checker takes for required arguments.
_match_query: Any = MatchQuery
_TOKENS_INDEX = "tokens_idx"
_LANCE_ERRORS = (RuntimeError, ValueError, OSError)
_LARGEST_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TableState:
    """How far a table is from tidy.

    Args:
        unindexed_rows: rows that keyword search has to scan one by one.
        fragments: files that every search opens.
    """

    rows: int
    unindexed_rows: int
    fragments: int


class Table:
    """One LanceDB table; it serialises nothing, its owner does."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def schema(self) -> Any:
        """The Arrow schema of what is stored."""
        return self._table.schema

    def add(self, rows: Any) -> None:
        """Append an Arrow table."""
        with _translated():
            self._table.add(rows)

    def delete(self, where: str) -> None:
        """Delete the rows that match."""
        with _translated():
            self._table.delete(where)

    def count(self, where: str | None = None) -> int:
        """Number of rows that match."""
        with _translated():
            return int(self._table.count_rows(where))

    def update_matching(self, key: str, rows: Any) -> None:
        """Set the given columns of the rows whose key is still there; never brings a row back."""
        with _translated():
            self._table.merge_insert(key).when_matched_update_all().execute(rows)

    def match(self, tokens: str, where: str, columns: Sequence[str], limit: int) -> list[Row]:
        """The best rows by BM25 over any of the tokens, best first, with `_score`."""
        query = _match_query(tokens, "tokens", operator=FullTextOperator.OR)
        return self._read(
            lambda: (
                self._table.search(query, query_type="fts")
                .where(where, prefilter=True)
                .select([*columns, "_score"])
                .limit(limit)
                .to_arrow()
            )
        )

    def nearest(self, vector: Vector, where: str, columns: Sequence[str], limit: int) -> list[Row]:
        """The nearest rows by cosine, nearest first, with `_distance` (0 to 2); rows without a vector never come."""
        return self._read(
            lambda: (
                self._table.search(vector, vector_column_name="vector")
                .distance_type("cosine")
                .where(where, prefilter=True)
                .select([*columns, "_distance"])
                .limit(limit)
                .to_arrow()
            )
        )

    def scan(self, columns: Sequence[str], where: str | None = None, limit: int | None = None) -> Iterator[Any]:
        """Record batches of the rows that match, in storage order, read as they are consumed."""
        query = self._table.search().select(list(columns)).limit(limit or _LARGEST_LIMIT)
        if where is not None:
            query = query.where(where)
        with _translated():
            yield from query.to_batches()

    def sample(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """About `size` rows spread evenly over the table, or all where it has fewer."""
        rows = self.count()
        if rows <= size:
            yield from self.scan(columns)
            return
        offsets = [number * rows // size for number in range(size)]
        try:
            yield self._table.take_offsets(offsets).select(list(columns)).to_arrow()
        except _LANCE_ERRORS:
            # Rows went away since they were counted.
            yield from self.scan(columns, limit=size)

    def state(self) -> TableState:
        """How far the table is from tidy."""
        stats = self._table.stats()
        indexed = self._table.index_stats(_TOKENS_INDEX)
        unindexed = int(indexed.num_unindexed_rows) if indexed is not None else 0
        return TableState(int(stats["num_rows"]), unindexed, int(stats["fragment_stats"]["num_fragments"]))

    def stale_versions(self, keep_seconds: float) -> int:
        """How many versions older than that many seconds are still on disk, the present one left out."""
        with _translated():
            versions: list[dict[str, Any]] = self._table.list_versions()
        oldest = time.time() - keep_seconds
        return sum(version["timestamp"].timestamp() < oldest for version in versions[:-1])

    def _read(self, query: Callable[[], Any]) -> list[Row]:
        """Run a query, once more where the version it began with was tidied away under it."""
        try:
            return _rows(query())
        except _LANCE_ERRORS:
            with _translated():
                self._table.checkout_latest()
                return _rows(query())

    def optimise(self, keep_versions_seconds: float) -> None:
        """Compact the fragments, bring every index up to date, drop versions older than that many seconds."""
        # Zero makes lancedb warn; a millisecond is as short as it gets.
        with _translated():
            self._table.optimize(cleanup_older_than=timedelta(seconds=max(0.001, keep_versions_seconds)))


class Database:
    """A LanceDB folder or bucket."""

    def __init__(self, uri: str) -> None:
        if "://" not in uri:
            Path(uri).mkdir(parents=True, exist_ok=True)
        self._connection: Any = lancedb.connect(uri)

    def names(self) -> list[str]:
        """The names of all tables."""
        names: list[str] = []
        token: str | None = None
        while True:
            page = self._connection.list_tables(page_token=token)
            names += page.tables
            token = page.page_token
            if not token:
                return names

    def open(self, name: str) -> Table:
        """Open a table that exists."""
        return Table(self._connection.open_table(name))

    def create_chunks(self, name: str, schema: Any) -> Table:
        """Create a chunks table with its indices; they are made empty and grow with `optimise`."""
        table = self._connection.create_table(name, schema=schema, mode="overwrite")
        table.create_index("tokens", config=_full_text())
        for column in BITMAP_COLUMNS:
            table.create_index(column, config=Bitmap())
        for column in BTREE_COLUMNS:
            table.create_index(column, config=BTree())
        for column in LABEL_COLUMNS:
            table.create_index(column, config=LabelList())
        return Table(table)

    def create_keyed(self, name: str, schema: Any, key: str) -> Table:
        """Create a table that is looked up by one column."""
        table = self._connection.create_table(name, schema=schema, mode="overwrite")
        table.create_index(key, config=BTree())
        return Table(table)

    def drop(self, name: str) -> None:
        """Drop a table, if it is there."""
        self._connection.drop_table(name, ignore_missing=True)


def _rows(found: Any) -> list[Row]:
    """Arrow as rows; vectors stay numpy, because a list of floats for each costs more than the query."""
    if "vector" not in found.column_names:
        return found.to_pylist()
    column = found["vector"].combine_chunks()
    rows: list[Row] = found.drop_columns(["vector"]).to_pylist()
    vectors = iter(column.flatten().to_numpy().reshape(-1, column.type.list_size))
    for row, present in zip(rows, column.is_valid().to_pylist(), strict=True):
        row["vector"] = next(vectors) if present else None
    return rows


@contextmanager
def _translated() -> Generator[None]:
    """LanceDB's errors as ours."""
    try:
        yield
    except _LANCE_ERRORS as error:
        raise Unavailable("The search index cannot be used.", advice="Free disk space or rebuild the index.") from error


def _full_text() -> FTS:
    """Split at blanks and nothing else: `tokens` decides what a token is."""
    return FTS(
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
        with_position=False,
    )

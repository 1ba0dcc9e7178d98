"""The ledger's connection, transactions and migrations. The only module that knows it may be SQLite."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from gateway.errors import Unavailable
from gateway.ledger.migrating import migrate

BUSY_MS = 10_000
Transaction = sa.Connection


class Ledger:
    """An open ledger. Reads run beside each other; writes take one lock and one transaction."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = make_url(url)
        self._write_lock = threading.RLock()
        self._engine = _engine(self.url, read_only=read_only)
        # Told after each commit; must be quick and not write.
        self.on_commit: Callable[[], None] = lambda: None

    @classmethod
    def open(cls, url: str) -> Ledger:
        """Open for writing and bring the tables up to date.

        Raises:
            Unavailable: the database cannot be opened, or was made by a newer gateway.
        """
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        ledger = cls(url)
        try:
            migrate(ledger._engine, url)
        except SQLAlchemyError as error:
            raise Unavailable(f"The ledger cannot be opened: {error.__class__.__name__}.", advice=str(error)) from error
        return ledger

    @contextmanager
    def write(self) -> Generator[Transaction]:
        """One transaction, committed durably at the end or rolled back whole. Never nested in another thread's."""
        with self._write_lock, self._engine.begin() as connection:
            yield connection
        self.on_commit()

    @contextmanager
    def read(self) -> Generator[Transaction]:
        """A snapshot for reading; never waits for a writer."""
        with self._engine.connect().execution_options(reading=True) as connection:
            yield connection

    @property
    def is_sqlite(self) -> bool:
        """Whether the backing database is SQLite."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def file(self) -> Path | None:
        """The database file, where there is one."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    def compact(self) -> None:
        """Give back what was deleted: on SQLite, free pages and the write-ahead log still hold old rows until then."""
        if not self.is_sqlite:
            return  # PostgreSQL's own vacuum sees to it
        with self._write_lock, self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            raw: Any = connection.connection.driver_connection
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def tidy(self, pages: int) -> int:
        """On SQLite: fresh statistics for its planner, the write-ahead log folded in, and at most so many free pages
        given back to the disk. Waits for nobody. Returns how many pages were given back."""
        if not self.is_sqlite:
            return 0
        with self._write_lock, self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout=50")  # a reader may hold the log: the next round folds it in
            try:
                driver.execute("PRAGMA optimize")
                before = driver.execute("PRAGMA freelist_count").fetchone()[0]
                if pages > 0:  # none would mean all; and only a script is carried out to its end
                    driver.executescript(f"PRAGMA incremental_vacuum({int(pages)})")
                freed = before - driver.execute("PRAGMA freelist_count").fetchone()[0]
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                driver.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        return max(0, freed)

    def waste(self) -> tuple[int, int]:
        """On SQLite: free pages that can be given back, and the bytes of the write-ahead log."""
        file = self.file
        if file is None:
            return 0, 0
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            incremental = driver.execute("PRAGMA auto_vacuum").fetchone()[0] == 2
            free = driver.execute("PRAGMA freelist_count").fetchone()[0] if incremental else 0
        log = file.with_name(file.name + "-wal")
        return free, log.stat().st_size if log.exists() else 0

    def copy_to(self, target: Path) -> None:
        """A consistent copy while others write, by SQLite's online backup.

        Raises:
            Unavailable: the ledger is not SQLite; use that database's own backup.
        """
        if not self.is_sqlite:
            raise Unavailable("Only a SQLite ledger is copied by the gateway.", advice="Use the database's own backup.")
        import sqlite3

        with self._engine.connect() as connection:
            source: Any = connection.connection.driver_connection
            copy = sqlite3.connect(target)
            try:
                source.backup(copy)
            finally:
                copy.close()

    def close(self) -> None:
        """Close all connections; on SQLite the write-ahead log is folded in."""
        if self.is_sqlite:
            try:
                with self._engine.connect() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            except SQLAlchemyError:
                pass  # a reader elsewhere holds the log; the next start folds it in
        self._engine.dispose()


def inserting(connection: Transaction, table: sa.Table) -> Any:
    """An insert that may say what becomes of a row that is there already (`on_conflict_do_update`)."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert
    return insert(table)


def upsert(connection: Transaction, table: sa.Table, rows: list[dict[str, Any]], *, keys: list[str]) -> None:
    """Insert rows, or update those whose `keys` exist. SQLite and PostgreSQL word this alike."""
    if not rows:
        return
    statement = inserting(connection, table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    if changed:
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), rows)
    else:
        connection.execute(statement.on_conflict_do_nothing(index_elements=keys), rows)


def _engine(url: sa.URL, *, read_only: bool) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    if read_only:
        url = url.set(database=f"file:{url.database}", query={"mode": "ro", "uri": "true"})
    engine = sa.create_engine(
        url, poolclass=QueuePool, pool_size=16, max_overflow=32, connect_args={"timeout": BUSY_MS / 1000}
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # SQLAlchemy's BEGIN below is then the only one
        for pragma in ("foreign_keys=ON", f"busy_timeout={BUSY_MS}", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        if not read_only:
            if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # heeded by a new database only
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        if connection.get_execution_options().get("reading"):
            connection.exec_driver_sql("BEGIN")
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # take the write lock at once: no upgrade dead-locks

    return engine

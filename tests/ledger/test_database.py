import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from gateway.clock import now_ms
from gateway.errors import Unavailable
from gateway.ledger import Ledger, journal, meta
from gateway.ledger.database import BUSY_MS
from gateway.ledger.journal import Version
from gateway.ledger.migrating import newest_revision
from gateway.ledger.schema import metadata


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def test_the_migrations_end_at_the_schema(url: str):
    Ledger.open(url).close()
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == newest_revision(), "or alembic would be asked at each start"
    engine.dispose()


def test_opening_again_changes_nothing_and_keeps_what_is_there(url: str):
    ledger = Ledger.open(url)
    with ledger.write() as tx:
        meta.put(tx, "k", "v")
    ledger.close()
    again = Ledger.open(url)
    with again.read() as tx:
        assert meta.get(tx, "k") == "v"
    again.close()


def test_a_ledger_that_is_up_to_date_opens_without_alembic(url: str):
    Ledger.open(url).close()
    code = f"import sys; from gateway.ledger import Ledger; Ledger.open({url!r}); assert 'alembic' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_ledger_of_a_newer_gateway_is_refused_in_words(url: str, tmp_path: Path):
    Ledger.open(url).close()
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()
    with pytest.raises(Unavailable, match="newer gateway"):
        Ledger.open(url)


def test_a_file_that_is_no_database_is_refused_in_words(url: str, tmp_path: Path):
    (tmp_path / "ledger.db").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(Unavailable, match="cannot be opened"):
        Ledger.open(url)


def test_a_read_only_opening_reads_beside_a_writer_and_cannot_write(url: str):
    writer = Ledger.open(url)
    reader = Ledger(url, read_only=True)
    with writer.write() as tx:
        meta.put(tx, "k", "1")
    with reader.read() as tx:
        assert meta.get(tx, "k") == "1"
    with pytest.raises(sa.exc.OperationalError, match="readonly"), reader.write() as tx:
        meta.put(tx, "k", "2")
    reader.close()
    writer.close()


def test_readers_see_whole_transactions_while_a_writer_works(url: str):
    ledger = Ledger.open(url)
    stop = threading.Event()
    torn: list[tuple[str | None, str | None]] = []

    def read() -> None:
        while not stop.is_set():
            with ledger.read() as tx:
                pair = (meta.get(tx, "a"), meta.get(tx, "b"))
            if pair[0] != pair[1]:
                torn.append(pair)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(100):
        with ledger.write() as tx:
            meta.put(tx, "a", str(number))
            meta.put(tx, "b", str(number))
    stop.set()
    for reader in readers:
        reader.join()
    ledger.close()
    assert torn == []


def test_a_failed_transaction_leaves_nothing(url: str):
    ledger = Ledger.open(url)

    def fail() -> None:
        with ledger.write() as tx:
            meta.put(tx, "k", "v")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with ledger.read() as tx:
        assert meta.get(tx, "k") is None
    ledger.close()


def test_a_writer_waits_for_another_process_to_finish(url: str, tmp_path: Path):
    ledger = Ledger.open(url)
    hold = (
        "import sqlite3, sys\n"
        "raw = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "raw.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.readline()\n"
        "raw.execute('COMMIT')\n"
        "raw.close()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / "ledger.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        let_go = threading.Timer(0.5, lambda: other.communicate(b"\n"))
        let_go.start()
        started = time.monotonic()
        with ledger.write() as tx:
            meta.put(tx, "k", "v")
        waited = time.monotonic() - started
        let_go.join()
    ledger.close()
    assert 0.3 < waited < BUSY_MS / 1000


def version(key: str, etag: str, note_id: str = "n") -> Version:
    at = now_ms()
    return Version(key, note_id, 1, "write", "n.md", None, etag, "a", "a@x", "agent:a", at, at)


def test_bytes_are_kept_until_no_waiting_version_needs_them(url: str):
    ledger = Ledger.open(url)
    with ledger.write() as tx:
        journal.record_versions(tx, [(version("k1", "e"), b"x"), (version("k2", "e", "m"), b"x")])
        journal.record_versions(tx, [(version("k3", "other"), b"y")])
        journal.mark_committed(tx, [("k1", "sha")])
        assert journal.bodies(tx, ["e", "other"]) == {"e": b"x", "other": b"y"}
        journal.mark_committed(tx, [("k2", "sha")])
        assert journal.bodies(tx, ["e", "other"]) == {"other": b"y"}
        journal.mark_committed(tx, [("k3", None)])
        assert journal.bodies(tx, ["e", "other"]) == {}
    ledger.close()

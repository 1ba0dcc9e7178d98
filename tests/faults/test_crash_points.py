import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.importer.write import SPARE_MS
from gateway.ledger import journal
from gateway.services.check import check
from tests.faults import orders
from tests.faults.dying import DIED, POINTS
from tests.importer.same_state import settle, state
from tests.nightly import NIGHTLY

ROOT = Path(__file__).parents[2]


def die(data_dir: Path, op: str, point: str) -> int:
    command = [sys.executable, "-m", "tests.faults.dying", str(data_dir), op, point]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.returncode in (DIED, 0), done.stderr.decode()
    return done.returncode


def assert_whole(data_dir: Path, op: str) -> None:
    """After recovery and a retry of the request: done exactly once, everywhere, and nothing is left lying about."""
    settings = load_settings(data_dir=data_dir, **orders.SETTINGS)
    gateway = open_gateway(settings)
    try:
        settle(gateway)
        orders.write(gateway, op)
        settle(gateway)
        known = state(gateway)
        gateway.parts.writes.settle_spares(wait_ms=-SPARE_MS)
        root = gateway.parts.files.root
        wanted = {f"to {name}.md" for name in ("create", "update", "delete")}
        wanted -= {"to delete.md"} if op == "delete" else set()
        wanted -= {"to create.md"} if op != "create" else set()
        assert {path.name for path in (root / orders.FOLDER).iterdir()} == wanted
        if op != "delete":
            assert (root / orders.path_of(op)).read_bytes() == orders.text(op, "as it shall be")
            assert known[orders.path_of(op)].searchable
        with gateway.parts.ledger.read() as tx:
            assert journal.open_intents(tx, "prepared") == []
            assert journal.pending_count(tx) == 0
            versions = journal.history(tx, orders.IDS[op])
        assert gateway.parts.files.spares() == []
        assert len(versions) == {"create": 1, "update": 2, "delete": 2}[op]
        keys = subprocess.check_output(
            ["git", "log", "--format=%(trailers:key=Memory-Key,valueonly)"], cwd=root, text=True
        ).split()
        counted = Counter(keys)
        assert max(counted.values()) == 1, "a version is in git twice"
        assert {one.key for one in versions if one.state == "committed"} <= set(keys)
        assert subprocess.check_output(["git", "status", "--porcelain"], cwd=root, text=True) == ""
    finally:
        gateway.close()
    assert check(settings, patient=False).findings == []


OPS = ["create", "update", "delete"]
# A child process takes a second or more: by day, every point for an update, and the telling ones for the others.
TELLING = ["after the intent", "after the exchange", "while settling"]
SINGLE = [(op, point) for op in OPS for point in POINTS if NIGHTLY or op == "update" or point in TELLING]


@pytest.mark.parametrize(("op", "point"), SINGLE)
def test_a_write_that_dies_anywhere_is_done_once_after_restart_and_retry(tmp_path: Path, op: str, point: str):
    orders.prepare(tmp_path / "vault")
    assert die(tmp_path, op, point) == DIED
    assert_whole(tmp_path, op)


AGAIN = [
    ("after the intent", "after the exchange"),
    ("after staging", "after staging"),
    ("after the exchange", "before settling"),
    ("before settling", "while settling"),
    ("while settling", "after settling"),
    ("between commit and git's index", "while marking"),
    ("between commit and mark", "while marking"),
]


@pytest.mark.parametrize("op", OPS if NIGHTLY else ["update"])
@pytest.mark.parametrize(("point", "again"), AGAIN if NIGHTLY else AGAIN[2:6:2])
def test_a_recovery_that_dies_too_is_made_good_by_the_next(tmp_path: Path, op: str, point: str, again: str):
    orders.prepare(tmp_path / "vault")
    assert die(tmp_path, op, point) == DIED
    die(tmp_path, "recover", again)
    die(tmp_path, "recover", again)
    assert_whole(tmp_path, op)


@pytest.mark.parametrize("point", ["after the exchange", "before settling", "while settling"])
def test_what_a_person_wrote_while_the_gateway_was_dead_is_not_lost(tmp_path: Path, point: str):
    orders.prepare(tmp_path / "vault")
    note = tmp_path / "vault" / orders.path_of("update")
    assert die(tmp_path, "update", point) == DIED
    theirs = orders.text("update", "a person wrote this")
    note.write_bytes(theirs)
    gateway = open_gateway(load_settings(data_dir=tmp_path, **orders.SETTINGS))
    try:
        settle(gateway)
        assert note.read_bytes() == theirs
        with gateway.parts.ledger.read() as tx:
            versions = journal.history(tx, orders.IDS["update"])
        texts = [gateway.parts.history.show(one.sha or "", one.path) for one in reversed(versions)]
        assert texts == [orders.text("update", "as it was"), orders.text("update", "as it shall be"), theirs]
        assert [one.actor for one in versions] == ["person", "agent:writer", "person"]
    finally:
        gateway.close()

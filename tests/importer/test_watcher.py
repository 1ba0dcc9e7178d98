"""Changes heard by the watcher, with the periodic scan out of the way: hints are enough."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway
from gateway.importer.watch import Watcher
from tests.conftest import IMPATIENT
from tests.importer.same_state import fresh, problem_kinds, settle, state
from tests.importer.test_same_state import CHANGES, LONG, note, start, write

HEARING = {"scan_seconds": 3600, "settle_seconds": 0.05, "absence_seconds": 0.2, "canary_seconds": 2}
# A scan lists links and pipes as problems; what is heard is only that a note is gone.
HEARD = [change for change in CHANGES if change.__name__ not in ("linked", "of_other_kinds")]


def eventually(check: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def hearing(opened: Callable[..., Gateway]) -> Gateway:
    gateway = opened(watch=HEARING)
    root = gateway.parts.files.root
    start(root)
    gateway.start()
    assert eventually(lambda: gateway.parts.watcher is not None and gateway.parts.watcher.hears)
    assert eventually(gateway.parts.scanned.is_set)
    settle(gateway)
    return gateway


def same(gateway: Gateway, wanted) -> bool:
    try:
        return (state(gateway), problem_kinds(gateway)) == wanted
    except AssertionError:
        return False  # index and ledger are on their way


@pytest.mark.parametrize("change", HEARD, ids=lambda change: change.__name__)
def test_a_change_that_is_heard_ends_as_a_fresh_import_would(hearing: Gateway, change: Callable[[Path], None]):
    change(hearing.parts.files.root)
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted))


def test_a_new_folder_at_the_top_is_heard(hearing: Gateway):
    write(hearing.parts.files.root, "Global/new/n.md", note("in a new place"))
    shutil.rmtree(hearing.parts.files.root / "Workspaces")
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted))
    write(hearing.parts.files.root, "Workspaces/lab/Shared/again.md", note("and again"))
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted))


def test_a_save_in_two_steps_is_taken_as_a_whole(hearing: Gateway):
    path = hearing.parts.files.root / LONG / "plain 1.md"
    with path.open("w") as file:
        for number in range(20):
            file.write(f"line {number}\n")
            file.flush()
            time.sleep(0.01)
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted))


def test_a_checkout_of_many_notes_forth_and_back_is_followed(hearing: Gateway):
    root = hearing.parts.files.root
    settle(hearing)

    def git(*arguments: str) -> None:
        """As a person would: once more when git says that the gateway commits this very moment."""
        command = ["git", "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
        said = ""

        def done() -> bool:
            nonlocal said
            ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            said = ran.stdout + ran.stderr
            assert ran.returncode == 0 or "lock" in said or "nothing to commit" in said, said
            return ran.returncode == 0 or "nothing to commit" in said

        assert eventually(done), said

    git("checkout", "-q", "-b", "many")
    for number in range(1_500):
        write(root, f"Global/{number % 15}/{number}.md", note(f"number {number}"))
    git("add", "-A")
    git("commit", "-qm", "many")
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted), 90)
    git("checkout", "-q", "main")
    assert eventually(lambda: ("", "too-much-gone") in problem_kinds(hearing), 60)
    hearing.parts.importer.confirm_deletions()
    wanted = fresh(hearing, **IMPATIENT)
    assert eventually(lambda: same(hearing, wanted), 90)


def test_the_first_canary_is_heard_at_once_and_a_dead_watcher_comes_back(tmp_path: Path):
    root = tmp_path / "vault"
    (root / "a").mkdir(parents=True)
    heard: set[str] = set()
    watcher = Watcher(root, tmp_path / "canary", heard.update, canary_seconds=3600)
    watcher.start()
    try:
        assert eventually(lambda: watcher.hears, 5)
        (root / "top.md").write_text("beside the folders")
        assert eventually(lambda: "top.md" in heard, 5)
        root.rename(tmp_path / "away")
        assert eventually(lambda: watcher.trouble is not None, 10)
        (tmp_path / "away").rename(root)
        assert eventually(lambda: watcher.trouble is None, 20)
        heard.clear()
        (root / "a" / "n.md").write_text("heard again")
        assert eventually(lambda: "a/n.md" in heard, 5)
    finally:
        watcher.stop()

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway
from gateway.errors import Unavailable
from gateway.importer import problems_note
from gateway.ledger import problems
from tests.importer.same_state import problem_kinds, settle, state

LONG = "Memories/LongTerm"


def write(gateway: Gateway, count: int, folder: str = LONG) -> Path:
    place = gateway.parts.files.root / folder
    place.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (place / f"{number}.md").write_text(f"text {number}\n")
    settle(gateway)
    return place


def known(gateway: Gateway, folder: str = LONG) -> int:
    return sum(path.startswith(folder + "/") for path in state(gateway))


def test_a_note_is_deleted_only_when_it_was_gone_twice(opened: Callable[..., Gateway]):
    gateway = opened(watch={"settle_seconds": 0, "absence_seconds": 3600})
    place = write(gateway, 3)
    (place / "1.md").unlink()
    settle(gateway)
    assert known(gateway) == 3
    (place / "1.md").write_text("text 1\n")
    settle(gateway)
    assert gateway.parts.importer.absence.missing == {}


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the system refuse a folder; permissions alone do not stop root, as which tests often run."""
    scandir, opened = os.scandir, os.open

    def refuse(folder: str) -> None:
        name = Path(folder).name

        def scan(path):
            if str(path).endswith(folder):
                raise PermissionError(13, "Permission denied")
            return scandir(path)

        def open_(path, *arguments, **named):
            if path == name:
                raise PermissionError(13, "Permission denied")
            return opened(path, *arguments, **named)

        monkeypatch.setattr(os, "scandir", scan)
        monkeypatch.setattr(os, "open", open_)

    return refuse


def test_an_unreadable_folder_deletes_nothing_and_is_said(
    opened: Callable[..., Gateway], unreadable: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
):
    gateway = opened()
    place = write(gateway, 3)
    (place / "0.md").unlink()
    unreadable(LONG)
    settle(gateway)
    assert known(gateway) == 3
    assert (LONG, "unreadable") in problem_kinds(gateway)
    monkeypatch.undo()
    settle(gateway)
    assert known(gateway) == 2
    assert (LONG, "unreadable") not in problem_kinds(gateway)


def test_a_vault_that_is_moved_away_and_back_loses_nothing(opened: Callable[..., Gateway]):
    gateway = opened()
    write(gateway, 30)
    root = gateway.parts.files.root
    root.rename(root.with_name("away"))
    for _ in range(3):
        with pytest.raises(Unavailable):
            gateway.parts.importer.scan()
    root.mkdir()  # a bare mount point
    for _ in range(3):
        with pytest.raises(Unavailable):
            gateway.parts.importer.scan()
    (root / "Memories" / "LongTerm").mkdir(parents=True)  # another vault, half copied
    gateway.parts.importer.scan(settled=True)
    gateway.parts.importer.scan(settled=True)
    shutil.rmtree(root)
    root.with_name("away").rename(root)
    settle(gateway)
    assert known(gateway) == 30
    assert gateway.parts.importer.absence.missing == {}


def test_an_empty_vault_at_the_start_deletes_nothing_and_nothing_is_made_in_it(opened: Callable[..., Gateway]):
    gateway = opened()
    write(gateway, 5)
    root = gateway.parts.files.root
    gateway.close()
    root.rename(root.with_name("away"))
    root.mkdir()
    again = opened()
    for _ in range(3):
        with pytest.raises(Unavailable):
            again.parts.importer.scan(settled=True)
    assert not problems_note.update(again.parts.importer)
    assert [path.name for path in root.iterdir() if path.name != ".git"] == []
    again.close()
    shutil.rmtree(root)
    root.with_name("away").rename(root)
    third = opened()
    settle(third)
    assert known(third) == 5


def test_a_mass_deletion_pauses_and_alerts_until_it_is_confirmed(opened: Callable[..., Gateway]):
    gateway = opened()
    place = write(gateway, 100)
    write(gateway, 30, "Users/tom/LongTerm")
    for number in range(40):
        (place / f"{number}.md").unlink()
    for _ in range(4):
        report = gateway.parts.importer.scan(settled=True)
    assert report.paused == 40
    assert known(gateway) == 100
    assert ("", "too-much-gone") in problem_kinds(gateway)
    report = gateway.parts.importer.confirm_deletions()
    settle(gateway)
    assert report.deleted == 40
    assert known(gateway) == 60
    assert ("", "too-much-gone") not in problem_kinds(gateway)


def test_files_that_come_back_end_the_alert(opened: Callable[..., Gateway]):
    gateway = opened()
    place = write(gateway, 50)
    place.rename(place.with_name("elsewhere"))
    reports = [gateway.parts.importer.scan(settled=True) for _ in range(3)]
    assert any(report.problems_changed for report in reports)
    assert ("", "too-much-gone") in problem_kinds(gateway)
    place.with_name("elsewhere").rename(place)
    report = gateway.parts.importer.scan(settled=True)
    assert report.problems_changed
    assert ("", "too-much-gone") not in problem_kinds(gateway)
    settle(gateway)
    assert known(gateway) == 50


def test_few_deletions_or_a_small_share_do_not_pause(opened: Callable[..., Gateway]):
    gateway = opened()
    place = write(gateway, 300)
    for number in range(25):
        (place / f"{number}.md").unlink()
    settle(gateway)
    assert known(gateway) == 275


def test_the_alert_stands_in_the_problems_note_and_survives_a_restart(opened: Callable[..., Gateway]):
    gateway = opened()
    place = write(gateway, 50)
    for path in place.iterdir():
        path.unlink()
    settle(gateway)
    gateway.close()
    again = opened()
    settle(again)
    assert problems_note.update(again.parts.importer)
    text = (again.parts.files.root / problems_note.PATH).read_text()
    with again.parts.ledger.read() as tx:
        listed = problems.listed(tx)
    assert len(listed) >= 1
    assert all(row.message in text for row in listed)
    assert known(again) == 50

import os
import threading
import time
from pathlib import Path

import pytest

from gateway.errors import AlreadyExists, BadPath, ChangedElsewhere, GatewayError, TooLarge
from gateway.notes.text import etag_of
from gateway.vault import files as files_module
from gateway.vault.exchange import ExchangeUnsupported
from gateway.vault.files import VaultFiles


@pytest.fixture
def files(tmp_path: Path) -> VaultFiles:
    (tmp_path / "vault").mkdir()
    return VaultFiles(tmp_path / "vault", tmp_path / "staging", max_bytes=1024 * 1024)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_create_writes_the_bytes_and_leaves_nothing_else_behind(files: VaultFiles):
    files.create("a/b/n.md", b"text\r\n", "int_1")
    assert everything(files.root) == {"a/b/n.md": b"text\r\n"}
    assert files.spares() == []


def test_create_never_overwrites(files: VaultFiles):
    (files.root / "n.md").write_bytes(b"theirs")
    with pytest.raises(AlreadyExists):
        files.create("n.md", b"ours", "int_1")
    assert everything(files.root) == {"n.md": b"theirs"}
    assert files.spares() == []


def test_only_one_of_many_creators_of_a_name_wins(files: VaultFiles):
    won: list[int] = []

    def run(number: int) -> None:
        try:
            files.create("n.md", b"%d" % number, f"int_{number}")
            won.append(number)
        except AlreadyExists:
            pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (files.root / "n.md").read_bytes() == b"%d" % won[0]
    assert files.spares() == []


def test_replace_keeps_the_mode_and_the_replaced_text_as_a_spare(files: VaultFiles):
    note = files.root / "n.md"
    note.write_bytes(b"old")
    note.chmod(0o640)
    files.replace("n.md", etag_of(b"old"), b"new", "int_1")
    assert note.read_bytes() == b"new"
    assert note.stat().st_mode & 0o777 == 0o640
    assert files.spare("int_1") == b"old"


def test_replace_of_a_text_that_was_not_seen_changes_nothing(files: VaultFiles):
    (files.root / "n.md").write_bytes(b"person's")
    with pytest.raises(ChangedElsewhere):
        files.replace("n.md", etag_of(b"old"), b"new", "int_1")
    assert everything(files.root) == {"n.md": b"person's"}
    assert files.spares() == []


def test_replace_of_a_missing_note_is_refused(files: VaultFiles):
    with pytest.raises(ChangedElsewhere):
        files.replace("n.md", etag_of(b"old"), b"new", "int_1")
    assert everything(files.root) == {}
    assert files.spares() == []


def test_remove_of_a_text_that_was_not_seen_puts_it_back(files: VaultFiles):
    (files.root / "n.md").write_bytes(b"person's")
    with pytest.raises(ChangedElsewhere):
        files.remove("n.md", etag_of(b"old"), "int_1")
    assert everything(files.root) == {"n.md": b"person's"}


def test_a_file_given_back_never_covers_another(files: VaultFiles):
    (files.root / "n.md").write_bytes(b"old")
    files.remove("n.md", etag_of(b"old"), "int_1")
    (files.root / "n.md").write_bytes(b"newer")
    files.give_back("int_1", "n.md")
    assert everything(files.root) == {"n.md": b"newer", "n (kept 1).md": b"old"}


BAD_PATHS = [
    "../out.md",
    "a/../../out.md",
    "/etc/out.md",
    "C:/out.md",
    "a\\b.md",
    "n\0.md",
    "CON.md",
    "nul.txt.md",
    "COM1/n.md",
    "a//b.md",
    ".git/n.md",
    ".obsidian/plugins/x.md",
    "trail./n.md",
    "blank .md/n.md ",
    "n" * 300 + ".md",
    "語" * 90 + ".md",
    "",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_unacceptable_paths_are_refused_in_words_and_nothing_is_written(files: VaultFiles, tmp_path: Path, path: str):
    before = everything(tmp_path)
    for attempt in (
        lambda: files.create(path, b"x", "int_1"),
        lambda: files.replace(path, etag_of(b""), b"x", "int_1"),
        lambda: files.remove(path, etag_of(b""), "int_1"),
    ):
        with pytest.raises(BadPath) as refused:
            attempt()
        assert refused.value.detail.startswith("The path ")
    assert everything(tmp_path) == before


def test_the_longest_acceptable_names_are_written(files: VaultFiles):
    for name in ("n" * 252 + ".md", "語" * 84 + ".md", "é" * 126 + ".md"):
        files.create(name, b"x", "int_1")
        files.replace(name, etag_of(b"x"), b"y", "int_2")
        assert (files.root / name).read_bytes() == b"y"


def test_links_folders_pipes_and_second_names_are_refused(files: VaultFiles, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "n.md").write_bytes(b"secret")
    (files.root / "link.md").symlink_to(outside / "n.md")
    (files.root / "folder").symlink_to(outside)
    (files.root / "dir.md").mkdir()
    os.mkfifo(files.root / "pipe.md")
    (files.root / "one.md").write_bytes(b"secret")
    os.link(files.root / "one.md", files.root / "two.md")
    before = sorted(str(path) for path in tmp_path.rglob("*") if path.parent.name != "staging")
    for path in ("link.md", "folder/n.md", "dir.md", "pipe.md", "one.md"):
        with pytest.raises(BadPath):
            files.replace(path, etag_of(b"secret"), b"ours", "int_1")
        assert files.spares() == []
    for path in ("link.md", "folder/n.md", "dir.md", "pipe.md"):
        with pytest.raises(BadPath):
            files.remove(path, etag_of(b"secret"), "int_1")
        with pytest.raises(BadPath):
            files.read(path)
    with pytest.raises(GatewayError):
        files.create("folder/new.md", b"ours", "int_1")
    assert sorted(str(path) for path in tmp_path.rglob("*") if path.parent.name != "staging") == before
    assert (outside / "n.md").read_bytes() == b"secret"


def test_a_note_over_the_limit_is_refused(files: VaultFiles):
    with pytest.raises(TooLarge):
        files.create("n.md", b"x" * (1024 * 1024 + 1), "int_1")
    assert everything(files.root) == {}


def _without_exchange(*_names: Path) -> None:
    raise ExchangeUnsupported(95, "not here")


def test_a_disk_without_exchange_still_keeps_the_replaced_text(files: VaultFiles, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files_module, "exchange", _without_exchange)
    note = files.root / "n.md"
    note.write_bytes(b"old")
    with pytest.raises(ChangedElsewhere):  # changed a moment ago
        files.replace("n.md", etag_of(b"old"), b"new", "int_1")
    os.utime(note, (time.time() - 60, time.time() - 60))
    with pytest.raises(ChangedElsewhere):
        files.replace("n.md", etag_of(b"other"), b"new", "int_1")
    assert everything(files.root) == {"n.md": b"old"}
    files.replace("n.md", etag_of(b"old"), b"new", "int_1")
    assert everything(files.root) == {"n.md": b"new"}
    assert files.spare("int_1") == b"old"


def test_a_second_save_while_a_refused_replace_is_undone_is_kept(files: VaultFiles, monkeypatch: pytest.MonkeyPatch):
    note = files.root / "n.md"
    note.write_bytes(b"first save")
    real, calls = files_module.exchange, []

    def exchange_and_save_again(one: Path, other: Path) -> None:
        real(one, other)
        calls.append(1)
        if len(calls) == 1:
            staged = files.root / ".second"
            staged.write_bytes(b"second save")
            staged.replace(note)

    monkeypatch.setattr(files_module, "exchange", exchange_and_save_again)
    with pytest.raises(ChangedElsewhere):
        files.replace("n.md", etag_of(b"never seen"), b"ours", "int_1")
    assert note.read_bytes() == b"second save"


@pytest.mark.parametrize("by_rename", [True, False], ids=["by rename", "in place"])
def test_a_person_who_saves_in_a_tight_loop_loses_nothing(files: VaultFiles, by_rename: bool):
    note = files.root / "n.md"
    note.write_bytes(b"start")
    written: list[bytes] = []
    stop = threading.Event()

    def person() -> None:
        for number in range(1_000_000):
            text = b"person %d" % number
            if by_rename:
                staged = files.root / ".save"
                staged.write_bytes(text)
                staged.replace(note)
            else:
                note.write_bytes(text)
            written.append(text)
            if stop.wait(0.002):
                return

    thread = threading.Thread(target=person)
    thread.start()
    seen: set[bytes] = {b"start"}
    replaced = tries = 0
    while replaced < 200 and tries < 20_000:
        tries += 1
        read = files.read("n.md")
        if read is None:
            continue
        seen.add(read.data)
        try:
            files.replace("n.md", read.etag, b"gateway %d" % tries, f"int_{tries}")
            replaced += 1
        except ChangedElsewhere:
            pass
    stop.set()
    thread.join()
    assert replaced == 200
    kept = seen | {note.read_bytes()} | {files.spare(name) for name in files.spares()}
    # What the person's own next save overwrote was theirs to overwrite; the last one stands or lies in a spare.
    assert written[-1] in kept

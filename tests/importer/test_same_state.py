import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway
from tests.conftest import IMPATIENT
from tests.importer.same_state import disk, fresh, problem_kinds, settle, state

LONG = "Memories/LongTerm"


def note(text: str, **properties: str) -> bytes:
    head = "".join(f"{name}: {value}\n" for name, value in properties.items())
    return f"---\n{head}---\n{text}\n".encode() if head else f"{text}\n".encode()


def mem(number: int) -> str:
    return f"mem_{number:026d}"


def write(root: Path, path: str, data: bytes) -> Path:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    return root / path


def start(root: Path) -> None:
    for number in range(6):
        write(root, f"{LONG}/plain {number}.md", note(f"plain text {number}"))
        write(root, f"{LONG}/named {number}.md", note(f"named text {number}", id=mem(number), type="fact"))
    for number in range(3):
        write(root, f"Users/tom/LongTerm/deep/er/{number}.md", note(f"tom's {number}"))
        write(root, f"Workspaces/lab/Shared/{number}.md", note(f"shared {number}"))


def created(root: Path) -> None:
    write(root, f"{LONG}/new.md", note("new"))
    write(root, "Users/ann/LongTerm/x/y/z.md", note("deep"))


def edited(root: Path) -> None:
    write(root, f"{LONG}/plain 1.md", note("changed"))
    write(root, f"{LONG}/named 1.md", note("changed too", id=mem(1)))


def moved(root: Path) -> None:
    (root / f"{LONG}/plain 1.md").rename(root / "Users/tom/LongTerm/plain 1.md")
    (root / f"{LONG}/named 1.md").rename(root / "Workspaces/lab/Shared/named 1.md")


def moved_and_edited(root: Path) -> None:
    moved(root)
    write(root, "Users/tom/LongTerm/plain 1.md", note("after the move"))
    write(root, "Workspaces/lab/Shared/named 1.md", note("after the move", id=mem(1)))


def renamed_in_case(root: Path) -> None:
    (root / f"{LONG}/plain 1.md").rename(root / f"{LONG}/PLAIN 1.md")
    (root / f"{LONG}/named 1.md").rename(root / f"{LONG}/Named 1.md")


def deleted(root: Path) -> None:
    (root / f"{LONG}/plain 1.md").unlink()
    (root / f"{LONG}/named 1.md").unlink()


def deleted_while_another_takes_the_inode(root: Path) -> None:
    (root / f"{LONG}/plain 1.md").unlink()
    write(root, f"{LONG}/unrelated.md", note("nothing in common"))


def swapped(root: Path) -> None:
    for kind in ("plain", "named"):
        one, two, spare = (root / f"{LONG}/{kind} {name}.md" for name in ("1", "2", "spare"))
        one.rename(spare)
        two.rename(one)
        spare.rename(two)


def rotated(root: Path) -> None:
    names = [root / f"{LONG}/named {number}.md" for number in range(4)]
    texts = [name.read_bytes() for name in names]
    for name, text in zip(names, [*texts[1:], texts[0]], strict=True):
        name.write_bytes(text)


def overwritten_by_a_move(root: Path) -> None:
    for kind in ("plain", "named"):
        (root / f"{LONG}/{kind} 1.md").replace(root / f"{LONG}/{kind} 2.md")


def saved_by_rename(root: Path) -> None:
    for kind in ("plain", "named"):
        write(root, f"{LONG}/.{kind}.swp", note(f"saved {kind}")).replace(root / f"{LONG}/{kind} 1.md")


def folder_renamed(root: Path) -> None:
    (root / "Users/tom/LongTerm/deep").rename(root / "Users/tom/LongTerm/Deeper")


def person_renamed(root: Path) -> None:
    (root / "Users/tom").rename(root / "Users/thomas")


def folder_deleted(root: Path) -> None:
    shutil.rmtree(root / "Workspaces/lab")


def folder_moved_in(root: Path) -> None:
    for number in range(5):
        write(root.parent / "elsewhere", f"in/{number}.md", note(f"from elsewhere {number}"))
    (root.parent / "elsewhere").rename(root / f"{LONG}/elsewhere")


def folder_moved_out(root: Path) -> None:
    (root / "Users/tom").rename(root.parent / "tom")


def made_in_nested_folders(root: Path) -> None:
    for number in range(30):
        write(root, f"{LONG}/a{number}/b/c/n.md", note(f"nested {number}"))


def archived(root: Path) -> None:
    (root / "Memories/Archived").mkdir(parents=True, exist_ok=True)
    (root / f"{LONG}/named 1.md").rename(root / "Memories/Archived/named 1.md")


def moved_out_of_memory(root: Path) -> None:
    (root / "Notes").mkdir()
    (root / f"{LONG}/named 1.md").rename(root / "Notes/named 1.md")


def copied_with_its_id(root: Path) -> None:
    shutil.copy(root / f"{LONG}/named 1.md", root / f"{LONG}/named 1 copy.md")


def copied_then_original_deleted(root: Path) -> None:
    copied_with_its_id(root)
    (root / f"{LONG}/named 1.md").unlink()


def conflict_copies(root: Path) -> None:
    write(root, f"{LONG}/named 1.sync-conflict-20251130-101500-ABC1234.md", note("theirs", id=mem(1)))
    write(root, f"{LONG}/named 2 (Conflicted copy Laptop 202511301200).md", note("theirs", id=mem(2)))


def broken_yaml(root: Path) -> None:
    write(root, f"{LONG}/named 1.md", b"---\nid: [unclosed\n---\ntext\n")
    write(root, f"{LONG}/plain 1.md", b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n")


def emptied(root: Path) -> None:
    write(root, f"{LONG}/new and empty.md", b"")


def linked(root: Path) -> None:
    outside = write(root.parent, "outside.md", note("outside"))
    for kind in ("plain", "named"):
        (root / f"{LONG}/{kind} 1.md").unlink()
        (root / f"{LONG}/{kind} 1.md").symlink_to(outside)
    shutil.move(root / "Users/tom", root.parent / "tom")
    (root / "Users/tom").symlink_to(root.parent / "tom")


def of_other_kinds(root: Path) -> None:
    write(root, f"{LONG}/utf16.md", note("utf16").decode().encode("utf-16"))
    write(root, f"{LONG}/five mb.md", b"x" * 5_000_000)
    os.mkfifo(root / f"{LONG}/pipe.md")
    (root / f"{LONG}/folder.md").mkdir()
    write(root, f"{LONG}/folder.md/inside.md", note("inside"))
    write(root, f"{LONG}/new\nline.md", note("odd name"))
    write(root, f"{LONG}/.hidden.md", note("hidden"))
    write(root, f"{LONG}/x.md.tmp", note("temporary"))


CHANGES: list[Callable[[Path], None]] = [
    created, edited, moved, moved_and_edited, renamed_in_case, deleted, deleted_while_another_takes_the_inode, swapped,
    rotated, overwritten_by_a_move, saved_by_rename, folder_renamed, person_renamed, folder_deleted, folder_moved_in,
    folder_moved_out, made_in_nested_folders, archived, moved_out_of_memory, copied_with_its_id,
    copied_then_original_deleted, conflict_copies, broken_yaml, emptied, linked, of_other_kinds,
]  # fmt: skip


def uncommitted(gateway: Gateway) -> set[str]:
    """Memories that git shows as changed, and files that it still has though they are gone."""
    root = gateway.parts.files.root
    lines = subprocess.check_output(["git", "status", "--porcelain", "-z", "-uall"], cwd=root).decode().split("\0")
    known = state(gateway)
    dirty = {line[3:] for line in lines if line}
    return {path for path in dirty if path not in known or known[path].status != "held"} & {
        path for path in dirty if gateway.parts.importer.places.place_of(path) and not (root / path).is_symlink()
    }


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_found_by_the_scan_ends_as_a_fresh_import_would(
    opened: Callable[..., Gateway], change: Callable[[Path], None]
):
    gateway = opened()
    root = gateway.parts.files.root
    start(root)
    settle(gateway)
    change(root)
    before = disk(gateway)
    settle(gateway)
    assert disk(gateway) == before, "the gateway changed a person's note"
    assert (state(gateway), problem_kinds(gateway)) == fresh(gateway, **IMPATIENT)
    assert uncommitted(gateway) == set()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_made_while_the_gateway_was_off_ends_alike(
    opened: Callable[..., Gateway], change: Callable[[Path], None]
):
    gateway = opened()
    start(gateway.parts.files.root)
    settle(gateway)
    gateway.close()
    change(gateway.parts.files.root)
    again = opened()
    settle(again)
    assert (state(again), problem_kinds(again)) == fresh(again, **IMPATIENT)

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway
from gateway.errors import Tombstoned
from gateway.importer import problems_note
from gateway.importer.write import Order
from gateway.ledger import problems, registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.journal import Actor
from tests.importer.same_state import disk, problem_kinds, settle, state

LONG = "Memories/LongTerm"
HOSTILE = Path(__file__).parents[1] / "data" / "hostile-notes"
AGENT = Actor("agent", "writer", "writer@agents.memory.local", "agent:writer")


def entry(action: str) -> AuditEntry:
    return AuditEntry(action=action, target_type="memory", target_id="x", namespace="n", decision="allow", reason="t")


def delete(gateway: Gateway, path: str) -> None:
    with gateway.parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, [path])[path]
    gateway.parts.writes.write(Order("delete", row.note_id, path, row.etag, None, AGENT, entry("delete"), False))


def test_hostile_notes_are_imported_without_a_byte_of_them_changing(opened: Callable[..., Gateway]):
    gateway = opened()
    place = gateway.parts.files.root / LONG / "hostile"
    shutil.copytree(HOSTILE, place)
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in place.rglob("*") if path.is_file()}
    settle(gateway)
    gateway.parts.importer.import_paths([LONG], again=True, settled=True)
    settle(gateway)
    problems_note.update(gateway.parts.importer)
    assert {path: hashlib.sha256(path.read_bytes()).digest() for path in before} == before
    assert set(disk(gateway)) >= {f"{LONG}/hostile/{path.name}" for path in before if path.suffix == ".md"}
    found = state(gateway)
    assert all(f"{LONG}/hostile/{path.name}" in found for path in before if path.suffix == ".md")


def test_a_forgotten_text_that_comes_back_as_a_file_is_left_on_disk_and_not_recalled(opened: Callable[..., Gateway]):
    gateway = opened()
    root = gateway.parts.files.root
    path = f"{LONG}/secret.md"
    (root / LONG).mkdir(parents=True, exist_ok=True)
    (root / path).write_text("the secret of the house\n")
    settle(gateway)
    delete(gateway, path)
    settle(gateway)
    assert path not in state(gateway)
    for name in ("secret.md", "another name.md"):
        (root / LONG / name).write_text("The  secret of the house\n")
        settle(gateway)
        assert (root / LONG / name).exists()
        assert state(gateway)[f"{LONG}/{name}"].status == "held"
        assert (f"{LONG}/{name}", "forgotten") in problem_kinds(gateway)
    data = b"the secret of the house\n"
    order = Order("create", "mem_" + "7" * 26, f"{LONG}/agent.md", None, data, AGENT, entry("create"), False)
    with pytest.raises(Tombstoned):
        gateway.parts.writes.write(order)


def test_a_persons_own_vault_is_read_and_never_written(opened: Callable[..., Gateway]):
    gateway = opened(vault={"sources": [{"glob": "Notes/**/*.md", "namespace": "user/owner/long_term"}]})
    root = gateway.parts.files.root
    (root / "Notes" / "a").mkdir(parents=True)
    (root / "Notes" / "a" / "n.md").write_bytes(b"mine\r\n")
    settle(gateway)
    with gateway.parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, ["Notes/a/n.md"])["Notes/a/n.md"]
    assert row.read_only
    assert state(gateway)["Notes/a/n.md"].searchable
    assert (root / "Notes" / "a" / "n.md").read_bytes() == b"mine\r\n"
    assert gateway.parts.history.committed(["Notes/a/n.md"]) == {}


def test_a_broken_note_is_held_and_recalled_again_once_mended(opened: Callable[..., Gateway]):
    gateway = opened()
    note = gateway.parts.files.root / LONG / "n.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("---\ntype: fact\n---\ngood\n")
    settle(gateway)
    with gateway.parts.ledger.read() as tx:
        before = registry.notes_by_path(tx, [f"{LONG}/n.md"])[f"{LONG}/n.md"]
    note.write_text("---\ntype: [fact\n---\ngood\n")
    settle(gateway)
    assert state(gateway)[f"{LONG}/n.md"].status == "held"
    problems_note.update(gateway.parts.importer)
    with gateway.parts.ledger.read() as tx:
        [row] = problems.listed(tx)
    text = (gateway.parts.files.root / problems_note.PATH).read_text()
    assert f"| [[{LONG}/n.md]] | {row.line or ''} |" in text
    note.write_text("---\ntype: fact\n---\nbetter\n")
    settle(gateway)
    assert state(gateway)[f"{LONG}/n.md"].searchable
    with gateway.parts.ledger.read() as tx:
        after = registry.notes_by_path(tx, [f"{LONG}/n.md"])[f"{LONG}/n.md"]
    assert (after.note_id, after.version > before.version) == (before.note_id, True)
    assert problem_kinds(gateway) == set()
    problems_note.update(gateway.parts.importer)
    assert "No problems." in (gateway.parts.files.root / problems_note.PATH).read_text()


def test_a_save_that_went_into_the_replaced_file_becomes_the_next_version(opened: Callable[..., Gateway]):
    gateway = opened()
    parts = gateway.parts
    path = f"{LONG}/n.md"
    (parts.files.root / LONG).mkdir(parents=True, exist_ok=True)
    (parts.files.root / path).write_text("old\n")
    settle(gateway)
    with parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, [path])[path]
    with (parts.files.root / path).open("r+b") as editor:  # opened before, written after
        parts.writes.write(Order("update", row.note_id, path, row.etag, b"agent\n", AGENT, entry("update"), False))
        editor.write(b"person\n")
    assert parts.writes.settle_spares(wait_ms=-10_000) == 1
    assert (parts.files.root / path).read_bytes() == b"person\n"
    assert parts.files.spares() == []
    settle(gateway)
    assert state(gateway)[path].searchable


def test_a_new_note_under_the_name_of_one_that_moved_away_leaves_that_one_alone(opened: Callable[..., Gateway]):
    gateway = opened()
    place = gateway.parts.files.root / LONG
    place.mkdir(parents=True, exist_ok=True)
    (place / "Untitled.md").write_text("the first thought\n")
    settle(gateway)
    (place / "Untitled.md").rename(place / "First.md")
    settle(gateway)
    (place / "Untitled.md").write_text("the second thought\n")
    settle(gateway)
    assert all(state(gateway)[f"{LONG}/{name}"].searchable for name in ("First.md", "Untitled.md"))


def test_another_text_under_the_name_of_a_forgotten_one_is_a_memory(opened: Callable[..., Gateway]):
    gateway = opened()
    place = gateway.parts.files.root / LONG
    place.mkdir(parents=True, exist_ok=True)
    (place / "Untitled.md").write_text("to be forgotten\n")
    settle(gateway)
    delete(gateway, f"{LONG}/Untitled.md")
    settle(gateway)
    (place / "Untitled.md").write_text("nothing to do with it\n")
    settle(gateway)
    assert state(gateway)[f"{LONG}/Untitled.md"].searchable
    assert problem_kinds(gateway) == set()

"""A purge takes what was forgotten from where it was forgotten: the same bytes elsewhere stay, and what lives again."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.errors import NotAllowed, NotFound
from gateway.ledger import journal, registry
from gateway.services import clearing, forgetting, search
from gateway.services.clearing import ClearRequest
from gateway.services.requests import Search
from gateway.services.sync import sync
from gateway.vault.rewrite import Names
from gateway.workers import jobs as worker
from tests.forgetting.test_purge import in_git, purge
from tests.forgetting.world import TOM, forget, know, path_of, users
from tests.reviews.world import AGENT, OWNER, git

TEA = "Green tea at four.\n"


def tree(gateway, commit: str = "HEAD") -> set[str]:
    return set(git(gateway.parts.files.root, "ls-tree", "-r", "--name-only", commit).splitlines())


def id_at(gateway, path: str) -> str:
    with gateway.parts.ledger.read() as tx:
        return registry.notes_by_path(tx, [path])[path].note_id


def test_what_another_user_says_in_the_same_bytes_stays_everywhere(opened, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    gateway = opened(git={"quiet_seconds": 0, "remote": "origin"})
    users(gateway)
    gateway.settle()
    root = gateway.parts.files.root
    git(root, "remote", "add", "origin", str(bare))
    for user in ("tom", "ann"):
        note = root / f"Users/{user}/LongTerm/Tea.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(TEA, "utf-8")
    (root / "Users/tom/MEMORY.md").write_text("Tom keeps zanzibarcanaries in the shed.\n", "utf-8")
    gateway.settle()
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    clearing.order(TOM, gateway.parts, ClearRequest.model_validate({"scope": "user", "id": "tom"}))
    worker.run(gateway.parts)
    gateway.settle()
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    before = tree(gateway)
    job = purge(gateway, despite_remote=True)
    assert (job.status, job.error) == ("done", None)
    assert tree(gateway) == before
    assert "Users/ann/LongTerm/Tea.md" in before
    assert in_git(root, "zanzibarcanar") == []
    assert git(root, "log", "--all", "--format=%h", "--", "Users/tom/LongTerm/Tea.md") == ""
    git(tmp_path, "clone", "--quiet", str(bare), "fresh")
    assert (tmp_path / "fresh/Users/ann/LongTerm/Tea.md").read_text("utf-8") == TEA
    assert worker.run(gateway.parts) == 0, "nothing goes on and on"
    with gateway.parts.ledger.read() as tx:
        (version,) = journal.history(tx, id_at(gateway, "Users/ann/LongTerm/Tea.md"))
    assert gateway.parts.history.show(version.sha, version.path) == TEA.encode()


def test_a_new_note_in_the_place_of_a_forgotten_one_stays(opened):
    gateway = opened()
    gateway.settle()
    root = gateway.parts.files.root
    note = root / "Memories/LongTerm/Daily.md"
    note.write_text("The zanzibarcanary of yesterday.\n", "utf-8")
    gateway.settle()
    forgotten = id_at(gateway, "Memories/LongTerm/Daily.md")
    forget(gateway, forgotten)
    gateway.settle()
    note.write_text("A new daily note, about trains.\n", "utf-8")
    gateway.settle()
    assert id_at(gateway, "Memories/LongTerm/Daily.md") == forgotten, "the same place, and so the same id"
    assert purge(gateway).status == "done"
    assert in_git(root, "zanzibarcanary") == []
    assert "Memories/LongTerm/Daily.md" in tree(gateway)
    with gateway.parts.ledger.read() as tx:
        newest = journal.history(tx, forgotten)[0]
    assert gateway.parts.history.show(newest.sha, newest.path) == note.read_bytes()
    assert git(root, "status", "--porcelain") == ""


def test_what_a_person_has_back_is_not_purged(opened):
    gateway = opened()
    note_id = know(gateway, "The bicycle memory, wanted back.")
    gateway.settle()
    file = path_of(gateway, note_id)
    data, path = file.read_bytes(), str(file.relative_to(gateway.parts.files.root))
    forget(gateway, note_id)
    file.write_bytes(data)
    gateway.settle()
    forgetting.undo(OWNER, gateway.parts, path)
    gateway.settle()
    with pytest.raises(NotFound):
        forgetting.erasure_of(OWNER, gateway.parts, note_id)
    assert purge(gateway).status == "done"
    assert path in tree(gateway)
    with gateway.parts.ledger.read() as tx:
        assert len(journal.history(tx, note_id)) >= 2
        assert all(one.path for one in journal.history(tx, note_id))


@pytest.mark.parametrize("who", [AGENT, Principal("reader-key", "reader", "owner")])
def test_only_people_have_forgotten_texts_back(opened, who):
    gateway = opened()
    with pytest.raises(NotAllowed):
        forgetting.undo(who, gateway.parts, "Memories/LongTerm/any.md")


def test_a_wish_to_have_a_file_back_reads_nothing_outside_the_vault(opened, tmp_path):
    """Also where the owner reads all Markdown of the vault in place: an outside path is no place of the vault."""
    gateway = opened(vault={"sources": [{"glob": "**/*.md", "namespace": "user/owner/long_term"}]})
    gateway.settle()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("The zebra is outside.", "utf-8")
    relative = "../" * 3 + f"{tmp_path.name}/outside/x.md"
    for path in (str(outside / "x.md"), str(outside), relative, "Memories/../../outside/x.md", "/", "."):
        with pytest.raises(NotFound):
            forgetting.undo(OWNER, gateway.parts, path)
        gateway.parts.importer.import_paths([path], settled=True)
    gateway.settle()
    asked = Search.model_validate({"query": "zebra outside"})
    assert search.search(OWNER, gateway.parts, gateway.query_vectors, asked).results == []


def test_names_are_found_in_one_pass():
    names = Names({"a/b.md", "b.md", "Users/é x.md"}, "[forgotten]")
    text = "Write a/b.md, then xb.md, Users/é x.md and c.md.".encode()
    assert names.within(text)
    assert not names.within(b"nothing.md here")
    assert names.replaced(text).decode() == "Write [forgotten], then x[forgotten], [forgotten] and c.md."

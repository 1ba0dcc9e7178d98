"""Twelve ways in which a forgotten memory could come back; by none of them is it recalled, until a user writes it."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.errors import NotAllowed, NotFound, Tombstoned
from gateway.ledger import audit, registry
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.services import backups, forgetting, imports, memories, rebuild, sandboxes, sessions
from gateway.services.operation_requests import ImportBatch
from gateway.services.requests import CommitSession, NewEpisode, NewMemory
from gateway.services.sandboxes import SandboxSync
from gateway.services.sync import sync
from tests.forgetting.world import (
    ANN,
    ANY,
    CANARY,
    TOM,
    forget,
    know,
    path_of,
    problems,
    recalled,
    told,
    users,
)
from tests.reviews.world import AGENT, OWNER, change, git, infer, review_of

OTHER_AGENT = Principal("other-key", "agent", "owner", "second")


class Forgotten:
    """A gateway in which one memory was committed, indexed, and forgotten; `data` are the bytes its file had."""

    def __init__(self, opened, **settings) -> None:
        self.gateway = opened("data", **settings)
        self.id = know(self.gateway)
        self.path = path_of(self.gateway, self.id)
        self.name = self.path.relative_to(self.gateway.parts.files.root).as_posix()
        assert recalled(self.gateway)
        self.data = self.path.read_bytes()
        self.root = self.gateway.parts.files.root
        self.before = git(self.root, "rev-parse", "HEAD").strip()

    def forget(self) -> Forgotten:
        forget(self.gateway, self.id)
        assert not recalled(self.gateway)
        assert not self.path.exists()
        return self


@pytest.fixture
def forgotten(opened) -> Forgotten:
    return Forgotten(opened).forget()


def test_the_file_put_back(forgotten):
    forgotten.path.write_bytes(forgotten.data)
    assert not recalled(forgotten.gateway)
    assert forgotten.path.read_bytes() == forgotten.data
    assert problems(forgotten.gateway) == [forgotten.name]


def test_git_checkout_of_an_old_commit(forgotten):
    git(forgotten.root, "checkout", "--quiet", forgotten.before, "--", forgotten.name)
    assert not recalled(forgotten.gateway)
    assert problems(forgotten.gateway) == [forgotten.name]


def test_a_pull(opened, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    world = Forgotten(opened, git={"quiet_seconds": 0, "remote": "origin"})
    git(world.root, "remote", "add", "origin", str(bare))
    sync(LOCAL_OPERATOR, world.gateway.parts, world.gateway.branches)
    git(tmp_path, "clone", "--quiet", str(bare), str(tmp_path / "clone"))
    world.forget()
    sync(LOCAL_OPERATOR, world.gateway.parts, world.gateway.branches)
    clone = tmp_path / "clone"
    git(clone, "pull", "--quiet")
    (clone / "Memories/LongTerm").mkdir(parents=True, exist_ok=True)
    (clone / "Memories/LongTerm/colleague.md").write_bytes(world.data)
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "again")
    git(clone, "push", "--quiet")
    sync(LOCAL_OPERATOR, world.gateway.parts, world.gateway.branches)
    assert (world.root / "Memories/LongTerm/colleague.md").exists()
    assert not recalled(world.gateway)


def test_restore_from_a_backup(opened, tmp_path):
    world = Forgotten(opened)
    archive = tmp_path / "backup.tar.gz"
    backups.backup(world.gateway.parts.settings, archive)
    world.forget()
    backups.restore(archive, tmp_path / "restored")
    restored = opened("restored")
    assert not recalled(restored)
    assert problems(restored) == [world.name]
    assert (restored.parts.files.root / world.name).read_bytes() == world.data


def test_an_import(forgotten):
    batch = {"namespace": "user/owner/long_term", "notes": [{"path": "again.md", "text": CANARY}]}
    done = imports.import_notes(LOCAL_OPERATOR, forgotten.gateway.parts, ImportBatch.model_validate(batch))
    assert [one.outcome for one in done] == ["skipped"]
    assert not recalled(forgotten.gateway)


def test_extraction_from_a_conversation(forgotten):
    parts = forgotten.gateway.parts
    said = f"User: Please remember that {CANARY[0].lower()}{CANARY[1:]}\nUser: {CANARY}"
    new = NewEpisode.model_validate({"session_id": "s", "content": said})
    sessions.add_episode(AGENT, parts, new)
    body = CommitSession.model_validate({"promote": True, "min_importance": 0})
    done = sessions.commit_session(AGENT, parts, "s", body, None)
    assert CANARY not in [one.id for one in done.promoted]
    assert not recalled(forgotten.gateway)


def test_a_duplicate_under_another_name(forgotten):
    (forgotten.root / "Memories/LongTerm/Bicycle.md").write_text(CANARY + "\n", "utf-8")
    assert not recalled(forgotten.gateway)
    assert problems(forgotten.gateway) == ["Memories/LongTerm/Bicycle.md"]


def test_a_moved_and_edited_copy(forgotten):
    copy = forgotten.root / "Memories/LongTerm/Garage/deep.md"
    copy.parent.mkdir()
    copy.write_bytes(forgotten.data.replace(b"forty-one", b"forty-two"))
    assert not recalled(forgotten.gateway)
    assert problems(forgotten.gateway) == ["Memories/LongTerm/Garage/deep.md"]


def test_a_rebuild(forgotten):
    forgotten.path.write_bytes(forgotten.data)
    forgotten.gateway.settle()
    rebuild.rebuild(LOCAL_OPERATOR, forgotten.gateway.parts)
    assert not recalled(forgotten.gateway)


def test_a_retried_request(opened):
    gateway = opened()
    claim = Claim("owner-key", "first", "hash")
    first = memories.create(OWNER, gateway.parts, NewMemory.model_validate({"content": CANARY}), claim=claim)
    forget(gateway, first.id)
    again = memories.create(OWNER, gateway.parts, NewMemory.model_validate({"content": CANARY}), claim=claim)
    assert isinstance(again, FirstAnswer)
    assert again.answer["id"] == first.id
    assert "path" not in again.answer
    assert not recalled(gateway)


def test_a_second_agent(forgotten):
    body = {"content": CANARY, "source": "conversation", "confidence": 0.99}
    for agent in (AGENT, OTHER_AGENT):
        with pytest.raises((Tombstoned, NotFound)):
            memories.create(agent, forgotten.gateway.parts, NewMemory.model_validate(body))
    assert not recalled(forgotten.gateway)


def test_a_restart_with_the_file_back(forgotten, opened):
    forgotten.path.write_bytes(forgotten.data)
    forgotten.gateway.close()
    again = opened("data")
    assert not recalled(again)
    assert problems(again) == [forgotten.name]


def test_a_review_draft_copied_back(opened):
    gateway = opened()
    draft = memories.create(
        AGENT, gateway.parts, NewMemory.model_validate({"content": CANARY, "source": "conversation", "confidence": 0.7})
    ).review
    held = (gateway.parts.files.root / draft.path).read_bytes()
    note_id = know(gateway)
    forget(gateway, note_id)
    assert not (gateway.parts.files.root / draft.path).exists()
    (gateway.parts.files.root / "Reviews/Accepted/again.md").write_bytes(
        held.replace(b"decision:", b"decision: accept")
    )
    assert not recalled(gateway)


def test_then_an_explicit_write_by_the_user(forgotten):
    forgotten.path.write_bytes(forgotten.data)
    forgotten.gateway.settle()
    know(forgotten.gateway)
    assert recalled(forgotten.gateway)


def test_an_explicit_write_is_audited(forgotten):
    know(forgotten.gateway)
    with forgotten.gateway.parts.ledger.read() as tx:
        actions = [one.entry.action for one in audit.page(tx, audit.AuditFilter(), limit=50, before=None)]
    assert "release_tombstone" in actions


def test_a_person_has_the_file_back(forgotten):
    forgotten.path.write_bytes(forgotten.data)
    forgotten.gateway.settle()
    with pytest.raises((NotAllowed, NotFound)):
        forgetting.undo(AGENT, forgotten.gateway.parts, forgotten.name)
    row = forgetting.undo(OWNER, forgotten.gateway.parts, forgotten.name)
    assert row.id == forgotten.id
    assert recalled(forgotten.gateway)
    assert forgotten.path.read_bytes() == forgotten.data
    assert not problems(forgotten.gateway)


def test_the_same_words_of_another_user_stay(opened):
    gateway = opened()
    users(gateway)
    mine, theirs = know(gateway, who=TOM, user_id="tom"), know(gateway, who=ANN, user_id="ann")
    forget(gateway, mine, TOM)
    assert not recalled(gateway, who=TOM)
    assert recalled(gateway, who=ANN)
    assert path_of(gateway, theirs).exists()


def test_a_twin_with_the_same_text_is_forgotten_with_it_and_left_on_disk(opened):
    gateway = opened()
    note_id = know(gateway)
    twin = gateway.parts.files.root / "Memories/LongTerm/twin.md"
    twin.write_text(CANARY, "utf-8")
    gateway.settle()
    forget(gateway, note_id)
    assert not recalled(gateway)
    assert twin.read_text("utf-8") == CANARY
    assert problems(gateway) == ["Memories/LongTerm/twin.md"]


def test_one_of_two_twins_can_be_forgotten_alone(opened):
    gateway = opened()
    note_id = know(gateway)
    (gateway.parts.files.root / "Memories/LongTerm/twin.md").write_text(CANARY, "utf-8")
    gateway.settle()
    forgetting.forget(OWNER, gateway.parts, note_id, ANY, alone=True)
    assert recalled(gateway)
    assert not problems(gateway)


def test_an_agents_told_memory_does_not_come_back_by_the_agent(opened):
    gateway = opened()
    done = told(gateway)
    forget(gateway, done.id)
    with pytest.raises(Tombstoned):
        told(gateway, source="conversation", namespace="user/owner/long_term")
    assert not recalled(gateway)


def test_a_sandbox_that_still_has_it(opened):
    gateway = opened()
    parts = gateway.parts
    note = parts.files.root / "Users/owner/MEMORY.md"
    note.write_text(CANARY + "\n", "utf-8")
    gateway.settle()
    assert recalled(gateway)
    for principal in (AGENT, OWNER):
        asked = SandboxSync.model_validate({"mode": "round", "files": {"MEMORY.md": CANARY + "\n"}})
        sandboxes.sync(principal, parts, "box", asked)
    with parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, ["Users/owner/MEMORY.md"])["Users/owner/MEMORY.md"]
    forget(gateway, row.note_id)
    assert not recalled(gateway)
    for principal in (AGENT, OWNER):
        for mode in ("round", "new_session", "force"):
            body = {"mode": mode, "dirty": True, "files": {"MEMORY.md": CANARY + "\n"}}
            answer = sandboxes.sync(principal, parts, "box", SandboxSync.model_validate(body))
            assert "MEMORY.md" not in answer.written_back
    assert not recalled(gateway)


def test_a_draft_that_says_it_among_other_things_goes_too(opened):
    gateway = opened()
    note_id = know(gateway)
    profile = know(gateway, "Something else of the owner's.")
    quoting = change(gateway, profile, content=f"Something else of the owner's.\n\n- {CANARY}\n")
    other = change(gateway, note_id, importance=0.9)
    untouched = infer(gateway, "The owner may like herons.")
    forget(gateway, note_id)
    assert [review_of(gateway, one).status for one in (quoting, other, untouched)] == [
        "forgotten",
        "forgotten",
        "pending",
    ]
    names = [path.name for path in (gateway.parts.files.root / "Reviews").rglob("*.md")]
    assert [name for name in names if "herons" in name]
    assert not [
        path for path in (gateway.parts.files.root / "Reviews").rglob("*.md") if CANARY in path.read_text("utf-8")
    ]

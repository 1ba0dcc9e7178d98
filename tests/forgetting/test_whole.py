"""A delete is whole: in one transaction with its twins and the drafts that quote it, and its report is true."""

from __future__ import annotations

import pytest

from gateway.errors import Tombstoned
from gateway.ledger import registry
from gateway.ledger.registry import NoteFilter
from gateway.services import forgetting, imports, memories, sessions
from gateway.services.operation_requests import ImportBatch
from gateway.services.requests import CommitSession, MemoryPatch, NewEpisode, NewMemory
from tests.forgetting.world import ANY, CANARY, TOM, forget, know, path_of, recalled, users
from tests.reviews.world import AGENT, OWNER, change, git, infer, review_of


def states(deleted) -> dict[str, str]:
    return {one.place: one.state for one in deleted.erasure}


def agents_own(gateway, text: str):
    body = {"content": text, "namespace": "agent/assistant/memory", "source": "manual", "confidence": 0.9}
    return memories.create(AGENT, gateway.parts, NewMemory.model_validate(body))


def with_twin(gateway) -> tuple[str, str]:
    """A memory, a file beside it that says the same, and a draft that quotes it: ids of memory and draft."""
    note_id = know(gateway)
    other = know(gateway, "The owner keeps a list.")
    (gateway.parts.files.root / "Memories/LongTerm/twin.md").write_text(CANARY, "utf-8")
    gateway.settle()
    draft = change(gateway, other, content=f"The owner keeps a list.\n\n- {CANARY}")
    gateway.settle()
    return note_id, draft


def test_an_agent_cannot_write_a_forgotten_text_into_another_memory(opened):
    gateway = opened()
    gone, kept = agents_own(gateway, CANARY), agents_own(gateway, "What must not be lost.")
    gateway.settle()
    forgetting.forget(AGENT, gateway.parts, gone.id, ANY)
    before = path_of(gateway, kept.id).read_bytes()
    with pytest.raises(Tombstoned):
        memories.update(AGENT, gateway.parts, kept.id, MemoryPatch.model_validate({"content": CANARY}), ANY)
    assert path_of(gateway, kept.id).read_bytes() == before
    assert memories.get(AGENT, gateway.parts, kept.id).content == "What must not be lost."


def test_an_import_leaves_no_file_of_what_was_forgotten(opened):
    gateway = opened()
    note_id = know(gateway)
    forget(gateway, note_id)
    batch = {"namespace": "user/owner/long_term", "notes": [{"path": "again.md", "text": CANARY}]}
    from gateway.access.principal import LOCAL_OPERATOR

    (outcome,) = imports.import_notes(LOCAL_OPERATOR, gateway.parts, ImportBatch.model_validate(batch))
    assert outcome.outcome == "skipped"
    assert list(gateway.parts.files.root.rglob("again.md")) == []


def test_twins_and_quoting_drafts_go_in_the_same_transaction(opened, monkeypatch):
    """Killed right after it, nothing of it is recalled at the next start."""
    gateway = opened()
    note_id, draft = with_twin(gateway)

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "finish", die)
    with pytest.raises(KeyboardInterrupt):
        forget(gateway, note_id)
    monkeypatch.undo()
    with gateway.parts.ledger.read() as tx:
        assert registry.notes_by_path(tx, ["Memories/LongTerm/twin.md"]) == {}
    assert review_of(gateway, draft).status == "forgotten"
    gateway.close()
    again = opened()
    assert recalled(again) == []
    assert forgetting.finish(again.parts) == 1


def test_a_draft_that_cannot_be_read_keeps_nothing_from_being_forgotten(opened, tmp_path):
    gateway = opened()
    note_id, _ = with_twin(gateway)
    unreadable = infer(gateway, "The owner may like herons.")
    gateway.settle()
    file = gateway.parts.files.root / review_of(gateway, unreadable).path
    (tmp_path / "elsewhere.md").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere.md")
    assert forget(gateway, note_id).deleted
    assert recalled(gateway) == []


@pytest.mark.parametrize("who", [OWNER, AGENT])
def test_nothing_that_the_ledger_says_of_a_twin_is_listed(opened, who):
    gateway = opened()
    note_id, _ = with_twin(gateway)
    forget(gateway, note_id)
    gateway.settle()
    listed = memories.page(who, gateway.parts, NoteFilter(status=None), limit=100, cursor=None).memories
    assert [one for one in listed if "bicycle" in f"{one.content}{one.summary}{one.title}{one.tags}"] == []


def test_what_a_person_committed_themselves_remains_in_git_says_the_report(opened):
    gateway = opened(git={"quiet_seconds": 0, "commit_people": "never"})
    root = gateway.parts.files.root
    (root / "Memories/LongTerm/mine.md").write_text(CANARY, "utf-8")
    gateway.settle()
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Mine")
    with gateway.parts.ledger.read() as tx:
        note_id = registry.notes_by_path(tx, ["Memories/LongTerm/mine.md"])["Memories/LongTerm/mine.md"].note_id
    assert states(forget(gateway, note_id))["git"] == forgetting.IN_GIT


def test_the_report_does_not_hide_unused_pages(opened):
    gateway = opened()
    assert states(forget(gateway, know(gateway)))["database files"] == forgetting.IN_FILES


def test_a_summary_that_was_being_made_does_not_keep_the_words(opened, monkeypatch):
    gateway = opened()
    users(gateway)
    note_id = know(gateway, CANARY, TOM, user_id="tom")
    said = NewEpisode.model_validate({"session_id": "s", "user_id": "tom", "content": f"User: {CANARY}"})
    sessions.add_episode(TOM, gateway.parts, said)
    summarize, first = sessions.summarize, []

    def slow(wanted, model):
        made = summarize(wanted, model)
        if not first:
            first.append(forget(gateway, note_id, TOM))
        return made

    monkeypatch.setattr(sessions, "summarize", slow)
    done = sessions.commit_session(TOM, gateway.parts, "s", CommitSession.model_validate({"promote": False}), None)
    assert "bicycle" not in done.summary
    assert "bicycle" not in sessions.get(TOM, gateway.parts, "s", user_id="tom", agent_id=None).summary

"""What comes after forgetting: a restored backup, another agent of the same name, a wider order, files that stay."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.errors import NotFound
from gateway.ledger import jobs, reviews
from gateway.services import (
    agents,
    backups,
    clearing,
    directives,
    events,
    forgetting,
    memories,
    purging,
    sessions,
    workspaces,
)
from gateway.services.clearing import ClearRequest
from gateway.services.requests import NewAgent, NewEpisode, NewMemory, NewWorkspace
from gateway.vault.files import VaultFiles
from gateway.workers import jobs as worker
from tests.forgetting.world import CANARY, TOM, forget, know, recalled, users
from tests.reviews.world import review_of

HERMES = Principal("hermes-key", "agent", "tom", "hermes")


def hermes(gateway, owner: str = "tom") -> None:
    agents.create(
        LOCAL_OPERATOR, gateway.parts, NewAgent.model_validate({"agent_id": "hermes", "owner_user_id": owner})
    )


def clear(gateway, scope: str, name: str, who=TOM, **options):
    return clearing.order(who, gateway.parts, ClearRequest.model_validate({"scope": scope, "id": name} | options))


def test_a_restored_backup_keeps_words_drafts_and_sessions_forgotten(opened, tmp_path):
    gateway = opened()
    users(gateway)
    hermes(gateway)
    for session in ("told", "cleared"):
        said = NewEpisode.model_validate({"session_id": session, "user_id": "tom", "content": f"User: {CANARY}"})
        sessions.add_episode(TOM, gateway.parts, said)
    note_id = know(gateway, CANARY, TOM, user_id="tom")
    guess = {"content": f"Tom may like tours: {CANARY}", "source": "conversation", "confidence": 0.7}
    draft = memories.create(HERMES, gateway.parts, NewMemory.model_validate(guess)).review
    gateway.settle()
    backups.backup(gateway.parts.settings, tmp_path / "before.tar.gz")
    forget(gateway, note_id, TOM)
    clear(gateway, "session", "cleared")
    worker.run(gateway.parts)
    gateway.close()
    assert backups.restore(tmp_path / "before.tar.gz", tmp_path / "restored").kept_forgotten == 1
    restored = opened("restored")
    worker.run(restored.parts)
    assert recalled(restored, who=TOM) == []
    told = sessions.episodes(TOM, restored.parts, "told", user_id="tom", agent_id=None, after=0, limit=5)
    assert [one.content for one in told] == ["User: [forgotten]"]
    with pytest.raises(NotFound):
        sessions.get(TOM, restored.parts, "cleared", user_id="tom", agent_id=None)
    assert review_of(restored, draft.id).status == reviews.FORGOTTEN
    assert not (restored.parts.files.root / draft.path).exists()
    assert forgetting.erasure_of(TOM, restored.parts, note_id).deleted
    wanted = purging.PurgeRequest.model_validate({"memory_ids": [note_id]})
    assert purging.order(LOCAL_OPERATOR, restored.parts, wanted).kind == "purge"


def test_an_agent_of_a_retired_ones_name_gets_none_of_its_rights(opened):
    gateway = opened()
    users(gateway)
    hermes(gateway)
    shop = {"workspace_id": "shop", "owner_user_id": "tom", "member_user_ids": ["tom", "ann"]}
    workspaces.create(TOM, gateway.parts, NewWorkspace.model_validate(shop | {"allowed_agent_ids": ["hermes"]}))
    body = {"content": "The code of the shop is on the door.", "namespace": "workspace/shop/shared"}
    made = memories.create(TOM, gateway.parts, NewMemory.model_validate(body | {"workspace_id": "shop"}))
    assert memories.get(HERMES, gateway.parts, made.id)
    clearing.retire(TOM, gateway.parts, "hermes")
    worker.run(gateway.parts)
    hermes(gateway, "ann")
    with pytest.raises(NotFound):
        memories.get(Principal("new-key", "agent", "ann", "hermes"), gateway.parts, made.id)
    assert workspaces.get(TOM, gateway.parts, "shop").allowed_agent_ids == []


def test_what_people_rejected_of_a_retired_agent_does_not_weigh_on_the_next(opened, monkeypatch):
    gateway = opened()
    users(gateway)
    hermes(gateway)
    guess = {"content": "Tom may like whales.", "source": "conversation", "confidence": 0.7}
    draft = memories.create(HERMES, gateway.parts, NewMemory.model_validate(guess)).review
    from gateway.services.requests import RejectReview
    from gateway.services.reviews import reject

    reject(TOM, gateway.parts, draft.id, RejectReview.model_validate({}))

    def trust() -> float:
        with gateway.parts.ledger.read() as tx:
            return reviews.trust(tx, "agent:hermes", "user/tom/long_term")

    assert trust() < 1
    clearing.retire(TOM, gateway.parts, "hermes")
    worker.run(gateway.parts)
    hermes(gateway)
    assert trust() == 1


def test_an_open_clear_is_widened_to_directives(opened):
    gateway = opened()
    users(gateway)
    rule = {"content": "Answer in English.", "kind": "style", "user_id": "tom"}
    directives.create(TOM, gateway.parts, directives.NewDirective.model_validate(rule))
    know(gateway, "Tom likes otters.", TOM, user_id="tom")
    first = clear(gateway, "user", "tom")
    wider = clear(gateway, "user", "tom", include_directives=True)
    assert wider.id == first.id
    assert wider.options["include_directives"]
    assert clear(gateway, "user", "tom").options["include_directives"], "never narrowed"
    worker.run(gateway.parts)
    assert directives.listed(TOM, gateway.parts, "tom") == []


def test_files_that_cannot_be_taken_away_hold_nothing_up(opened, monkeypatch):
    """They stay where they are, are not recalled, and are listed as problems; the rest of the scope goes."""
    gateway = opened()
    users(gateway)
    monkeypatch.setattr(clearing, "BATCH", 3)
    stuck = gateway.parts.files.root / "Users/tom/LongTerm/Stuck"
    stuck.mkdir(parents=True)
    for number in range(4):
        (stuck / f"{number}.md").write_text(f"Tom's stuck bicycle {number}.", "utf-8")
        know(gateway, f"Tom's bicycle {number}.", TOM, user_id="tom")
    gateway.settle()
    remove = VaultFiles.remove

    def refuse(self, path, *rest):
        if "/Stuck/" in path:
            raise PermissionError(13, "Permission denied")
        return remove(self, path, *rest)

    monkeypatch.setattr(VaultFiles, "remove", refuse)
    job = clear(gateway, "user", "tom")
    assert worker.run(gateway.parts) == 1
    with gateway.parts.ledger.read() as tx:
        done = jobs.job(tx, job.id)
    assert (done.status, done.error) == ("done", None)
    assert recalled(gateway, who=TOM) == []
    assert sorted(path.name for path in stuck.iterdir()) == ["0.md", "1.md", "2.md", "3.md"]
    assert know(gateway, "Tom begins anew.", TOM, user_id="tom")


def test_who_listens_on_after_a_restore_learns_that_it_missed_something(opened, tmp_path):
    """Though new numbers have overtaken the one that it heard last."""
    gateway = opened()
    know(gateway, "The first.")
    backups.backup(gateway.parts.settings, tmp_path / "before.tar.gz")
    know(gateway, "The second.")
    heard, lost = events.beginning(LOCAL_OPERATOR, gateway.parts, None)
    assert not lost
    gateway.close()
    backups.restore(tmp_path / "before.tar.gz", tmp_path / "restored")
    restored = opened("restored")
    for number in range(5):
        know(restored, f"Another one, {number}.")
    assert events.beginning(LOCAL_OPERATOR, restored.parts, heard)[1]
    now = events.beginning(LOCAL_OPERATOR, restored.parts, None)[0]
    assert events.beginning(LOCAL_OPERATOR, restored.parts, now) == (now, False)

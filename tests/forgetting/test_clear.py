"""Clearing a user, an agent, a workspace, a session: closed at once, done in batches, gone on with after a kill."""

from __future__ import annotations

import pytest

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.errors import BeingCleared, GatewayError, NotAllowed, NotFound, Tombstoned
from gateway.ledger import agents as agent_rows
from gateway.ledger import audit, fences, jobs, registry, structured, tombstones
from gateway.services import (
    agents,
    clearing,
    context,
    directives,
    forgetting,
    history,
    memories,
    profiles,
    prompts,
    search,
    sessions,
    workspaces,
)
from gateway.services import reviews as review_service
from gateway.services.clearing import ClearRequest
from gateway.services.context_requests import ContextRequest
from gateway.services.requests import NewAgent, NewEpisode, NewMemory, NewWorkspace, Search
from gateway.workers import jobs as worker
from tests.forgetting.world import ANN, ANY, TOM, know, users
from tests.reviews.world import git, infer

HERMES = Principal("hermes-key", "agent", "tom", "hermes")


@pytest.fixture
def gateway(opened):
    made = opened()
    users(made)
    agents.create(LOCAL_OPERATOR, made.parts, NewAgent.model_validate({"agent_id": "hermes", "owner_user_id": "tom"}))
    made.settle()
    return made


def clear(gateway, who=TOM, **fields) -> jobs.Job:
    return clearing.order(who, gateway.parts, ClearRequest.model_validate(fields))


def left(gateway, start: str) -> list[str]:
    with gateway.parts.ledger.read() as tx:
        rows, _ = registry.page(tx, registry.NoteFilter(status=None), limit=10_000, after=None)
    return [row.namespace for row in rows if row.namespace.startswith(start)]


def filled(gateway, count: int = 300) -> list[str]:
    """Tom's memories, more than one batch of them, and things beside them."""
    ids = [know(gateway, f"Tom's otter number {n} swims.", TOM, user_id="tom") for n in range(count)]
    know(gateway, "Ann's otter swims too.", ANN, user_id="ann")
    profile = gateway.parts.files.root / "Users/tom/Profile.md"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text("# Tom\n\n## Stable facts\n\n- Tom keeps otters.\n", "utf-8")
    said = NewEpisode.model_validate({"session_id": "s", "user_id": "tom", "content": "User: I like otters."})
    sessions.add_episode(TOM, gateway.parts, said)
    rule = {"content": "Answer briefly.", "kind": "style"}
    directives.create(TOM, gateway.parts, directives.NewDirective.model_validate(rule | {"user_id": "tom"}))
    inferred = {"content": "Tom likes otters.", "source": "conversation", "confidence": 0.7}
    memories.create(HERMES, gateway.parts, NewMemory.model_validate(inferred))
    gateway.settle()
    return ids


def readable(gateway, who=TOM, user_id: str = "tom") -> list[str]:
    """Everything that any way of reading says of otters, by where it said it."""
    parts, found = gateway.parts, []

    def look(name, ask):
        try:
            answer = repr(ask())
        except (NotFound, BeingCleared):
            return
        if "otter" in answer.replace("otters.md", ""):
            found.append(name)

    query = {"query": "otter swims", "user_id": user_id, "limit": 50}
    asked = {"query": "otter", "user_id": user_id, "turn_id": "t"}
    wanted = registry.NoteFilter(user_id=user_id, status=None)
    look("search", lambda: search.search(who, parts, gateway.query_vectors, Search.model_validate(query)))
    look("list", lambda: memories.page(who, parts, wanted, limit=200, cursor=None))
    look(
        "context",
        lambda: (
            context.context(
                who, parts, gateway.query_vectors, gateway.turns, ContextRequest.model_validate(asked)
            ).memory
        ),
    )
    look("profile", lambda: profiles.get(who, parts, user_id))
    look("reviews", lambda: review_service.page(who, parts, review_service.ReviewFilter(), limit=50, cursor=None))
    look("session", lambda: sessions.episodes(who, parts, "s", user_id=user_id, agent_id=None, after=0, limit=50))
    return found


def test_a_cleared_user_is_closed_at_once_and_empty_in_the_end(gateway):
    ids = filled(gateway)
    assert set(readable(gateway)) == {"search", "list", "context", "profile", "reviews", "session"}
    job = clear(gateway, scope="user", id="tom")
    assert job.status == "waiting"
    assert readable(gateway) == readable(gateway, LOCAL_OPERATOR) == []
    for ask in (memories.get, history.history):
        with pytest.raises(NotFound):
            ask(TOM, gateway.parts, ids[0], **({"with_diff": True} if ask is history.history else {}))
    with pytest.raises(BeingCleared):
        know(gateway, "A new otter.", TOM, user_id="tom")
    with pytest.raises(BeingCleared):
        sessions.add_episode(
            TOM, gateway.parts, NewEpisode.model_validate({"session_id": "s", "user_id": "tom", "content": "again"})
        )
    assert "list" in readable(gateway, ANN, "ann")
    know(gateway, "Ann writes on about an otter.", ANN, user_id="ann")
    assert worker.run(gateway.parts) == 1
    gateway.settle()
    assert readable(gateway) == []
    assert set(left(gateway, "user/tom/")) == {"user/tom/directives"}
    files = [path.name for path in (gateway.parts.files.root / "Users/tom").rglob("*.md")]
    assert not [name for name in files if "otter number" in name]
    assert directives.listed(TOM, gateway.parts, "tom")
    assert "list" in readable(gateway, ANN, "ann")
    with gateway.parts.ledger.read() as tx:
        done = jobs.job(tx, job.id)
    assert done is not None
    assert (done.status, done.done) == ("done", done.total)


def test_what_was_cleared_does_not_come_back_and_new_things_can_be_written(gateway):
    filled(gateway, 3)
    kept = {path: path.read_bytes() for path in (gateway.parts.files.root / "Users/tom/LongTerm").glob("*.md")}
    clear(gateway, scope="user", id="tom")
    worker.run(gateway.parts)
    for path, data in kept.items():
        path.write_bytes(data)
    gateway.settle()
    assert readable(gateway) == []
    with pytest.raises(Tombstoned):
        memories.create(
            HERMES,
            gateway.parts,
            NewMemory.model_validate(
                {"content": "Tom's otter number 1 swims.", "source": "conversation", "confidence": 0.9}
            ),
        )
    know(gateway, "A new otter.", TOM, user_id="tom")
    gateway.settle()
    assert "search" in readable(gateway)


def test_directives_go_when_asked_for(gateway):
    filled(gateway, 2)
    clear(gateway, scope="user", id="tom", include_directives=True)
    worker.run(gateway.parts)
    gateway.settle()
    assert left(gateway, "user/tom/") == []


def test_a_session_is_cleared_alone(gateway):
    filled(gateway, 2)
    for session_id in ("s", "other"):
        said = {"session_id": session_id, "user_id": "ann", "content": "User: An otter of Ann's."}
        sessions.add_episode(ANN, gateway.parts, NewEpisode.model_validate(said))
    clear(gateway, scope="session", id="s")
    assert "session" not in readable(gateway)
    assert "session" in readable(gateway, ANN, "ann")
    worker.run(gateway.parts)
    assert "search" in readable(gateway)
    said = {"session_id": "s", "user_id": "tom", "content": "User: Something else."}
    sessions.add_episode(TOM, gateway.parts, NewEpisode.model_validate(said))
    assert "session" not in readable(gateway)


def test_a_workspace_is_cleared_by_its_owner_only(gateway):
    workspace = {"workspace_id": "shop", "owner_user_id": "tom", "member_user_ids": ["tom", "ann"]}
    workspaces.create(TOM, gateway.parts, NewWorkspace.model_validate(workspace))
    body = {"content": "The shop's otter sign.", "namespace": "workspace/shop/shared", "workspace_id": "shop"}
    memories.create(ANN, gateway.parts, NewMemory.model_validate(body))
    with pytest.raises(NotAllowed):
        clear(gateway, ANN, scope="workspace", id="shop")
    clear(gateway, scope="workspace", id="shop")
    worker.run(gateway.parts)
    assert left(gateway, "workspace/shop/") == []


@pytest.mark.parametrize(
    ("who", "fields"),
    [
        (ANN, {"scope": "user", "id": "tom"}),
        (ANN, {"scope": "agent", "id": "hermes"}),
        (ANN, {"scope": "session", "id": "s"}),
        (ANN, {"scope": "workspace", "id": "nowhere"}),
        (HERMES, {"scope": "user", "id": "tom"}),
        (Principal("r", "reader", "tom"), {"scope": "user", "id": "tom"}),
    ],
)
def test_nobody_else_clears(gateway, who, fields):
    filled(gateway, 1)
    with pytest.raises((NotFound, NotAllowed)):
        clear(gateway, who, **fields)
    assert "search" in readable(gateway)


def test_an_agent_that_is_taken_out_leaves_nothing_behind(gateway):
    own = {"content": "Hermes learned an otter trick.", "namespace": "agent/hermes/memory", "source": "manual"}
    made = memories.create(HERMES, gateway.parts, NewMemory.model_validate(own))
    forgotten = memories.create(
        HERMES, gateway.parts, NewMemory.model_validate(own | {"content": "Hermes forgot an otter trick."})
    )
    forgetting.forget(HERMES, gateway.parts, forgotten.id, ANY)
    said = {"session_id": "h", "agent_id": "hermes", "content": "User: I like otters."}
    sessions.add_episode(HERMES, gateway.parts, NewEpisode.model_validate(said))
    inferred = {"content": "Tom likes otters.", "source": "conversation", "confidence": 0.7}
    memories.create(HERMES, gateway.parts, NewMemory.model_validate(inferred))
    gateway.settle()
    clearing.retire(TOM, gateway.parts, "hermes")
    with pytest.raises(GatewayError):
        agents.create(TOM, gateway.parts, NewAgent.model_validate({"agent_id": "hermes"}))
    worker.run(gateway.parts)
    gateway.settle()
    assert left(gateway, "agent/hermes/") == []
    assert not list((gateway.parts.files.root / "Agents/hermes").rglob("*.md"))
    assert not list((gateway.parts.files.root / "Reviews").rglob("*otters*"))
    with gateway.parts.ledger.read() as tx:
        assert agent_rows.agent(tx, "hermes") is None
        assert not [one for one in tombstones.everything(tx) if one.scope.startswith("agent/hermes/")]
        assert fences.active(tx).closed == ()
    again = {"agent_id": "hermes", "owner_user_id": "tom"}
    agents.create(TOM, gateway.parts, NewAgent.model_validate(again))
    memories.create(HERMES, gateway.parts, NewMemory.model_validate(own))
    with pytest.raises(NotFound):
        memories.get(HERMES, gateway.parts, made.id)


def test_a_persons_last_save_is_in_git_before_it_goes(gateway):
    filled(gateway, 1)
    note = next((gateway.parts.files.root / "Users/tom/LongTerm").glob("*.md"))
    name = note.relative_to(gateway.parts.files.root).as_posix()
    clear(gateway, scope="user", id="tom")
    note.write_bytes(note.read_bytes() + b"\nWritten while it was being cleared.\n")
    worker.run(gateway.parts)
    gateway.settle()
    assert not note.exists()
    said = git(gateway.parts.files.root, "log", "-p", "--all", "--", name)
    assert "Written while it was being cleared." in said


def test_a_broken_note_and_the_persons_own_notes_stay_on_disk(opened):
    source = {"glob": "Own/**/*.md", "namespace": "user/owner/long_term"}
    gateway = opened("data", vault={"sources": [source]})
    own = gateway.parts.files.root / "Own/otter.md"
    own.parent.mkdir()
    own.write_text("An otter of my own vault.", "utf-8")
    broken = gateway.parts.files.root / "Memories/LongTerm/broken.md"
    broken.write_text("An otter.\n", "utf-8")
    gateway.settle()
    broken.write_text("---\na: [\n---\nAn otter.\n", "utf-8")
    gateway.settle()
    clear(gateway, LOCAL_OPERATOR, scope="user", id="owner")
    worker.run(gateway.parts)
    gateway.settle()
    assert left(gateway, "user/owner/") == []
    assert own.read_text("utf-8") == "An otter of my own vault."
    assert broken.read_text("utf-8").startswith("---\na: [")


def test_what_a_broken_structured_note_last_said_goes_too(gateway):
    note = gateway.parts.files.root / "Users/tom/UserMemory.md"
    note.write_text(note.read_text("utf-8").replace("---\n", "---\noccupation: otter keeper\n", 1), "utf-8")
    gateway.settle()
    with gateway.parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, ["Users/tom/UserMemory.md"])["Users/tom/UserMemory.md"]
        assert structured.last_good(tx, row.note_id) is not None
    note.write_text("---\na: [\n---\n", "utf-8")
    gateway.settle()
    clear(gateway, scope="user", id="tom")
    worker.run(gateway.parts)
    with gateway.parts.ledger.read() as tx:
        assert structured.last_good(tx, row.note_id) is None


def test_the_same_order_twice_is_one_job(gateway):
    first = clear(gateway, scope="user", id="tom")
    assert clear(gateway, scope="user", id="tom").id == first.id


def test_a_clear_is_audited_by_ids_only(gateway):
    filled(gateway, 2)
    clear(gateway, scope="user", id="tom")
    worker.run(gateway.parts)
    with gateway.parts.ledger.read() as tx:
        entries = audit.page(tx, audit.AuditFilter(), limit=500, before=None)
    assert "clear" in [one.entry.action for one in entries]
    assert "otter" not in repr(entries)


def test_prompts_say_nothing_of_what_is_being_cleared(gateway):
    filled(gateway, 1)
    asked = {"user_id": "tom", "token_limit": 8_000}
    (gateway.parts.files.root / "Users/tom/MEMORY.md").write_text("Tom keeps otters.\n", "utf-8")
    gateway.settle()

    def said() -> str:
        return prompts.system(TOM, gateway.parts, gateway.query_vectors, query="otter", **asked).prompt

    assert "keeps otters" in said()
    clear(gateway, scope="user", id="tom")
    with pytest.raises((NotFound, BeingCleared)):
        said()
    worker.run(gateway.parts)
    assert "keeps otters" not in said()


def test_drafts_for_the_owner_go_with_the_owner(opened):
    gateway = opened()
    infer(gateway, "The owner likes otters.")
    clear(gateway, LOCAL_OPERATOR, scope="user", id="owner")
    assert readable(gateway, LOCAL_OPERATOR, "owner") == []
    worker.run(gateway.parts)
    assert not list((gateway.parts.files.root / "Reviews").rglob("*otters*"))

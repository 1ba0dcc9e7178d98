"""Both clients against a real server: every method, lost answers, limits, conflicts."""

from __future__ import annotations

import ast
import inspect
import socket
import sys
import time
from pathlib import Path

import anyio
import httpx
import pytest

from gateway import client as clients
from gateway.client import AsyncMemoryGateway, GatewayProblem, MemoryGateway
from tests.client.proxy import losing_answers
from tests.servers import key_for, served


class Blocking:
    """The asynchronous client, called as if it blocked, so that both run the same tests."""

    def __init__(self, *arguments, **options) -> None:
        self._given = arguments, options

    def __enter__(self):
        self._context = anyio.from_thread.start_blocking_portal()
        self._portal = self._context.__enter__()
        arguments, options = self._given
        self._client = AsyncMemoryGateway(*arguments, **options)
        assert self._portal.call(self._client.__aenter__) is self._client
        return self

    def __exit__(self, *raised):
        self._portal.call(self._client.__aexit__, *raised)
        self._context.__exit__(None, None, None)

    def __getattr__(self, name):
        return lambda *arguments, **options: self._portal.call(
            lambda: getattr(self._client, name)(*arguments, **options)
        )


@pytest.fixture(params=[MemoryGateway, Blocking], ids=["blocking", "async"])
def kind(request):
    return request.param


def test_every_method(gateway, hermes, kind):
    mark = kind.__name__
    with kind(gateway.url, hermes) as memory:
        made = memory.remember(f"Tom keeps bees, said {mark}.", memory_type="fact", tags=["hobby"], importance=0.7)
        assert made["namespace"] == "user/tom/long_term"
        assert made["receipt"]["fts"] == "done"
        assert [one["memory"]["id"] for one in memory.search(f"bees {mark}", limit=1)["results"]] == [made["id"]]
        assert memory.search(f"bees {mark}", kinds=["preference"])["results"] == []
        read = memory.get(made["id"])
        assert read["importance"] == 0.7
        assert read["etag"] == made["etag"]
        changed = memory.change(
            made["id"], etag=made["etag"], content=f"Tom keeps ducks, said {mark}.", expires_at=None
        )
        assert changed["version"] == 2
        assert memory.get(made["id"])["content"].strip() == f"Tom keeps ducks, said {mark}."
        assert [one["kind"] for one in memory.history(made["id"])] == ["agent", "agent"]
        assert memory.text_at(made["id"], 1)["content"].strip() == f"Tom keeps bees, said {mark}."
        assert f"-Tom keeps bees, said {mark}." in memory.diff(made["id"])
        assert f"+Tom keeps bees, said {mark}." in memory.diff(made["id"], 2, 1)
        assert memory.blame(made["id"])[-1]["version"] == 2
        back = memory.revert(made["id"], 1, etag=changed["etag"])
        changed = memory.revert(made["id"], 2, etag=back["etag"])
        assert changed["version"] == 4
        memory.append_episode(f"s-{mark}", f"User: remember that the {mark} key hangs in the hall.", tags=["chat"])
        done = memory.commit_session(f"s-{mark}", min_importance=0.5)
        assert done["episodes"] == 1
        assert done["promoted"] == []
        (draft,) = done["reviews"]
        assert draft["status"] == "pending"
        assert memory.commit_session(f"s-{mark}", min_importance=0.5)["reviews"] == [draft]
        assert memory.profile("tom")["user_id"] == "tom"
        assert "user/tom/long_term" in {one["namespace"] for one in memory.namespaces()}
        assert memory.judge(made["id"], "useful", "yes")["status"] == "ok"
        assert memory.forget(made["id"], etag=changed["etag"])["deleted"] is True
        with pytest.raises(GatewayProblem) as caught:
            memory.get(made["id"])
        assert caught.value.status == 404
        assert caught.value.type == "urn:memory-gateway:problem:not-found"


def test_a_turn_begins_with_its_context(gateway, hermes, kind):
    mark = kind.__name__
    tom = key_for(gateway, "user", "tom")
    with kind(gateway.url, hermes) as agent, kind(gateway.url, tom) as person:
        person.remember(f"Tom keeps a heron, said {mark}.")
        rule = person.direct(f"Speak of herons with respect, {mark}.", kind="style")
        assert rule["status"] == "active"
        assert agent.direct(f"Praise the agent, {mark}.")["review"]["status"] == "pending"
        turn = agent.context(f"heron {mark}", token_budget=500, turn_id=f"turn-{mark}")
        assert f"Tom keeps a heron, said {mark}." in turn["memory"]
        assert rule["id"] in {one["id"] for one in turn["directives"]}
        assert turn["manifest"]["tokens"]["total"] <= 500
        assert agent.context("x", turn_id=f"turn-{mark}")["manifest"]["reused"] is True
        assert {"active", "draft"} == {one["status"] for one in person.directives()}


def test_what_an_agent_inferred_is_a_draft_until_its_user_decides(gateway, hermes, kind):
    """An agent proposes and sees what became of it; only a person decides."""
    mark = kind.__name__
    tom = key_for(gateway, "user", "tom")
    guess = {"source": "conversation", "confidence": 0.7}
    with kind(gateway.url, hermes) as agent, kind(gateway.url, tom) as person:
        first = agent.remember(f"Tom seems to like rain, {mark}.", **guess)
        second = agent.remember(f"Tom seems to like snow, {mark}.", **guess)
        assert "id" not in first
        review_id = first["review"]["id"]
        waiting = person.reviews(namespace="user/tom/long_term")
        assert {review_id, second["review"]["id"]} <= {one["id"] for one in waiting["reviews"]}
        assert waiting["next_cursor"] is None
        assert len(agent.reviews(limit=1)["reviews"]) == 1
        found = person.review(review_id)
        assert found["text"] == f"Tom seems to like rain, {mark}."
        assert found["review"]["proposed_by"] == "agent:hermes"
        with pytest.raises(GatewayProblem) as caught:
            agent.accept(review_id)
        assert caught.value.status == 403
        with pytest.raises(GatewayProblem) as caught:
            person.accept(review_id, etag="0" * 64)
        assert caught.value.status == 409
        text = f"Tom likes rain, {mark}."
        done = person.accept(review_id, text=text, reason="so he says", etag=found["review"]["etag"])
        assert done["review"]["decision_reason"] == "so he says"
        kept = person.get(done["memory_id"])
        assert kept["content"].strip() == text
        assert person.reject(second["review"]["id"], reason="no")["memory_id"] is None
        decided = agent.reviews(status="any")["reviews"]
        assert {one["status"] for one in decided if one["id"] in (review_id, second["review"]["id"])} == {
            "accepted",
            "rejected",
        }
        changed = agent.change(kept["id"], etag=kept["etag"], content=f"Tom loves rain, {mark}.")
        retired = agent.forget(person.remember(f"Tom owns a kite, {mark}.")["id"], etag="*")
        assert {changed["review"]["status"], retired["review"]["status"]} == {"pending"}
        assert person.get(kept["id"])["content"].strip() == text


def test_a_decision_whose_answer_was_lost_is_told_again(gateway, hermes, kind):
    tom = key_for(gateway, "user", "tom")
    with kind(gateway.url, hermes) as agent:
        draft = agent.remember(f"Tom may like fog, {kind.__name__}.", source="conversation", confidence=0.5)
    with losing_answers(gateway.url, cuts=1) as proxy, kind(proxy.url, tom) as person:
        done = person.accept(draft["review"]["id"])
        assert proxy.cuts == 0
        assert done["review"]["status"] == "accepted"
        assert person.get(done["memory_id"])["version"] == 1


def test_ids_of_the_client_go_with_every_request(gateway, kind):
    with kind(gateway.url, gateway.key, user_id="tom", agent_id="nanobot") as memory:
        made = memory.remember(f"for Nanobot alone, {kind.__name__}", visibility="agent-only")
        assert made["namespace"] == "agent/nanobot/memory"
        assert memory.search("Nanobot alone")["total"] >= 1
        assert memory.forget(made["id"], etag=made["etag"])["deleted"]


def test_a_write_whose_answer_was_lost_is_done_once(gateway, hermes, kind):
    """The connection drops after the request arrived: the retry carries the same key and gets the first answer."""
    text = f"written once, {kind.__name__}"
    with losing_answers(gateway.url, cuts=1) as proxy:
        with kind(proxy.url, hermes) as memory:
            made = memory.remember(text)
        assert proxy.cuts == 0
        assert proxy.connections == 2
    assert made["version"] == 1
    assert made["duplicate"] is False  # the first answer again, not a second write of the same text
    assert [one["id"] for one in _listed(gateway) if one["content"].strip() == text] == [made["id"]]


def test_a_change_whose_answer_was_lost_is_done_once(gateway, hermes, kind):
    with losing_answers(gateway.url, cuts=0) as proxy, kind(proxy.url, hermes) as memory:
        made = memory.remember(f"changed once, {kind.__name__}")
        proxy.cuts = 2
        changed = memory.change(made["id"], etag=made["etag"], summary="Changed")
        assert proxy.cuts == 0
        assert changed["version"] == 2
        proxy.cuts = 1
        assert memory.forget(made["id"], etag=changed["etag"])["deleted"]


def test_a_read_is_tried_again_and_an_episode_is_not(gateway, hermes, kind):
    with losing_answers(gateway.url, cuts=1) as proxy, kind(proxy.url, hermes) as memory:
        assert memory.profile("tom")["user_id"] == "tom"
        proxy.cuts = 1
        assert "results" in memory.search("anything")
        proxy.cuts = 1
        with pytest.raises(httpx.TransportError):
            memory.append_episode("lost", "said once")


def test_it_gives_up_on_a_server_that_is_not_there(kind):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with kind(f"http://127.0.0.1:{port}", "mgk_x") as memory, pytest.raises(httpx.TransportError):
        memory.namespaces()


def test_a_conflict_carries_the_difference(gateway, hermes, kind):
    with kind(gateway.url, hermes) as memory:
        made = memory.remember(f"the first text, {kind.__name__}")
        memory.change(made["id"], etag=made["etag"], content="the second text")
        with pytest.raises(GatewayProblem) as caught:
            memory.change(made["id"], etag=made["etag"], content="from an old reading")
        problem = caught.value
        assert problem.status == 409
        assert "+the second text" in problem.document["diff"]
        memory.change(made["id"], etag=problem.document["etag"], content="from the present reading")
        assert memory.get(made["id"])["version"] == 3


def test_a_wrong_key_is_a_problem(gateway, kind):
    with kind(gateway.url, "mgk_wrong") as memory:
        with pytest.raises(GatewayProblem) as caught:
            memory.remember("x")
        assert caught.value.status == 401


def test_too_many_requests_are_waited_for(tmp_path, template, kind):
    """A bucket of five, and one more each second: seven requests all succeed, and take their time."""
    with served(tmp_path / "data", template, policy={"requests_per_minute": 60, "request_burst": 5}) as server:
        key = key_for(server, "user", "owner")
        with kind(server.url, key) as memory:
            started = time.monotonic()
            for _ in range(7):
                memory.namespaces()
            assert time.monotonic() - started > 1
        answers = [_raw(server, key) for _ in range(7)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        for answer in refused:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["type"] == "urn:memory-gateway:problem:rate-limited"
        assert server.http.get("/v1/namespaces").status_code == 200  # the bucket is the key's own


def _raw(server, key: str) -> httpx.Response:
    return server.http.get("/v1/namespaces", headers={"Authorization": f"Bearer {key}"})


def test_both_clients_have_the_same_methods():
    def signatures(of: type) -> dict:
        names = {name for name in vars(of) if not name.startswith("_")}
        return {name: inspect.signature(vars(of)[name]) for name in names}

    assert signatures(MemoryGateway) == signatures(AsyncMemoryGateway)


def test_the_client_needs_nothing_else_of_the_package():
    """Its folder can be copied into an agent: the standard library and httpx only."""
    files = sorted(Path(clients.__file__).parent.glob("*.py"))
    assert len(files) > 3
    named: set[str] = set()
    for file in files:
        tree = ast.parse(file.read_text("utf-8"))
        named |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
        named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 1]
    assert {name.partition(".")[0] for name in named} <= {*sys.stdlib_module_names, "httpx"}


def _listed(gateway) -> list[dict]:
    answer = gateway.http.get("/v1/memory", params={"limit": 200, "namespace": "user/tom/long_term"}).json()
    assert answer["next_cursor"] is None
    return [gateway.http.get(f"/v1/memory/{one['id']}").json() for one in answer["memories"]]

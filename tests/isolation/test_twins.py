"""Twins: what two agents know in the same words, among thousands of other notes. No query returns the other's.

The memories are an excerpt of DeepChat's fixtures (`tests/data/deepchat`): for each query there is a relevant memory of
one agent, and the same text, more important, of the other.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from gateway.access.principal import Principal
from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.errors import NotFound
from gateway.ledger import agents, identities
from gateway.services import memories
from gateway.services.requests import Search
from gateway.services.search import search
from tests.bench.ingest import Deterministic, text
from tests.conftest import IMPATIENT
from tests.nightly import NIGHTLY

DATA = Path(__file__).resolve().parents[1] / "data" / "deepchat"
MEMORIES = [json.loads(line) for line in (DATA / "memories.jsonl").read_text("utf-8").splitlines()]
QUERIES = [json.loads(line) for line in (DATA / "queries.jsonl").read_text("utf-8").splitlines()]
OTHERS = 20_000 if NIGHTLY else 2_000

# Alpha and beta are agents of two users; gamma and delta, with the same memories, are agents of one.
TOM = Principal("k1", "user", "tom")
ANN = Principal("k2", "user", "ann")
ALPHA = Principal("k3", "agent", "tom", "alpha")
BETA = Principal("k4", "agent", "ann", "beta")
GAMMA = Principal("k5", "agent", "tom", "gamma")
DELTA = Principal("k6", "agent", "tom", "delta")
ROOMS = {
    "agent-alpha": ["Agents/alpha/Memory", "Agents/gamma/Memory", "Users/tom/LongTerm"],
    "agent-beta": ["Agents/beta/Memory", "Agents/delta/Memory", "Users/ann/LongTerm"],
}
READABLE = {
    "tom": (TOM, None, {"user/tom/long_term", "global/public"}),
    "ann": (ANN, None, {"user/ann/long_term", "global/public"}),
    "tom with alpha": (TOM, "alpha", {"user/tom/long_term", "agent/alpha/memory", "global/public"}),
    "alpha": (ALPHA, None, {"user/tom/long_term", "agent/alpha/memory", "global/public"}),
    "beta": (BETA, None, {"user/ann/long_term", "agent/beta/memory", "global/public"}),
    "gamma": (GAMMA, None, {"user/tom/long_term", "agent/gamma/memory", "global/public"}),
    "delta": (DELTA, None, {"user/tom/long_term", "agent/delta/memory", "global/public"}),
}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """The gateway with all twins, and the notes of others around them."""
    data = tmp_path_factory.mktemp("twins") / "data"
    settings = IMPATIENT | {"policy": {"max_answer_bytes": 8_388_608}, "watch": IMPATIENT["watch"] | {"enabled": False}}
    gateway = open_gateway(load_settings(data_dir=data, **settings), embedder=Deterministic())
    root = gateway.parts.files.root
    with gateway.parts.ledger.write() as tx:
        for user_id in ("tom", "ann", "eve"):
            identities.add_user(tx, user_id, user_id, {})
        for agent_id, owner in (("alpha", "tom"), ("beta", "ann"), ("gamma", "tom"), ("delta", "tom")):
            agents.add_agent(tx, agent_id, agent_id, "other", owner)
    for one in MEMORIES:
        for room in ROOMS[one["scope"]]:
            _put(root / room / f"{one['id']}.md", f"---\nimportance: 0.8\n---\n{one['text']}\n")
    for number in range(OTHERS):
        folder = ("Users/eve/LongTerm", "Users/tom/LongTerm", "Users/ann/LongTerm", "Global")[number % 4]
        _put(root / folder / f"other {number}.md", text(number))
    gateway.settle()
    gateway.parts.feed.fill_vectors()
    gateway.parts.feed.feed()
    yield gateway
    gateway.close()


def _put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


def ask(gateway, who: Principal, query: str, **fields):
    return search(who, gateway.parts, gateway.query_vectors, Search(query=query, **fields)).results


@pytest.mark.parametrize("name", READABLE)
def test_no_query_at_any_limit_returns_the_others_twin(crowd, name):
    """Every query, and every memory's own words, in all modes."""
    who, agent_id, readable = READABLE[name]
    seen: set[str] = set()
    every = 1 if NIGHTLY else 3
    asked = [one["text"] for one in QUERIES[::every]]
    asked += [one["text"] for one in MEMORIES[:: 6 * every]]
    for number, query in enumerate(asked):
        mode = ("hybrid", "fts", "vector")[number % 3]
        for limit in (1, 200) if number % 8 else (1, 3, 10, 50, 200):
            for one in ask(crowd, who, query, limit=limit, mode=mode, agent_id=agent_id):
                assert one.memory.namespace in readable, (query, limit, mode)
                seen.add(one.memory.namespace)
    assert len(seen) >= 2  # the question was not empty


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta"])
def test_ones_own_twin_is_found(crowd, name):
    """Isolation that finds nothing would be none: the relevant memory comes, from one's own room."""
    who, _, _ = READABLE[name]
    scope = "agent-alpha" if name in ("alpha", "gamma") else "agent-beta"
    # A paraphrase shares no word with its memory, and the vectors here know words only.
    mine = [one for one in QUERIES if one["scope"] == scope and not one["id"].startswith("semantic")]
    words = {one["id"]: one["text"] for one in MEMORIES}
    hits = 0
    for one in mine:
        found = ask(crowd, who, one["text"], limit=10, mode="fts", namespaces=(f"agent/{name}/memory",))
        hits += words[f"{one['id']}-relevant"] in {hit.memory.content.strip() for hit in found}
    assert hits >= 0.9 * len(mine)


def test_the_others_twin_is_not_there_by_id_either(crowd):
    """Neither by search with forged ids nor by its own id."""
    query = QUERIES[0]["text"]
    theirs = ask(crowd, BETA, query, limit=200) + ask(crowd, DELTA, query, limit=200)
    theirs = [one for one in theirs if one.memory.namespace.startswith("agent/")]
    assert theirs
    for one, who in itertools.product(theirs, (ALPHA, GAMMA, ANN)):
        with pytest.raises(NotFound):
            memories.get(who, crowd.parts, one.memory.id)
    for who, user_id, agent_id in (
        (ALPHA, "ann", None),
        (ALPHA, None, "beta"),
        (GAMMA, None, "delta"),
        (TOM, None, "beta"),
    ):
        with pytest.raises(NotFound):
            ask(crowd, who, query, user_id=user_id, agent_id=agent_id)


def test_not_while_notes_move_between_two_users_either(crowd):
    """A note is the other's from the moment that its move is imported; searches run all the while.

    Each sighting must lie in a time in which the note may still, or already, have been the asker's.
    """
    root = crowd.parts.files.root
    words = [f"wanderer{number}quokka" for number in range(12)]
    homes = {"tom": "Users/tom/LongTerm", "ann": "Users/ann/LongTerm"}
    # For each word and user: the spans in which it may be seen, from just before a move to when it is imported.
    spans: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for word in words:
        _put(root / homes["tom"] / f"{word}.md", f"the {word} wanders about\n")
        spans[word, "tom"].append([0.0, float("inf")])
    crowd.parts.importer.scan(settled=True)
    crowd.parts.feed.feed()
    sightings: list[tuple[str, str, float, float]] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def look(user_id: str, who: Principal) -> None:
        try:
            while not stop.is_set():
                for query, limit in (("wanders about", 200), (words[0], 5), (words[-1], 50)):
                    began = time.monotonic()
                    found = ask(crowd, who, query, limit=limit, mode="fts")
                    ended = time.monotonic()
                    for one in found:
                        assert one.memory.namespace in {f"user/{user_id}/long_term", "global/public"}
                        sightings.extend((word, user_id, began, ended) for word in words if word in one.memory.content)
        except BaseException as error:
            failures.append(error)

    lookers = [threading.Thread(target=look, args=one) for one in (("tom", TOM), ("ann", ANN))]
    for looker in lookers:
        looker.start()
    at = dict.fromkeys(words, "tom")
    deadline = time.monotonic() + 20
    try:
        for number in range(36):
            word = words[number % len(words)]
            source, target = at[word], "ann" if at[word] == "tom" else "tom"
            old, new = f"{homes[source]}/{word}.md", f"{homes[target]}/{word}.md"
            spans[word, target].append([time.monotonic(), float("inf")])
            (root / old).rename(root / new)
            crowd.parts.importer.import_paths([old, new])
            crowd.parts.feed.feed()
            spans[word, source][-1][1] = time.monotonic()
            at[word] = target
            assert time.monotonic() < deadline
    finally:
        stop.set()
        for looker in lookers:
            looker.join(timeout=30)
    assert not failures, failures[0]
    assert {user_id for _, user_id, _, _ in sightings} == {"tom", "ann"}
    for word, user_id, began, ended in sightings:
        assert any(start <= ended and began <= end for start, end in spans[word, user_id]), (word, user_id)
    for word, user_id in at.items():
        for name, who in (("tom", TOM), ("ann", ANN)):
            found = [one for one in ask(crowd, who, word, mode="fts") if word in one.memory.content]
            assert len(found) == (name == user_id)

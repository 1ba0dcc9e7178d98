"""A memory that is forgotten, and what asks whether it is still recalled."""

from __future__ import annotations

from pathlib import Path

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.bootstrap import Gateway
from gateway.ledger import problems as listing
from gateway.ledger import registry
from gateway.services import context, forgetting, memories, search
from gateway.services.context_requests import ContextRequest
from gateway.services.requests import NewMemory, NewUser, Precondition, Search
from gateway.services.users import create as add_user
from tests.reviews.world import AGENT, OWNER

ANY = Precondition(("*",), None)
CANARY = "The owner's blue bicycle stands in the cellar of number forty-one."
TOM = Principal("tom-key", "user", "tom")
ANN = Principal("ann-key", "user", "ann")


def users(gateway: Gateway) -> None:
    for user_id in ("tom", "ann"):
        add_user(LOCAL_OPERATOR, gateway.parts, NewUser.model_validate({"user_id": user_id}))


def know(gateway: Gateway, text: str = CANARY, who: Principal = OWNER, **fields) -> str:
    """An explicit write by a user; returns the memory's id."""
    return memories.create(who, gateway.parts, NewMemory.model_validate({"content": text} | fields)).id


def told(gateway: Gateway, text: str = CANARY, **fields):
    """What an agent says its user told it."""
    body = {"content": text, "source": "manual", "confidence": 0.9} | fields
    return memories.create(AGENT, gateway.parts, NewMemory.model_validate(body))


def forget(gateway: Gateway, note_id: str, who: Principal = OWNER):
    return forgetting.forget(who, gateway.parts, note_id, ANY)


def path_of(gateway: Gateway, note_id: str) -> Path:
    with gateway.parts.ledger.read() as tx:
        row = registry.note(tx, note_id)
    assert row is not None
    return gateway.parts.files.root / row.path


def recalled(gateway: Gateway, query: str = "blue bicycle cellar", who: Principal = OWNER) -> list[str]:
    """What search and context say of it, after everything that waits was taken in."""
    gateway.settle()
    parts = gateway.parts
    found = search.search(who, parts, gateway.query_vectors, Search.model_validate({"query": query}))
    asked = ContextRequest.model_validate({"query": query})
    made = context.context(who, parts, gateway.query_vectors, gateway.turns, asked)
    listed = memories.page(who, parts, registry.NoteFilter(status=None), limit=100, cursor=None)
    texts = [one.memory.content for one in found.results] + [one.content for one in listed.memories]
    return [text for text in (*texts, made.memory) if "bicycle" in text]


def problems(gateway: Gateway, kind: str = "forgotten") -> list[str]:
    with gateway.parts.ledger.read() as tx:
        return [row.path for row in listing.listed(tx) if row.kind == kind]

"""Tom, Ann and hermes in an open gateway, and what tests of consolidation do with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gateway.access.principal import LOCAL_OPERATOR, Principal
from gateway.bootstrap import Gateway
from gateway.ledger import registry, reviews, sessions
from gateway.ledger.registry import NoteFilter, NoteRow
from gateway.ledger.reviews import Review, ReviewFilter
from gateway.services import agents, memories, users
from gateway.services import reviews as review_service
from gateway.services import sessions as session_service
from gateway.services.requests import (
    AcceptReview,
    CommitSession,
    NewAgent,
    NewEpisode,
    NewMemory,
    NewUser,
    RejectReview,
)
from gateway.workers.consolidation.report import PassReport

DATA = Path(__file__).resolve().parent.parent / "data" / "consolidation"
TOM = Principal("k-tom", "user", "tom")
ANN = Principal("k-ann", "user", "ann")
HERMES = Principal("k-hermes", "agent", "tom", "hermes")


def data(name: str) -> list[dict]:
    """A self-written data set."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


@dataclass
class World:
    """One gateway without background work."""

    gateway: Gateway

    @property
    def parts(self):
        return self.gateway.parts

    def people(self) -> World:
        for user_id in ("tom", "ann"):
            users.create(LOCAL_OPERATOR, self.parts, NewUser(user_id=user_id))
        agents.create(LOCAL_OPERATOR, self.parts, NewAgent(agent_id="hermes", owner_user_id="tom"))
        self.gateway.settle()
        self.gateway.consolidation.run()
        return self

    def say(self, session_id: str, *lines: str, who: Principal = HERMES, speaker: str = "User") -> None:
        content = "\n".join(f"{speaker}: {line}" for line in lines)
        asked = {"session_id": session_id, "content": content}
        session_service.add_episode(who, self.parts, NewEpisode.model_validate(asked))

    def end(self, session_id: str, *, who: Principal = HERMES, promote: bool = False) -> session_service.Committed:
        wanted = CommitSession.model_validate({"promote": promote})
        return session_service.commit_session(who, self.parts, session_id, wanted, None)

    def told(self, text: str, session_id: str, who: Principal = HERMES) -> None:
        self.say(session_id, text, who=who)
        self.end(session_id, who=who)

    def remember(self, text: str, who: Principal = HERMES, **fields) -> str:
        """A memory; an agent's goes to its own namespace."""
        given = {"namespace": "agent/hermes/memory"} if who.agent_id and "namespace" not in fields else {}
        done = memories.create(who, self.parts, NewMemory.model_validate({"content": text, **given, **fields}))
        return done.id

    def run(self, **options) -> PassReport:
        self.gateway.settle()
        self.parts.feed.fill_vectors()
        return self.gateway.consolidation.run(**options)

    def rows(self, namespace: str, status: str | None = "active") -> list[NoteRow]:
        with self.parts.ledger.read() as tx:
            return registry.page(tx, NoteFilter(namespaces=(namespace,), status=status), limit=500, after=None)[0]

    def row(self, note_id: str) -> NoteRow:
        with self.parts.ledger.read() as tx:
            return registry.note(tx, note_id)

    def texts(self, namespace: str, status: str | None = "active") -> list[str]:
        return sorted(self.text(row.note_id) for row in self.rows(namespace, status))

    def text(self, note_id: str) -> str:
        return memories.get(LOCAL_OPERATOR, self.parts, note_id).content

    def drafts(self, proposal: str | None = None) -> list[Review]:
        with self.parts.ledger.read() as tx:
            return reviews.page(tx, ReviewFilter(proposal=proposal), limit=200, after=None)[0]

    def draft_text(self, draft: Review) -> str:
        return self.parts.files.read(draft.path).data.decode()

    def accept(self, draft: Review, who: Principal = TOM) -> str:
        done = review_service.accept(who, self.parts, draft.id, AcceptReview())
        self.gateway.settle()
        return done.memory_id

    def reject(self, draft: Review, who: Principal = TOM) -> None:
        review_service.reject(who, self.parts, draft.id, RejectReview())
        self.gateway.settle()

    def candidates(self, session_id: str, user_id: str = "tom"):
        with self.parts.ledger.read() as tx:
            return sessions.candidates_of(tx, user_id, session_id)

    def edges(self, identifier: str) -> set[tuple[str, str, str]]:
        with self.parts.ledger.read() as tx:
            return {(edge.child, edge.parent, edge.relation) for edge in reviews.edges_of(tx, identifier)}

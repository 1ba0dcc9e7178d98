"""A vault with memories and thirty drafts, and what is decided about them."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gateway.access.principal import Principal
from gateway.bootstrap import Gateway
from gateway.ledger import journal, registry, reviews, tombstones
from gateway.ledger.reviews import Review, ReviewFilter
from gateway.ledger.schema import lineage
from gateway.ledger.schema import tombstones as buried
from gateway.services import forgetting, memories
from gateway.services.requests import MemoryPatch, NewMemory, Precondition
from gateway.vault.scan import walk

AGENT = Principal("agent-key", "agent", "owner", "assistant")
OWNER = Principal("owner-key", "user", "owner")
PERSON = {
    "GIT_AUTHOR_NAME": "Owner",
    "GIT_AUTHOR_EMAIL": "owner@example.org",
    "GIT_COMMITTER_NAME": "Owner",
    "GIT_COMMITTER_EMAIL": "owner@example.org",
}


@dataclass(frozen=True)
class Scripted:
    """One decision: about the draft of this name; `edit` is text that the person adds before accepting."""

    name: str
    decision: str
    edit: str | None = None


def git(folder: Path, *arguments: str, ok: bool = True) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | PERSON, capture_output=True, text=True, check=False
    )
    assert not ok or done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def infer(gateway: Gateway, text: str, **fields) -> str:
    """What an agent guessed; returns the id of its draft."""
    body = {"content": text, "source": "conversation", "confidence": 0.7} | fields
    return memories.create(AGENT, gateway.parts, NewMemory.model_validate(body)).review.id


def know(gateway: Gateway, text: str, **fields) -> str:
    """What the owner wrote; returns the id of the memory."""
    return memories.create(OWNER, gateway.parts, NewMemory.model_validate({"content": text} | fields)).id


def change(gateway: Gateway, note_id: str, **fields) -> str:
    """What an agent wants to change in the owner's memory; returns the id of the draft."""
    patch = MemoryPatch.model_validate(fields)
    return memories.update(AGENT, gateway.parts, note_id, patch, Precondition(("*",), None)).review.id


def retire(gateway: Gateway, note_id: str) -> str:
    """What an agent wants to delete of the owner's; returns the id of the draft."""
    return forgetting.forget(AGENT, gateway.parts, note_id, Precondition(("*",), None)).review.id


def review_of(gateway: Gateway, review_id: str) -> Review:
    with gateway.parts.ledger.read() as tx:
        found = reviews.review(tx, review_id)
    assert found is not None
    return found


def waiting(gateway: Gateway) -> list[Review]:
    with gateway.parts.ledger.read() as tx:
        return reviews.page(tx, ReviewFilter(), limit=1_000, after=None)[0]


def fill(gateway: Gateway) -> tuple[dict[str, str], list[Scripted]]:
    """Thirty drafts by name, and what is decided about them."""
    drafts: dict[str, str] = {}
    script: list[Scripted] = []

    def add(name: str, review_id: str, decision: str, edit: str | None = None) -> None:
        drafts[name] = review_id
        script.append(Scripted(name, decision, edit))

    for number in range(12):
        text = f"Guess number {number}: the owner likes walking in {'山' * (number + 1)}."
        fields = {"tags": ["walks"], "summary": f"Walk {number}"} if number % 2 else {}
        edit = "And this the owner added." if number % 4 == 0 else None
        add(f"guess {number}", infer(gateway, text, **fields), "reject" if number % 3 == 2 else "accept", edit)
    for number in range(12):
        known = know(gateway, f"Fact number {number}.\n\n- one\n- two\n", summary=f"Fact {number}", tags=["facts"])
        if number % 2:
            review_id = change(gateway, known, content=f"Fact number {number}, changed.\n\n- one\n- three\n")
        else:
            review_id = change(gateway, known, importance=0.9, tags=["facts", "more"])
        edit = "Checked by the owner." if number % 4 == 1 else None
        add(f"change {number}", review_id, "reject" if number % 3 == 2 else "accept", edit)
    for number in range(6):
        known = know(gateway, f"Old story number {number}.", summary=f"Story {number}")
        add(f"retire {number}", retire(gateway, known), "reject" if number % 3 == 2 else "accept")
    assert len(script) == 30
    return drafts, script


def vault_of(gateway: Gateway) -> dict[str, str]:
    """Every note of the vault by path, without ids and times."""
    root = gateway.parts.files.root
    found: dict[str, str] = {}
    for path in walk(root).files:
        name = re.sub(r" [0-9a-z]{6}\.md$", " ID.md", path)
        while name in found:
            name += "+"
        found[name] = plain((root / path).read_text("utf-8"))
    return found


def plain(text: str) -> str:
    text = re.sub(r"rev_[0-9a-f]{20}", "REVIEW", text)
    text = re.sub(r"mem_[0-9a-z]{26}", "MEMORY", text)
    text = re.sub(r'"?\b[0-9a-f]{64}\b"?', "ETAG", text)
    text = re.sub(r" [0-9a-z]{6}(?=\]\]|\||\.md)", " ID", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)


def ledger_of(gateway: Gateway) -> dict[str, object]:
    """What the ledger says, without ids, times and the way of deciding."""
    from sqlalchemy import select

    with gateway.parts.ledger.read() as tx:
        rows = list(registry.notes_by_id(tx, [one[0] for one in registry.note_states(tx)]).values())
        decided, _ = reviews.page(tx, ReviewFilter(status=None), limit=1_000, after=None)
        notes = sorted(
            (row.title, row.namespace, row.memory_type, row.status, row.version, row.importance, tuple(row.tags),
             tuple((one.version, one.op, one.actor, bool(one.review_id)) for one in journal.history(tx, row.note_id)))
            for row in rows
        )  # fmt: skip
        drafts = sorted((one.title, one.proposal, one.status, one.decided_by, plain(one.path)) for one in decided)
        edges = sorted(
            (plain(a), plain(b), c)
            for a, b, c in tx.execute(select(lineage.c.child, lineage.c.parent, lineage.c.relation))
        )
        graves = sorted((a, b) for a, b in tx.execute(select(buried.c.scope, buried.c.domain)))
        assert tombstones.PROPOSAL in {domain for _, domain in graves}
    return {"notes": notes, "drafts": drafts, "edges": edges, "graves": graves}

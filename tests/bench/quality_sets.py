"""The public sets that search quality is measured on, indexed with their vectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gateway.index.embed import Embedder, Vector
from gateway.index.schema import IndexedNote, text_hash
from gateway.index.scope import Scope
from gateway.index.store import Index

SETS = (
    ("deepchat", "deepchat", "deepchat"),
    ("memorybank-en", "memorybank-en", "memorybank-en"),
    ("memorybank-cn", "memorybank-cn", "memorybank-cn"),
    ("cn>en", "memorybank-en", "memorybank-cn"),
    ("en>cn", "memorybank-cn", "memorybank-en"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, whose memories it may see, and the ids of those that answer it."""

    text: str
    scope: Scope
    relevant: frozenset[str]
    vector: Vector


def open_set(data: Path, memories: str, questions: str, cache: Path, embedder: Embedder) -> tuple[Index, list[Case]]:
    """Index the memories of one set with all vectors; the questions of another (or the same) with theirs."""
    index = Index.open(str(cache / memories), embedder.identity)
    index.upsert(
        [
            IndexedNote(line["id"], "1", f"set/{line['scope']}", "", line["text"])
            for line in _lines(data / memories / "memories.jsonl")
        ]
    )
    while index.missing_vectors(1):
        report = index.fill_vectors(embedder, limit=256, batch=8)
        if report.error:
            raise report.error
    index.optimise(force=True)
    asked = [line for line in _lines(data / questions / "queries.jsonl") if line["relevant"]]
    vectors = _query_vectors([line["text"] for line in asked], cache / "queries.npz", embedder)
    cases = [
        Case(line["text"], Scope((f"set/{line['scope']}",)), frozenset(line["relevant"]), vectors[line["text"]])
        for line in asked
    ]
    return index, cases


def _query_vectors(texts: list[str], file: Path, embedder: Embedder) -> dict[str, Vector]:
    kept: dict[str, Vector] = {}
    if file.exists():
        with np.load(file) as stored:
            kept = {key: stored[key] for key in stored.files}
    prefix = embedder.identity.fingerprint
    missing = [text for text in dict.fromkeys(texts) if f"{prefix}-{text_hash(text)}" not in kept]
    for text in missing:
        kept[f"{prefix}-{text_hash(text)}"] = embedder.embed_query(text, timeout=60)
    if missing:
        np.savez(file, **kept)
    return {text: kept[f"{prefix}-{text_hash(text)}"] for text in texts}


def _lines(file: Path) -> list[dict[str, object]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

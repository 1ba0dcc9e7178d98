"""The sets that search quality is measured on, indexed with their vectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gateway.index.embed import Embedder, Vector
from gateway.index.schema import IndexedNote, text_hash
from gateway.index.scope import Scope
from gateway.index.store import Index
from gateway.ledger.registry import NoteRow

SETS = (
    ("deepchat", "deepchat", "deepchat"),
    ("memorybank-en", "memorybank-en", "memorybank-en"),
    ("memorybank-cn", "memorybank-cn", "memorybank-cn"),
    ("cn>en", "memorybank-en", "memorybank-cn"),
    ("en>cn", "memorybank-cn", "memorybank-en"),
)
PARAPHRASES = (("paraphrases-zh", "paraphrases", "zh"), ("paraphrases-en", "paraphrases", "en"))
_OWN = Path(__file__).resolve().parents[1] / "data" / "paraphrases"
_DAY_MS = 86_400_000
_UNDATED = 1_700_000_000_000

Line = dict[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its kind, whose memories it may see, and the ids of those that answer it."""

    text: str
    kind: str
    scope: Scope
    relevant: frozenset[str]
    vector: Vector


@dataclass(frozen=True, slots=True)
class Opened:
    """An indexed set, the ledger's rows of its memories, the moment at which it is asked, and the questions."""

    index: Index
    rows: dict[str, NoteRow]
    at: int
    cases: list[Case]


def open_set(data: Path, memories: str, questions: str, cache: Path, embedder: Embedder) -> Opened:
    """Index the memories of one set with all vectors; the questions of another (or the same) with theirs."""
    remembered, asked = _set(data, memories, questions)
    index = Index.open(str(cache / memories), embedder.identity)
    index.upsert([IndexedNote(line["id"], "1", _namespace(line), "", line["text"]) for line in remembered])
    while index.missing_vectors(1):
        report = index.fill_vectors(embedder, limit=256, batch=8)
        if report.error:
            raise report.error
    index.optimise(force=True)
    rows = {line["id"]: _row(line) for line in remembered}
    vectors = _query_vectors([line["text"] for line in asked], cache / "queries.npz", embedder)
    cases = [
        Case(
            line["text"],
            line.get("kind", ""),
            Scope((_namespace(line),)),
            frozenset(line["relevant"]),
            vectors[line["text"]],
        )
        for line in asked
    ]
    return Opened(index, rows, max(row.updated_at for row in rows.values()) + _DAY_MS, cases)


def _set(data: Path, memories: str, questions: str) -> tuple[list[Line], list[Line]]:
    """The lines of the memories, and of the questions that have an answer among them."""
    if memories != "paraphrases":
        asked = [line for line in _lines(data / questions / "queries.jsonl") if line["relevant"]]
        return _lines(data / memories / "memories.jsonl"), asked
    pairs = {
        name: [pair | {"id": f"{name}-{number}"} for number, pair in enumerate(_lines(_OWN / f"{name}.jsonl"), 1)]
        for name in ("zh", "en")
    }
    remembered = [
        {"id": pair["id"], "scope": "tom", "text": pair["memory"]} for part in pairs.values() for pair in part
    ]
    for name in ("memorybank-cn", "memorybank-en"):
        remembered += [
            {"id": f"{name}/{line['id']}", "scope": "tom", "text": line["text"]}
            for line in _lines(data / name / "memories.jsonl")
        ]
    asked = [{"text": pair["question"], "scope": "tom", "relevant": [pair["id"]]} for pair in pairs[questions]]
    return remembered, asked


def _namespace(line: Line) -> str:
    return f"user/{line['scope']}/long_term"


def _row(line: Line) -> NoteRow:
    """What the ledger would know of a memory: its date where the set tells one, nothing else that sets it apart."""
    dated = line.get("ts")
    moment = int(datetime.fromisoformat(dated).replace(tzinfo=UTC).timestamp() * 1000) if dated else _UNDATED
    return NoteRow(
        note_id=line["id"],
        path=line["id"],
        path_key=line["id"],
        namespace=_namespace(line),
        user_id=line["scope"],
        agent_id=None,
        workspace_id=None,
        session_id=None,
        memory_type="fact",
        title="",
        summary="",
        tags=[],
        importance=0.5,
        confidence=1.0,
        visibility="private",
        status="active",
        source="import",
        source_ref=None,
        created_at=moment,
        updated_at=moment,
        expires_at=None,
        version=1,
        etag="1",
        content_hash="1",
        read_only=False,
    )


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


def _lines(file: Path) -> list[Line]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

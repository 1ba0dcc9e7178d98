"""The columns of the index: one row a chunk, with everything that filters it. No I/O.

Times are int64 milliseconds since the epoch; "never expires" is the largest one, because one comparison filters
faster than a comparison or a null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow  # pyright: ignore[reportMissingTypeStubs]

from gateway.index.chunks import Chunk, chunk_note, clean
from gateway.index.embed import EmbeddingIdentity, Vector
from gateway.index.tokens import search_tokens

# pyarrow has no types.
pa: Any = pyarrow

# Part of every table's name: a change of columns, tokens, chunks or embedded text must change it, which forces a
# rebuild, because the new table starts empty.
INDEX_FORMAT = 2
NEVER = 2**63 - 1
HEADING_SEPARATOR = " › "

Row = dict[str, Any]

BITMAP_COLUMNS = ("namespace", "visibility", "status", "memory_type", "has_vector")
BTREE_COLUMNS = ("chunk_id", "note_id", "text_hash", "user_id", "agent_id", "workspace_id", "session_id")
LABEL_COLUMNS = ("tags",)


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """What the index keeps of a note. Times are epoch milliseconds; `etag` is the content hash of its file."""

    note_id: str
    etag: str
    namespace: str
    title: str
    body: str
    user_id: str = ""
    agent_id: str | None = None
    workspace_id: str | None = None
    visibility: str = "private"
    status: str = "active"
    memory_type: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    summary: str = ""
    importance: float = 0.5
    confidence: float = 1.0
    created_at: int = 0
    updated_at: int = 0
    expires_at: int | None = None
    session_id: str | None = None


def table_name(identity: EmbeddingIdentity | None, generation: int) -> str:
    """Name of the chunks table of a model, in this format."""
    return table_name_of(identity.slug if identity else "none", generation)


def table_name_of(slug: str, generation: int) -> str:
    """The same, where only the model's slug is known (`none` for keywords only)."""
    return f"chunks_{slug}_f{INDEX_FORMAT}_g{generation}"


def chunks_schema(dimension: int | None) -> Any:
    """Arrow schema of a chunks table; without a dimension it has no vector column."""
    text_columns = (
        *("chunk_id", "note_id", "etag", "write_id", "heading", "title", "summary", "text", "tokens", "text_hash"),
        *("namespace", "user_id", "agent_id", "workspace_id", "visibility", "status", "memory_type", "source"),
        "session_id",
    )
    fields = [pa.field(name, pa.string()) for name in text_columns]
    fields += [pa.field(name, pa.int64()) for name in ("created_at", "updated_at", "expires_at")]
    fields += [pa.field(name, pa.float32()) for name in ("importance", "confidence")]
    fields += [
        pa.field("ordinal", pa.int32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("has_vector", pa.bool_()),
    ]
    if dimension is not None:
        fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    return pa.schema(fields)


def vectors_schema(dimension: int) -> Any:
    """Arrow schema of the vector cache."""
    return pa.schema([pa.field("text_hash", pa.string()), pa.field("vector", pa.list_(pa.float32(), dimension))])


def note_rows(note: IndexedNote, write_id: str) -> list[Row]:
    """The rows of a note, without vectors. `write_id` tells them from the rows of earlier writes of the same note."""
    chunks = chunk_note(note.title, note.body)
    return [_row(note, chunk, write_id) for chunk in chunks]


def embedding_text(row: Mapping[str, Any]) -> str:
    """What is embedded for a row: title, summary and headings give a passage its context."""
    text = str(row["text"])
    context = [str(row["title"]), str(row["summary"]), str(row["heading"])]
    return "\n".join([*(part for part in dict.fromkeys(context) if part and part not in text), text])


def text_hash(text: str) -> str:
    """Key of a text in the vector cache: 32 hex digits of SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def vector_array(vectors: Sequence[Vector | None], dimension: int) -> Any:
    """The vectors as an Arrow column, null where there is none."""
    return pa.array(
        [None if vector is None else vector.tolist() for vector in vectors], type=pa.list_(pa.float32(), dimension)
    )


def _row(note: IndexedNote, chunk: Chunk, write_id: str) -> Row:
    row: Row = {
        "chunk_id": f"{note.note_id}#{write_id}#{chunk.ordinal}",
        "note_id": note.note_id,
        "etag": note.etag,
        "write_id": write_id,
        "ordinal": chunk.ordinal,
        "heading": HEADING_SEPARATOR.join(chunk.heading),
        "title": clean(note.title),
        "summary": clean(note.summary) if chunk.ordinal == 0 else "",
        "text": chunk.text,
        "has_vector": False,
    }
    embedded = embedding_text(row)
    return row | _filter_columns(note) | {"tokens": search_tokens(embedded), "text_hash": text_hash(embedded)}


def _filter_columns(note: IndexedNote) -> Row:
    return {
        "namespace": note.namespace,
        "user_id": note.user_id,
        "agent_id": note.agent_id or "",
        "workspace_id": note.workspace_id or "",
        "visibility": note.visibility,
        "status": note.status,
        "memory_type": note.memory_type,
        "tags": list(note.tags),
        "source": note.source,
        "session_id": note.session_id or "",
        "importance": note.importance,
        "confidence": note.confidence,
        "created_at": note.created_at,
        "updated_at": note.updated_at,
        "expires_at": NEVER if note.expires_at is None else note.expires_at,
    }


def arrow_rows(rows: Sequence[Row], vectors: Sequence[Vector | None], dimension: int | None) -> Any:
    """Rows and their vectors as an Arrow table in the schema of the chunks table."""
    schema = chunks_schema(dimension)
    columns = [
        vector_array(vectors, dimension)
        if field.name == "vector" and dimension is not None
        else pa.array([row[field.name] for row in rows], type=field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def arrow_vector_updates(chunk_ids: Sequence[str], vectors: Sequence[Vector], dimension: int) -> Any:
    """The columns that change when vectors arrive."""
    columns = [
        pa.array(list(chunk_ids), pa.string()),
        pa.array([True] * len(chunk_ids), pa.bool_()),
        vector_array(vectors, dimension),
    ]
    return pa.Table.from_arrays(columns, names=["chunk_id", "has_vector", "vector"])


def arrow_vectors(hashes: Sequence[str], vectors: Sequence[Vector], dimension: int) -> Any:
    """New rows of the vector cache."""
    columns = [pa.array(list(hashes), pa.string()), vector_array(vectors, dimension)]
    return pa.Table.from_arrays(columns, schema=vectors_schema(dimension))

"""What the services answer with: memories, receipts, search results. Plain values, ready for any door."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.ledger.registry import NoteRow
from gateway.notes.frontmatter import split
from gateway.notes.namespace import parse_namespace, uri_of

DONE, PENDING = "done", "pending"


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory as seed 004 section B has it, plus where it stands. Times are RFC 3339 in UTC."""

    id: str
    user_id: str | None
    agent_id: str | None
    workspace_id: str | None
    session_id: str | None
    namespace: str
    memory_type: str
    title: str
    content: str
    summary: str
    tags: list[str]
    importance: float
    confidence: float
    visibility: str
    status: str
    source: str
    source_ref: str | None
    created_at: str
    updated_at: str
    expires_at: str | None
    version: int
    etag: str
    path: str
    uri: str
    read_only: bool
    temporal_kind: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    precision: str | None = None
    timezone: str | None = None
    temporal_confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """How far a write has come; each part is `done`, `pending` or `failed: reason`."""

    file: str
    ledger: str
    commit: str
    fts: str
    vector: str


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a write."""

    id: str
    namespace: str
    version: int
    etag: str
    path: str
    receipt: Receipt
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class ReviewReference:
    """A draft that waits for a person's decision; `path` is its file."""

    id: str
    status: str
    path: str


@dataclass(frozen=True, slots=True)
class InReview:
    """The answer to a write that policy sends to review: no memory was written yet."""

    review: ReviewReference


@dataclass(frozen=True, slots=True)
class Erased:
    """One place where a forgotten memory stood: `done`, `pending`, or what remains and where."""

    place: str
    state: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """The answer to a delete; `erasure` says of each place what became of it there."""

    deleted: bool
    id: str
    receipt: Receipt
    erasure: list[Erased]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; `next_cursor` is None on the last."""

    memories: list[MemoryRecord]
    total: int | None
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """One search result. `score` lies between 0 and 1 and compares within one answer only.

    Attributes:
        qualification: what must be said along with the memory because of its time, e.g. `previously planned`.
        folded: ids of memories that say the same and are not shown.
    """

    memory: MemoryRecord
    score: float
    heading: str
    snippet: str
    explain: dict[str, float | int | None] | None = None
    qualification: str | None = None
    folded: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Search results, best first; `total` counts those returned.

    Attributes:
        degraded: what did not take part, e.g. `embedding_timeout`: keywords alone answered.
        truncated: contents were cut, or results left out, to keep the answer within its byte limit.
        candidate_budget_exhausted: there may be more; the candidates ran out after filtering.
        next_cursor: for the next page of the same search; None where nothing follows.
    """

    results: list[Found]
    total: int
    degraded: list[str]
    truncated: bool
    candidate_budget_exhausted: bool
    next_cursor: str | None = None


def text_time(ms: int | None) -> str | None:
    """A ledger time as RFC 3339 text."""
    if ms is None:
        return None
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")


def content_of(data: bytes) -> str:
    """The body of a note as an agent reads it: without properties and the blank lines around it."""
    return split(data.decode("utf-8", "replace")).body.strip("\r\n")


def record(row: NoteRow, content: str) -> MemoryRecord:
    """A memory of the registry with its text."""
    return MemoryRecord(
        id=row.note_id,
        user_id=row.user_id,
        agent_id=row.agent_id,
        workspace_id=row.workspace_id,
        session_id=row.session_id,
        namespace=row.namespace,
        memory_type=row.memory_type,
        title=row.title,
        content=content,
        summary=row.summary,
        tags=row.tags,
        importance=row.importance,
        confidence=row.confidence,
        visibility=row.visibility,
        status=row.status,
        source=row.source,
        source_ref=row.source_ref,
        created_at=text_time(row.created_at) or "",
        updated_at=text_time(row.updated_at) or "",
        expires_at=text_time(row.expires_at),
        version=row.version,
        etag=row.etag,
        path=row.path,
        uri=uri_of(parse_namespace(row.namespace), row.note_id),
        read_only=row.read_only,
        temporal_kind=row.temporal_kind,
        valid_from=text_time(row.valid_from),
        valid_until=text_time(row.valid_until),
        precision=row.precision,
        timezone=row.timezone,
        temporal_confidence=row.temporal_confidence,
    )

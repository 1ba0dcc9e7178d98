"""What the tools return, typed: the host shows these schemas to the model."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Result(BaseModel):
    model_config = ConfigDict(extra="ignore")


class FoundMemory(_Result):
    """The parts of a memory that a model needs."""

    id: str
    namespace: str
    memory_type: str
    title: str
    content: str
    summary: str
    tags: list[str]
    importance: float
    confidence: float
    visibility: str
    source: str
    created_at: str
    updated_at: str
    expires_at: str | None
    version: int
    etag: str


class FoundEntry(_Result):
    """One hit; `score` compares within this answer only."""

    memory: FoundMemory
    score: float


class SearchResult(_Result):
    """Hits, best first."""

    results: list[FoundEntry]
    total: int
    degraded: list[str]
    truncated: bool


class ReviewResult(_Result):
    """A draft that waits for a person's decision."""

    id: str
    status: str
    path: str


class WriteResult(_Result):
    """A memory as written, `receipt` says how far it has come; or a `review`: a person decides, nothing is kept yet."""

    id: str | None = None
    namespace: str | None = None
    version: int | None = None
    etag: str | None = None
    receipt: dict[str, str] | None = None
    duplicate: bool = False
    review: ReviewResult | None = Field(None, exclude_if=lambda value: value is None)


class EpisodeResult(_Result):
    """An appended episode."""

    id: str
    seq: int
    namespace: str


class PromotedMemory(_Result):
    """A memory that a commit wrote."""

    id: str
    namespace: str


class CommitResult(_Result):
    """What a commit did; `reviews` wait for a person's decision."""

    session_id: str
    episodes: int
    promoted: list[PromotedMemory]
    reviews: list[ReviewResult]
    candidates: int
    held: list[str]
    summary: str
    cursor: int


class ProfileResult(_Result):
    """A profile."""

    id: str
    user_id: str
    namespace: str
    display_name: str
    stable_facts: list[str]
    preferences: dict[str, Any]
    working_style: list[str]
    version: int


class NamespaceEntry(_Result):
    """A namespace."""

    namespace: str
    visibility: str


class NamespaceResult(_Result):
    """The namespaces of a context."""

    namespaces: list[NamespaceEntry]


class ErasedPlace(_Result):
    """One place where a forgotten memory stood, and what became of it there."""

    place: str
    state: str


class DeleteResult(_Result):
    """A forgotten memory; or a `review`: a person decides whether it is retired."""

    deleted: bool = False
    id: str | None = None
    erasure: list[ErasedPlace] | None = Field(None, exclude_if=lambda value: value is None)
    review: ReviewResult | None = Field(None, exclude_if=lambda value: value is None)


class FeedbackResult(_Result):
    """A judgement that was recorded."""

    status: str
    memory_id: str
    feedback: str

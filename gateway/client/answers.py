"""What the gateway answers, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Judgement = Literal["incorrect", "duplicate", "outdated", "useful"]


class Memory(TypedDict, total=False):
    """A memory, as `GET /v1/memory/{id}` answers."""

    id: str
    user_id: str | None
    agent_id: str | None
    workspace_id: str | None
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
    created_at: str
    updated_at: str
    expires_at: str | None
    version: int
    etag: str
    path: str


class Found(TypedDict):
    """One search result."""

    memory: Memory
    score: float


class SearchAnswer(TypedDict):
    """Search results, best first."""

    results: list[Found]
    total: int
    degraded: list[str]
    truncated: bool


class Context(TypedDict):
    """What to put before a turn: `memory` is data in one fence, `directives` are to be followed."""

    memory: str
    directives: list[dict[str, Any]]
    manifest: dict[str, Any]


class Written(TypedDict):
    """The answer to a write."""

    id: str
    namespace: str
    version: int
    etag: str
    path: str
    receipt: dict[str, str]
    duplicate: bool


class Forgotten(TypedDict):
    """The answer to a memory that was forgotten."""

    deleted: bool
    id: str
    receipt: dict[str, str]
    erasure: list[dict[str, str]]


class ReviewReference(TypedDict):
    """A draft that waits for a person's decision."""

    id: str
    status: str
    path: str


class InReview(TypedDict):
    """The answer to a write that a person must accept first: nothing is remembered yet."""

    review: ReviewReference


WriteAnswer: TypeAlias = Written | InReview
ForgetAnswer: TypeAlias = Forgotten | InReview


class Committed(TypedDict):
    """The answer to a session commit."""

    session_id: str
    episodes: int
    promoted: list[dict[str, str]]
    reviews: list[ReviewReference]
    candidates: int
    held: list[str]
    summary: str
    cursor: int


class Review(TypedDict):
    """A draft, as lists show it."""

    id: str
    status: str
    proposal: str
    target: str | None
    target_namespace: str
    title: str
    confidence: float
    proposed_by: str
    why: str
    evidence: list[str]
    path: str
    etag: str
    branch: str | None
    memory_id: str | None
    created_at: str
    updated_at: str
    decided_at: str | None
    decided_by: str | None
    decided_via: str | None
    decision_reason: str | None


class ReviewDetail(TypedDict):
    """A draft with its text, and what accepting it would change."""

    review: Review
    text: str
    properties: dict[str, Any]
    current: str | None
    diff: str
    stale: bool
    problem: str | None


class ReviewPage(TypedDict):
    """A page of drafts, oldest first; `next_cursor` is None on the last."""

    reviews: list[Review]
    total: int
    next_cursor: str | None


class Decision(TypedDict):
    """What came of a decision; `memory_id` is None for a rejected draft."""

    review: Review
    memory_id: str | None


class Happened(TypedDict):
    """One event: `event` is its kind, or `reset` where some were missed; `id` is what it is about, if anything.

    Further members depend on the kind: `version` of a memory, `memory_id` of a draft, `problem`, and `job`, `phase`,
    `done` and `total` of a job.
    """

    event: str
    seq: int
    kind: NotRequired[str]
    change: NotRequired[str]
    id: NotRequired[str]
    namespace: NotRequired[str | None]
    at: NotRequired[str]
    version: NotRequired[int]
    memory_id: NotRequired[str]
    agent_id: NotRequired[str | None]
    problem: NotRequired[str]
    job: NotRequired[str]
    phase: NotRequired[str]
    done: NotRequired[int]
    total: NotRequired[int | None]
    advice: NotRequired[str]


class GatewayProblem(Exception):
    """The gateway refused: `type` and `status` are stable, `detail` is for people, `document` is all of it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        self.status = int(document.get("status", 0))
        self.type = str(document.get("type", "about:blank"))
        self.detail = str(document.get("detail", "no detail"))
        advice = document.get("advice")
        super().__init__(f"{self.detail}{f' {advice}' if advice else ''}")

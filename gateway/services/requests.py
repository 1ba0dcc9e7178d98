"""What callers ask for, checked: one value per request, with every wrong field named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gateway.access.guard import Context
from gateway.errors import ChangedElsewhere, Invalid, PreconditionRequired
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import Namespace, parse_namespace
from gateway.notes.paths import check_id

Visibility = Literal["private", "agent-only", "workspace-shared", "global"]
_LINE = re.compile(r"[^\x00-\x1f\x7f\u2028\u2029]*")
_MAX_TEXT = 2_000


class RequestBody(BaseModel):
    """What all request bodies share: no unknown fields, and fields of one name are checked alike."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    @field_validator(
        "user_id", "agent_id", "workspace_id", "session_id", "owner_user_id", mode="after", check_fields=False
    )
    @classmethod
    def _ids(cls, value: str | None, info: Any) -> str | None:
        if value is None:
            return None
        return _checked_id(value, str(info.field_name))

    @field_validator("member_user_ids", "allowed_agent_ids", "workspace_ids", mode="after", check_fields=False)
    @classmethod
    def _id_lists(cls, value: tuple[str, ...] | None, info: Any) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(_checked_id(one, str(info.field_name)) for one in value))

    @field_validator(
        "summary",
        "memory_type",
        "source",
        "source_ref",
        "reason",
        "valid_from",
        "valid_until",
        mode="after",
        check_fields=False,
    )
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        if value is not None and not _LINE.fullmatch(value):
            raise ValueError("must be one line without control characters")
        return value

    @field_validator("tags", mode="after", check_fields=False)
    @classmethod
    def _tags(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(_tag(tag) for tag in value))

    @field_validator("content", mode="after", check_fields=False)
    @classmethod
    def _text(cls, value: str | None) -> str | None:
        return _readable(value)

    @field_validator("expires_at", "as_of", mode="after", check_fields=False)
    @classmethod
    def _utc(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        try:
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError:
            raise ValueError("lies outside the years 1 to 9999 in UTC") from None


class NewMemory(RequestBody):
    """The body of `POST /v1/memory` (seed 004 section D)."""

    content: str
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None
    namespace: str | None = None
    memory_type: str = Field("note", min_length=1, max_length=64)
    summary: str | None = Field(None, max_length=_MAX_TEXT)
    tags: tuple[str, ...] = Field((), max_length=100)
    importance: float = Field(0.5, ge=0, le=1)
    confidence: float = Field(1.0, ge=0, le=1)
    visibility: Visibility | None = None
    source: str = Field("manual", min_length=1, max_length=64)
    source_ref: str | None = Field(None, max_length=_MAX_TEXT)
    expires_at: datetime | None = None
    valid_from: str | None = Field(None, max_length=100)
    valid_until: str | None = Field(None, max_length=100)
    temporal_kind: Literal["state", "event", "plan", "recurring"] | None = None
    precision: Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"] | None = None
    timezone: str | None = Field(None, max_length=64)
    temporal_confidence: float | None = Field(None, ge=0, le=1)


class MemoryPatch(RequestBody):
    """The body of `PATCH /v1/memory/{id}`: only what is given changes; null takes a property away."""

    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    version: int | None = Field(None, ge=1)
    content: str | None = None
    memory_type: str | None = Field(None, min_length=1, max_length=64)
    summary: str | None = Field(None, max_length=_MAX_TEXT)
    tags: tuple[str, ...] | None = Field(None, max_length=100)
    importance: float | None = Field(None, ge=0, le=1)
    confidence: float | None = Field(None, ge=0, le=1)
    visibility: Visibility | None = None
    status: Literal["active", "needs_review", "superseded", "deprecated", "archived", "rejected"] | None = None
    source: str | None = Field(None, min_length=1, max_length=64)
    source_ref: str | None = Field(None, max_length=_MAX_TEXT)
    expires_at: datetime | None = None
    valid_from: str | None = Field(None, max_length=100)
    valid_until: str | None = Field(None, max_length=100)
    temporal_kind: Literal["state", "event", "plan", "recurring"] | None = None
    precision: Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"] | None = None
    timezone: str | None = Field(None, max_length=64)
    temporal_confidence: float | None = Field(None, ge=0, le=1)


class Revert(RequestBody):
    """The body of `POST /v1/memory/{id}/revert`: `to` is a commit of the memory, or the number of a version."""

    to: str | int
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    version: int | None = Field(None, ge=1)


class Search(RequestBody):
    """The body of `POST /v1/memory/search`."""

    query: str
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None
    turn_id: str | None = Field(None, min_length=1, max_length=200)
    namespaces: tuple[str, ...] | None = Field(None, min_length=1, max_length=100)
    limit: int = Field(10, ge=1)
    offset: int = Field(0, ge=0, le=1000)
    mode: Literal["hybrid", "fts", "vector"] = "hybrid"
    kinds: tuple[str, ...] | None = Field(None, min_length=1, max_length=50)
    tags: tuple[str, ...] = Field((), max_length=50)
    min_confidence: float | None = Field(None, ge=0, le=1)
    as_of: datetime | None = None
    max_bytes: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    cursor: str | None = Field(None, max_length=200)
    explain: bool = False

    @field_validator("query", mode="after")
    @classmethod
    def _something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value


class NewUser(RequestBody):
    """The body of `POST /v1/users`."""

    user_id: str
    display_name: str | None = Field(None, min_length=1, max_length=200)
    preferences: dict[str, Any] = Field(default_factory=dict)


class NewSession(RequestBody):
    """The body of `POST /v1/sessions`."""

    session_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    kind: Literal["main", "subagent"] = "main"
    expires_at: datetime | None = None
    ttl_seconds: int | None = Field(None, ge=1)


class NewEpisode(RequestBody):
    """The body of `POST /v1/episodes` (seed 004 section D)."""

    session_id: str
    content: str
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    summary: str | None = Field(None, max_length=_MAX_TEXT)
    events: tuple[Any, ...] = Field((), max_length=1_000)
    tags: tuple[str, ...] = Field((), max_length=100)


class CommitSession(RequestBody):
    """The body of `POST /v1/sessions/{session_id}/commit` (seed 004 section D)."""

    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    promote: bool = True
    min_importance: float | None = Field(None, ge=0, le=1)
    target_namespace: str | None = None

    @field_validator("target_namespace", mode="after")
    @classmethod
    def _a_namespace(cls, value: str | None) -> str | None:
        if value is not None and parse_namespace(value).room not in ("long_term", "memory", "shared"):
            raise ValueError("must be a namespace that holds many memories, such as user/tom/long_term")
        return value


class NewAgent(RequestBody):
    """The body of `POST /v1/agents`."""

    agent_id: str
    name: str | None = Field(None, min_length=1, max_length=200)
    framework: str = Field("other", min_length=1, max_length=64)
    owner_user_id: str | None = None


class AgentPatch(RequestBody):
    """The body of `PATCH /v1/agents/{agent_id}`."""

    name: str | None = Field(None, min_length=1, max_length=200)
    framework: str | None = Field(None, min_length=1, max_length=64)
    status: Literal["active", "disabled"] | None = None


class NewWorkspace(RequestBody):
    """The body of `POST /v1/workspaces`."""

    workspace_id: str
    name: str | None = Field(None, min_length=1, max_length=200)
    owner_user_id: str | None = None
    member_user_ids: tuple[str, ...] = Field((), max_length=1_000)
    allowed_agent_ids: tuple[str, ...] = Field((), max_length=1_000)


class WorkspacePatch(RequestBody):
    """The body of `PATCH /v1/workspaces/{workspace_id}`; lists are replaced as a whole."""

    name: str | None = Field(None, min_length=1, max_length=200)
    member_user_ids: tuple[str, ...] | None = Field(None, max_length=1_000)
    allowed_agent_ids: tuple[str, ...] | None = Field(None, max_length=1_000)
    status: Literal["active", "disabled"] | None = None


class UserPatch(RequestBody):
    """The body of `PATCH /v1/users/{user_id}`."""

    display_name: str | None = Field(None, min_length=1, max_length=200)
    preferences: dict[str, Any] | None = None


class NewApiKey(RequestBody):
    """The body of `POST /v1/keys`."""

    role: Literal["admin", "user", "agent", "reader"]
    user_id: str | None = None
    agent_id: str | None = None
    workspace_ids: tuple[str, ...] = Field((), max_length=100)
    expires_at: datetime | None = None
    label: str = Field("", max_length=200)


class Feedback(RequestBody):
    """The body of `POST /v1/memory/{memory_id}/feedback`."""

    feedback: Literal["incorrect", "duplicate", "outdated", "useful"]
    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    comment: str = Field("", max_length=_MAX_TEXT)


class AcceptReview(RequestBody):
    """The body of `POST /v1/reviews/{review_id}/accept`; `text` replaces the text of the draft."""

    text: str | None = None
    reason: str | None = Field(None, max_length=_MAX_TEXT)

    @field_validator("text", mode="after")
    @classmethod
    def _kept_text(cls, value: str | None) -> str | None:
        return _readable(value)


class RejectReview(RequestBody):
    """The body of `POST /v1/reviews/{review_id}/reject`."""

    reason: str | None = Field(None, max_length=_MAX_TEXT)


@dataclass(frozen=True, slots=True)
class Precondition:
    """What a change is based on: hashes of `If-Match` (`*`: any), or a version number."""

    etags: tuple[str, ...] = ()
    version: int | None = None

    @classmethod
    def of(cls, if_match: str | None, version: int | None) -> Precondition:
        """From the header `If-Match` (RFC 9110 section 13.1.1) and a version number.

        Raises:
            PreconditionRequired: neither is given.
            Invalid: the header is malformed.
        """
        if if_match is None and version is None:
            raise PreconditionRequired(
                "A change must say which version it is based on.",
                field="If-Match",
                advice='Send `If-Match: "<etag>"` or `version` from the last answer.',
            )
        if if_match is None:
            return cls((), version)
        tags = tuple(part.strip().removeprefix("W/") for part in if_match.split(","))
        if not all(tag == "*" or re.fullmatch(r'"[^"]*"|[0-9a-f]{64}', tag) for tag in tags):
            raise Invalid("`If-Match` holds no etag.", field="If-Match", advice='Send it as `If-Match: "<etag>"`.')
        return cls(tuple(tag.strip('"') for tag in tags), version)

    def check(self, row: NoteRow, explain_difference: Callable[[Precondition], str]) -> None:
        """Compare with the present row.

        Raises:
            ChangedElsewhere: it is another version by now; the error carries the current etag and a diff.
        """
        wrong_etag = bool(self.etags) and "*" not in self.etags and row.etag not in self.etags
        wrong_version = self.version is not None and self.version != row.version
        if wrong_etag or wrong_version:
            raise ChangedElsewhere(
                "The memory has changed since you read it; nothing was written.",
                field="If-Match" if wrong_etag else "version",
                advice="Read it again, apply your change to the present text, and send the current etag.",
                etag=row.etag,
                version=row.version,
                diff=explain_difference(self),
            )


def namespace_for(new: NewMemory, context: Context, user_id: str) -> Namespace:
    """Where a new memory goes: by its visibility, as seed 004 section C lays it down.

    Raises:
        Invalid: the context that the visibility needs is missing, or a given namespace contradicts it.
    """
    match new.visibility or _implied(new):
        case "agent-only":
            wanted = Namespace("agent", _needed(context.agent_id, "agent_id", "agent-only"), "memory")
        case "workspace-shared":
            wanted = Namespace("workspace", _needed(new.workspace_id, "workspace_id", "workspace-shared"), "shared")
        case "global":
            wanted = Namespace("global", "", "public")
        case _:
            wanted = Namespace("user", user_id, "long_term")
    if new.namespace is not None and new.namespace != str(wanted):
        raise Invalid(
            f"The namespace {new.namespace!r} is not where this memory belongs ({wanted}).",
            field="namespace",
            advice="Leave it out, or change `visibility` and the ids.",
        )
    return wanted


def _implied(new: NewMemory) -> str:
    """A namespace given without a visibility implies its own."""
    kinds = {"agent/": "agent-only", "workspace/": "workspace-shared", "global/": "global"}
    return next((seen for start, seen in kinds.items() if (new.namespace or "").startswith(start)), "private")


def _needed(value: str | None, field: str, visibility: str) -> str:
    if value is None:
        raise Invalid(f"A memory that is `{visibility}` needs `{field}`.", field=field)
    return value


def _readable(value: str | None) -> str | None:
    if value is None:
        return None
    if not value.strip():
        raise ValueError("must not be empty")
    if "\0" in value:
        raise ValueError("must not hold NUL characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("holds half a character (a lone surrogate)") from None
    return value


def _checked_id(value: str, field: str) -> str:
    try:
        return check_id(value, field)
    except Invalid as error:
        raise ValueError(error.detail) from None


def _tag(tag: str) -> str:
    clean = tag.strip().lstrip("#").strip("/")
    if not clean or len(clean) > 100 or re.search(r"[\s,#\x00-\x1f]", clean):
        raise ValueError(f"{tag[:40]!r} is no tag; use letters, digits, - _ and /")
    return clean

"""What callers ask of directives and contexts, checked."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from gateway.services.requests import RequestBody

_MAX_TEXT = 2_000


class NewDirective(RequestBody):
    """The body of `POST /v1/directives`."""

    user_id: str | None = None
    agent_id: str | None = None
    kind: Literal["style", "rule", "suppress_topic"] = "rule"
    content: str = Field(max_length=_MAX_TEXT)
    summary: str | None = Field(None, max_length=_MAX_TEXT)


class DirectivePatch(RequestBody):
    """The body of `PATCH /v1/directives/{directive_id}`."""

    kind: Literal["style", "rule", "suppress_topic"] | None = None
    content: str | None = Field(None, max_length=_MAX_TEXT)
    summary: str | None = Field(None, max_length=_MAX_TEXT)
    status: Literal["active", "deprecated", "archived"] | None = None
    version: int | None = Field(None, ge=1)


class ContextRequest(RequestBody):
    """The body of `POST /v1/context`; `token_budget` is the hard ceiling of memory and directives together."""

    user_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None
    turn_id: str | None = Field(None, min_length=1, max_length=200)
    query: str = ""
    token_budget: int = Field(2_000, ge=64, le=1_000_000)
    as_of: datetime | None = None

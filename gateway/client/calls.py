"""The requests of every method, without sending them, and what to do with an answer."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from .answers import GatewayProblem

TRIES = 4
_RETRIED = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """One request: how it is sent, and whether sending it twice is safe."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _write_headers(wait: float, etag: str | None = None) -> dict[str, str]:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    if wait:
        headers["Prefer"] = f"wait={wait:g}"
    if etag is not None:
        headers["If-Match"] = f'"{etag}"'
    return headers


class Calls:
    """The requests, by method."""

    def __init__(self, user_id: str | None, agent_id: str | None, workspace_id: str | None) -> None:
        self._ids = _given(user_id=user_id, agent_id=agent_id, workspace_id=workspace_id)

    def search(self, query: str, limit: int, options: Mapping[str, Any]) -> Call:
        body = self._ids | {"query": query, "limit": limit} | _given(**options)
        return Call("POST", "/v1/memory/search", body)

    def remember(self, content: str, wait: float, fields: Mapping[str, Any]) -> Call:
        body = self._ids | {"content": content} | _given(**fields)
        return Call("POST", "/v1/memory", body, headers=_write_headers(wait))

    def get(self, memory_id: str) -> Call:
        return Call("GET", f"/v1/memory/{memory_id}", query=self._ids)

    def change(self, memory_id: str, etag: str, wait: float, fields: Mapping[str, Any]) -> Call:
        return Call("PATCH", f"/v1/memory/{memory_id}", self._ids | dict(fields), headers=_write_headers(wait, etag))

    def forget(self, memory_id: str, etag: str) -> Call:
        return Call("DELETE", f"/v1/memory/{memory_id}", headers=_write_headers(0, etag))

    def told(self, memory_id: str, what: str) -> Call:
        return Call("GET", f"/v1/memory/{memory_id}/{what}")

    def diff(self, memory_id: str, start: str | int | None, end: str | int | None) -> Call:
        return Call("GET", f"/v1/memory/{memory_id}/diff", query=_given(**{"from": start, "to": end}))

    def revert(self, memory_id: str, to: str | int, etag: str, wait: float) -> Call:
        body = self._ids | {"to": str(to)}
        return Call("POST", f"/v1/memory/{memory_id}/revert", body, headers=_write_headers(wait, etag))

    def append(self, session_id: str, content: str, tags: Sequence[str]) -> Call:
        body = self._ids | {"session_id": session_id, "content": content, "tags": list(tags)}
        return Call("POST", "/v1/episodes", body)

    def commit(self, session_id: str, options: Mapping[str, Any]) -> Call:
        body = self._ids | _given(**options)
        return Call("POST", f"/v1/sessions/{session_id}/commit", body, headers={"Idempotent": "true"})

    def profile(self, user_id: str) -> Call:
        return Call("GET", f"/v1/users/{user_id}/profile")

    def namespaces(self) -> Call:
        return Call("GET", "/v1/namespaces", query=self._ids)

    def judge(self, memory_id: str, judgement: str, comment: str) -> Call:
        body = self._ids | {"feedback": judgement, "comment": comment}
        return Call("POST", f"/v1/memory/{memory_id}/feedback", body, headers={"Idempotent": "true"})

    def context(self, query: str, token_budget: int, options: Mapping[str, Any]) -> Call:
        body = self._ids | {"query": query, "token_budget": token_budget} | _given(**options)
        return Call("POST", "/v1/context", body, headers={"Idempotent": "true"})

    def direct(self, content: str, kind: str) -> Call:
        body = {name: value for name, value in self._ids.items() if name != "workspace_id"}
        return Call("POST", "/v1/directives", body | {"content": content, "kind": kind})

    def directives(self) -> Call:
        return Call("GET", "/v1/directives", query=_given(user_id=self._ids.get("user_id")))

    def reviews(self, wanted: Mapping[str, Any]) -> Call:
        return Call("GET", "/v1/reviews", query=_given(**wanted))

    def review(self, review_id: str) -> Call:
        return Call("GET", f"/v1/reviews/{review_id}")

    def decide(self, review_id: str, decision: str, etag: str | None, **body: Any) -> Call:
        return Call("POST", f"/v1/reviews/{review_id}/{decision}", _given(**body), headers=_write_headers(0, etag))


def may_retry(call: Call) -> bool:
    """Whether sending a request twice does no harm."""
    searching = call.path.endswith("/search")
    return call.method == "GET" or searching or bool({"Idempotency-Key", "Idempotent"} & set(call.headers))


def worth_retrying(answer: httpx.Response) -> bool:
    """Whether the same request may be answered otherwise in a moment."""
    return answer.status_code in _RETRIED


def is_final(call: Call, answer: httpx.Response, attempt: int) -> bool:
    """Whether an answer is the caller's, or the request is tried again."""
    return answer.status_code not in _RETRIED or not may_retry(call) or attempt == TRIES - 1


def pause(attempt: int, answer: httpx.Response | None) -> float:
    """Seconds until the next try."""
    after = answer.headers.get("retry-after", "") if answer is not None else ""
    return min(30.0, float(after)) if after.isdigit() else 0.2 * 2.0**attempt


def result(answer: httpx.Response) -> Any:
    """The JSON of an answer.

    Raises:
        GatewayProblem: the gateway refused.
    """
    if answer.status_code < 400:
        return answer.json()
    try:
        document: Any = answer.json()
    except ValueError:
        document = {}
    known = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    raise GatewayProblem({"status": answer.status_code, "detail": f"HTTP {answer.status_code}"} | known)

"""What agents install to talk to a gateway. Imports nothing of the rest of the package.

`MemoryGateway` blocks, `AsyncMemoryGateway` does not; both have the same methods. Writes carry an idempotency key, so
that a retry after a lost answer is done once.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TypedDict, cast

import httpx

__all__ = ["AsyncMemoryGateway", "GatewayProblem", "MemoryGateway", "SearchAnswer", "Written"]

Judgement = Literal["incorrect", "duplicate", "outdated", "useful"]
_RETRIED = frozenset({429, 502, 503, 504})
_TRIES = 4


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


class Written(TypedDict):
    """The answer to a write."""

    id: str
    namespace: str
    version: int
    etag: str
    receipt: dict[str, str]


class Committed(TypedDict):
    """The answer to a session commit."""

    session_id: str
    episodes: int
    promoted: list[dict[str, str]]
    candidates: int
    summary: str
    cursor: int


class GatewayProblem(Exception):
    """The gateway refused: `type` and `status` are stable, `detail` is for people, `document` is all of it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        self.status = int(document.get("status", 0))
        self.type = str(document.get("type", "about:blank"))
        self.detail = str(document.get("detail", "no detail"))
        advice = document.get("advice")
        super().__init__(f"{self.detail}{f' {advice}' if advice else ''}")


@dataclass(frozen=True, slots=True)
class _Call:
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


class _Calls:
    """The requests of every method, without sending them."""

    def __init__(self, user_id: str | None, agent_id: str | None, workspace_id: str | None) -> None:
        self._ids = _given(user_id=user_id, agent_id=agent_id, workspace_id=workspace_id)

    def search(self, query: str, limit: int, options: Mapping[str, Any]) -> _Call:
        body = self._ids | {"query": query, "limit": limit} | _given(**options)
        return _Call("POST", "/v1/memory/search", body)

    def remember(self, content: str, wait: float, fields: Mapping[str, Any]) -> _Call:
        body = self._ids | {"content": content} | _given(**fields)
        return _Call("POST", "/v1/memory", body, headers=_write_headers(wait))

    def get(self, memory_id: str) -> _Call:
        return _Call("GET", f"/v1/memory/{memory_id}", query=self._ids)

    def change(self, memory_id: str, etag: str, wait: float, fields: Mapping[str, Any]) -> _Call:
        return _Call("PATCH", f"/v1/memory/{memory_id}", self._ids | dict(fields), headers=_write_headers(wait, etag))

    def forget(self, memory_id: str, etag: str) -> _Call:
        return _Call("DELETE", f"/v1/memory/{memory_id}", headers=_write_headers(0, etag))

    def told(self, memory_id: str, what: str) -> _Call:
        return _Call("GET", f"/v1/memory/{memory_id}/{what}")

    def diff(self, memory_id: str, start: str | int | None, end: str | int | None) -> _Call:
        return _Call("GET", f"/v1/memory/{memory_id}/diff", query=_given(**{"from": start, "to": end}))

    def revert(self, memory_id: str, to: str | int, etag: str, wait: float) -> _Call:
        body = self._ids | {"to": str(to)}
        return _Call("POST", f"/v1/memory/{memory_id}/revert", body, headers=_write_headers(wait, etag))

    def append(self, session_id: str, content: str, tags: Sequence[str]) -> _Call:
        body = self._ids | {"session_id": session_id, "content": content, "tags": list(tags)}
        return _Call("POST", "/v1/episodes", body)

    def commit(self, session_id: str, options: Mapping[str, Any]) -> _Call:
        body = self._ids | _given(**options)
        return _Call("POST", f"/v1/sessions/{session_id}/commit", body, headers={"Idempotent": "true"})

    def profile(self, user_id: str) -> _Call:
        return _Call("GET", f"/v1/users/{user_id}/profile")

    def namespaces(self) -> _Call:
        return _Call("GET", "/v1/namespaces", query=self._ids)

    def judge(self, memory_id: str, judgement: str, comment: str) -> _Call:
        body = self._ids | {"feedback": judgement, "comment": comment}
        return _Call("POST", f"/v1/memory/{memory_id}/feedback", body, headers={"Idempotent": "true"})


def _may_retry(call: _Call) -> bool:
    searching = call.path.endswith("/search")
    return call.method == "GET" or searching or bool({"Idempotency-Key", "Idempotent"} & set(call.headers))


def _is_final(call: _Call, answer: httpx.Response, attempt: int) -> bool:
    return answer.status_code not in _RETRIED or not _may_retry(call) or attempt == _TRIES - 1


def _pause(attempt: int, answer: httpx.Response | None) -> float:
    after = answer.headers.get("retry-after", "") if answer is not None else ""
    return min(30.0, float(after)) if after.isdigit() else 0.2 * 2.0**attempt


def _result(answer: httpx.Response) -> Any:
    if answer.status_code < 400:
        return answer.json()
    try:
        document: Any = answer.json()
    except ValueError:
        document = {}
    known = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    raise GatewayProblem({"status": answer.status_code, "detail": f"HTTP {answer.status_code}"} | known)


class MemoryGateway:
    """A gateway, from a program that may block.

    Args:
        url: the base URL, e.g. `http://127.0.0.1:8765`.
        key: the API key.
        user_id, agent_id, workspace_id: sent with every request; left out, the key's own hold.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._calls = _Calls(user_id, agent_id, workspace_id)
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout)

    def __enter__(self) -> MemoryGateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def search(self, query: str, *, limit: int = 5, **options: Any) -> SearchAnswer:
        """Find memories. `options` are further fields of `POST /v1/memory/search`."""
        return self._send(self._calls.search(query, limit, options))

    def remember(self, content: str, *, wait: float = 5.0, **fields: Any) -> Written:
        """Write a memory and wait up to `wait` seconds until it is found."""
        return self._send(self._calls.remember(content, wait, fields))

    def get(self, memory_id: str) -> Memory:
        """One memory."""
        return self._send(self._calls.get(memory_id))

    def change(self, memory_id: str, *, etag: str, wait: float = 5.0, **fields: Any) -> Written:
        """Change a memory that has this etag; another by now raises `GatewayProblem` 409 with the difference."""
        return self._send(self._calls.change(memory_id, etag, wait, fields))

    def forget(self, memory_id: str, *, etag: str) -> dict[str, Any]:
        """Forget a memory that has this etag."""
        return self._send(self._calls.forget(memory_id, etag))

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """All versions of a memory, newest first."""
        return self._send(self._calls.told(memory_id, "history"))["versions"]

    def text_at(self, memory_id: str, commit: str | int) -> dict[str, Any]:
        """What a memory said in a version, named by its commit or its number."""
        return self._send(self._calls.told(memory_id, f"history/{commit}"))

    def diff(self, memory_id: str, start: str | int | None = None, end: str | int | None = None) -> str:
        """A unified diff of two versions; by default of the last two."""
        return self._send(self._calls.diff(memory_id, start, end))["diff"]

    def blame(self, memory_id: str) -> list[dict[str, Any]]:
        """Who wrote which line of a memory, and when."""
        return self._send(self._calls.told(memory_id, "blame"))["lines"]

    def revert(self, memory_id: str, to: str | int, *, etag: str, wait: float = 5.0) -> Written:
        """Make a memory that has this etag say again what it said in a version; all versions stay."""
        return self._send(self._calls.revert(memory_id, to, etag, wait))

    def append_episode(self, session_id: str, content: str, *, tags: Sequence[str] = ()) -> dict[str, Any]:
        """Append to a session. Not retried: an episode has no key."""
        return self._send(self._calls.append(session_id, content, tags))

    def commit_session(self, session_id: str, **options: Any) -> Committed:
        """Commit a session; repeating it is safe."""
        return self._send(self._calls.commit(session_id, options))

    def profile(self, user_id: str) -> dict[str, Any]:
        """What is stable about a user."""
        return self._send(self._calls.profile(user_id))

    def namespaces(self) -> list[dict[str, str]]:
        """The namespaces that can be read."""
        return self._send(self._calls.namespaces())

    def judge(self, memory_id: str, judgement: Judgement, comment: str = "") -> dict[str, str]:
        """Say of a memory that it is incorrect, duplicate, outdated or useful."""
        return self._send(self._calls.judge(memory_id, judgement, comment))

    def _send(self, call: _Call) -> Any:
        for attempt in range(_TRIES):
            answer: httpx.Response | None = None
            try:
                answer = self._http.request(
                    call.method, call.path, json=call.body, params=call.query, headers=call.headers
                )
            except httpx.TransportError:
                if not _may_retry(call) or attempt == _TRIES - 1:
                    raise
            if answer is not None and _is_final(call, answer, attempt):
                return _result(answer)
            time.sleep(_pause(attempt, answer))
        raise AssertionError("unreachable")


class AsyncMemoryGateway:
    """The same as `MemoryGateway`, for programs with an event loop."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._calls = _Calls(user_id, agent_id, workspace_id)
        self._http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout)

    async def __aenter__(self) -> AsyncMemoryGateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def search(self, query: str, *, limit: int = 5, **options: Any) -> SearchAnswer:
        """See `MemoryGateway.search`."""
        return await self._send(self._calls.search(query, limit, options))

    async def remember(self, content: str, *, wait: float = 5.0, **fields: Any) -> Written:
        """See `MemoryGateway.remember`."""
        return await self._send(self._calls.remember(content, wait, fields))

    async def get(self, memory_id: str) -> Memory:
        """See `MemoryGateway.get`."""
        return await self._send(self._calls.get(memory_id))

    async def change(self, memory_id: str, *, etag: str, wait: float = 5.0, **fields: Any) -> Written:
        """See `MemoryGateway.change`."""
        return await self._send(self._calls.change(memory_id, etag, wait, fields))

    async def forget(self, memory_id: str, *, etag: str) -> dict[str, Any]:
        """See `MemoryGateway.forget`."""
        return await self._send(self._calls.forget(memory_id, etag))

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """See `MemoryGateway.history`."""
        return (await self._send(self._calls.told(memory_id, "history")))["versions"]

    async def text_at(self, memory_id: str, commit: str | int) -> dict[str, Any]:
        """See `MemoryGateway.text_at`."""
        return await self._send(self._calls.told(memory_id, f"history/{commit}"))

    async def diff(self, memory_id: str, start: str | int | None = None, end: str | int | None = None) -> str:
        """See `MemoryGateway.diff`."""
        return (await self._send(self._calls.diff(memory_id, start, end)))["diff"]

    async def blame(self, memory_id: str) -> list[dict[str, Any]]:
        """See `MemoryGateway.blame`."""
        return (await self._send(self._calls.told(memory_id, "blame")))["lines"]

    async def revert(self, memory_id: str, to: str | int, *, etag: str, wait: float = 5.0) -> Written:
        """See `MemoryGateway.revert`."""
        return await self._send(self._calls.revert(memory_id, to, etag, wait))

    async def append_episode(self, session_id: str, content: str, *, tags: Sequence[str] = ()) -> dict[str, Any]:
        """See `MemoryGateway.append_episode`."""
        return await self._send(self._calls.append(session_id, content, tags))

    async def commit_session(self, session_id: str, **options: Any) -> Committed:
        """See `MemoryGateway.commit_session`."""
        return await self._send(self._calls.commit(session_id, options))

    async def profile(self, user_id: str) -> dict[str, Any]:
        """See `MemoryGateway.profile`."""
        return await self._send(self._calls.profile(user_id))

    async def namespaces(self) -> list[dict[str, str]]:
        """See `MemoryGateway.namespaces`."""
        return await self._send(self._calls.namespaces())

    async def judge(self, memory_id: str, judgement: Judgement, comment: str = "") -> dict[str, str]:
        """See `MemoryGateway.judge`."""
        return await self._send(self._calls.judge(memory_id, judgement, comment))

    async def _send(self, call: _Call) -> Any:
        for attempt in range(_TRIES):
            answer: httpx.Response | None = None
            try:
                answer = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query, headers=call.headers
                )
            except httpx.TransportError:
                if not _may_retry(call) or attempt == _TRIES - 1:
                    raise
            if answer is not None and _is_final(call, answer, attempt):
                return _result(answer)
            await asyncio.sleep(_pause(attempt, answer))
        raise AssertionError("unreachable")

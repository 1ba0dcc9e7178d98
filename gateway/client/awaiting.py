"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import httpx

from .answers import (
    Committed,
    Context,
    Decision,
    ForgetAnswer,
    Happened,
    Judgement,
    Memory,
    ReviewDetail,
    ReviewPage,
    SearchAnswer,
    WriteAnswer,
)
from .calls import TRIES, Call, Calls, is_final, may_retry, pause, result, worth_retrying
from .listening import Listening

Events: TypeAlias = AsyncGenerator[Happened, None]


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
        self._calls = Calls(user_id, agent_id, workspace_id)
        self._timeout = timeout
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

    async def context(self, query: str, *, token_budget: int = 2_000, **options: Any) -> Context:
        """See `MemoryGateway.context`."""
        return await self._send(self._calls.context(query, token_budget, options))

    async def direct(self, content: str, *, kind: str = "rule") -> dict[str, Any]:
        """See `MemoryGateway.direct`."""
        return await self._send(self._calls.direct(content, kind))

    async def directives(self) -> list[dict[str, Any]]:
        """See `MemoryGateway.directives`."""
        return (await self._send(self._calls.directives()))["directives"]

    async def remember(self, content: str, *, wait: float = 5.0, **fields: Any) -> WriteAnswer:
        """See `MemoryGateway.remember`."""
        return await self._send(self._calls.remember(content, wait, fields))

    async def get(self, memory_id: str) -> Memory:
        """See `MemoryGateway.get`."""
        return await self._send(self._calls.get(memory_id))

    async def change(self, memory_id: str, *, etag: str, wait: float = 5.0, **fields: Any) -> WriteAnswer:
        """See `MemoryGateway.change`."""
        return await self._send(self._calls.change(memory_id, etag, wait, fields))

    async def forget(self, memory_id: str, *, etag: str) -> ForgetAnswer:
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

    async def revert(self, memory_id: str, to: str | int, *, etag: str, wait: float = 5.0) -> WriteAnswer:
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

    async def reviews(
        self, *, status: str = "pending", limit: int = 50, cursor: str | None = None, **options: Any
    ) -> ReviewPage:
        """See `MemoryGateway.reviews`."""
        return await self._send(self._calls.reviews({"status": status, "limit": limit, "cursor": cursor, **options}))

    async def review(self, review_id: str) -> ReviewDetail:
        """See `MemoryGateway.review`."""
        return await self._send(self._calls.review(review_id))

    async def accept(
        self, review_id: str, text: str | None = None, reason: str | None = None, etag: str | None = None
    ) -> Decision:
        """See `MemoryGateway.accept`."""
        return await self._send(self._calls.decide(review_id, "accept", etag, text=text, reason=reason))

    async def reject(self, review_id: str, reason: str | None = None, etag: str | None = None) -> Decision:
        """See `MemoryGateway.reject`."""
        return await self._send(self._calls.decide(review_id, "reject", etag, reason=reason))

    async def events(self, *, kinds: Sequence[str] = (), last_event_id: int | None = None) -> Events:
        """See `MemoryGateway.events`."""
        listening = Listening(kinds, last_event_id)
        while True:
            answer: httpx.Response | None = None
            try:
                async with self._http.stream("GET", "/v1/events", **listening.request(self._timeout)) as answer:
                    if answer.status_code != 200:
                        await answer.aread()
                        if not worth_retrying(answer):
                            result(answer)
                    else:
                        async for line in answer.aiter_lines():
                            happened = listening.heard(line)
                            if happened is not None:
                                yield happened
            except httpx.TransportError:
                if not listening.failed():
                    raise
            else:
                if not listening.failed():
                    result(answer)
            await asyncio.sleep(pause(listening.failures - 1, answer))

    async def _send(self, call: Call) -> Any:
        for attempt in range(TRIES):
            answer: httpx.Response | None = None
            try:
                answer = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query, headers=call.headers
                )
            except httpx.TransportError:
                if not may_retry(call) or attempt == TRIES - 1:
                    raise
            if answer is not None and is_final(call, answer, attempt):
                return result(answer)
            await asyncio.sleep(pause(attempt, answer))
        raise AssertionError("unreachable")

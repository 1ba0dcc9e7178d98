"""The client for programs that may block."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
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

Events: TypeAlias = Iterator[Happened]


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
        self._calls = Calls(user_id, agent_id, workspace_id)
        self._timeout = timeout
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

    def context(self, query: str, *, token_budget: int = 2_000, **options: Any) -> Context:
        """What to put before a turn. `options` are further fields of `POST /v1/context`, such as `turn_id`."""
        return self._send(self._calls.context(query, token_budget, options))

    def direct(self, content: str, *, kind: str = "rule") -> dict[str, Any]:
        """Make a standing instruction; by an agent it is a draft, and the answer is `{"review": …}`."""
        return self._send(self._calls.direct(content, kind))

    def directives(self) -> list[dict[str, Any]]:
        """The user's standing instructions: active ones, then drafts."""
        return self._send(self._calls.directives())["directives"]

    def remember(self, content: str, *, wait: float = 5.0, **fields: Any) -> WriteAnswer:
        """Write a memory and wait up to `wait` seconds until it is found.

        Where a person must accept it first, the answer is `{"review": …}` instead: nothing is remembered yet.
        """
        return self._send(self._calls.remember(content, wait, fields))

    def get(self, memory_id: str) -> Memory:
        """One memory."""
        return self._send(self._calls.get(memory_id))

    def change(self, memory_id: str, *, etag: str, wait: float = 5.0, **fields: Any) -> WriteAnswer:
        """Change a memory that has this etag; another by now raises `GatewayProblem` 409 with the difference."""
        return self._send(self._calls.change(memory_id, etag, wait, fields))

    def forget(self, memory_id: str, *, etag: str) -> ForgetAnswer:
        """Forget a memory that has this etag; where a person must agree first, the answer is `{"review": …}`."""
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

    def revert(self, memory_id: str, to: str | int, *, etag: str, wait: float = 5.0) -> WriteAnswer:
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

    def reviews(
        self, *, status: str = "pending", limit: int = 50, cursor: str | None = None, **options: Any
    ) -> ReviewPage:
        """A page of drafts that the key may see, oldest first. `options` go to `GET /v1/reviews`."""
        return self._send(self._calls.reviews({"status": status, "limit": limit, "cursor": cursor, **options}))

    def review(self, review_id: str) -> ReviewDetail:
        """A draft: its text, and what accepting it would change."""
        return self._send(self._calls.review(review_id))

    def accept(
        self, review_id: str, text: str | None = None, reason: str | None = None, etag: str | None = None
    ) -> Decision:
        """Accept a draft, if wanted with another text; with an etag only if it still is that draft. Not for agents."""
        return self._send(self._calls.decide(review_id, "accept", etag, text=text, reason=reason))

    def reject(self, review_id: str, reason: str | None = None, etag: str | None = None) -> Decision:
        """Reject a draft: the same is not proposed again. Not for agents."""
        return self._send(self._calls.decide(review_id, "reject", etag, reason=reason))

    def events(self, *, kinds: Sequence[str] = (), last_event_id: int | None = None) -> Events:
        """What happens from now on, or after the event of this number; blocks in between and goes on by itself.

        Raises:
            GatewayProblem: the key is not accepted (any longer), or may open no further stream.
            httpx.TransportError: the gateway could not be reached for most of a minute.
        """
        listening = Listening(kinds, last_event_id)
        while True:
            answer: httpx.Response | None = None
            try:
                with self._http.stream("GET", "/v1/events", **listening.request(self._timeout)) as answer:
                    if answer.status_code != 200:
                        answer.read()
                        if not worth_retrying(answer):
                            result(answer)
                    else:
                        for line in answer.iter_lines():
                            happened = listening.heard(line)
                            if happened is not None:
                                yield happened
            except httpx.TransportError:
                if not listening.failed():
                    raise
            else:
                if not listening.failed():
                    result(answer)
            time.sleep(pause(listening.failures - 1, answer))

    def _send(self, call: Call) -> Any:
        for attempt in range(TRIES):
            answer: httpx.Response | None = None
            try:
                answer = self._http.request(
                    call.method, call.path, json=call.body, params=call.query, headers=call.headers
                )
            except httpx.TransportError:
                if not may_retry(call) or attempt == TRIES - 1:
                    raise
            if answer is not None and is_final(call, answer, attempt):
                return result(answer)
            time.sleep(pause(attempt, answer))
        raise AssertionError("unreachable")

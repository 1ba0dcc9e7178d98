"""Vectors from any server that speaks OpenAI's `POST /embeddings`. The key never appears in an error."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import httpx
import numpy as np

from gateway.errors import BadSettings, EmbeddingFailed
from gateway.index.chunks import clean
from gateway.index.embed import EmbeddingConfig, EmbeddingIdentity, Vector, unit

MAX_ATTEMPTS = 4
MAX_CHARACTERS = 8_000
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 20.0
_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TEXT_IS_TO_BLAME = frozenset({400, 413, 422})


class _Refused(EmbeddingFailed):
    """The server refused this input; another input may be fine."""


class OpenAIEmbedder:
    """Embeds through an OpenAI-compatible API. `transport` and `pause` are for tests."""

    def __init__(
        self,
        config: EmbeddingConfig,
        *,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if not config.base_url or not config.model:
            missing = "base_url" if not config.base_url else "model"
            raise BadSettings(
                f"The provider openai needs a {missing}.", field=f"embedding.{missing}", advice="Set it or use local."
            )
        self._config = config
        self._model = config.model
        self._pause = pause
        headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        self._client = httpx.Client(headers=headers, timeout=config.timeout_seconds, transport=transport)
        self._url = config.base_url.rstrip("/") + "/embeddings"
        self._dimension = config.dimension or self._ask_dimension()
        address = f"{config.base_url.rstrip('/')}|{config.model}"
        fingerprint = hashlib.sha256(address.encode()).hexdigest()[:16]
        self._identity = EmbeddingIdentity("openai", config.model, self._dimension, fingerprint)

    @property
    def identity(self) -> EmbeddingIdentity:
        """Which model this is."""
        return self._identity

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector a text, in order; None for a text the server refuses.

        Raises:
            EmbeddingFailed: the server does not work, after `MAX_ATTEMPTS` tries.
        """
        vectors: list[Vector | None] = []
        for start in range(0, len(texts), self._config.batch_size):
            vectors += self._without_refused(
                [_prepared(text) for text in texts[start : start + self._config.batch_size]]
            )
        return vectors

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        """The vector of a question; one try, since somebody waits.

        Raises:
            EmbeddingFailed: no vector in time.
        """
        seconds = self._config.timeout_seconds if timeout is None else timeout
        vector = self._fit(self._request([_prepared(text)], attempts=1, timeout=seconds)[0])
        if vector is None:
            raise EmbeddingFailed("The embedding provider gave the question no direction.")
        return vector

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask_dimension(self) -> int:
        try:
            return len(self._request(["dimension"], attempts=2, timeout=self._config.timeout_seconds)[0])
        except EmbeddingFailed as error:
            self._client.close()
            raise EmbeddingFailed(
                f"The embedding provider could not be asked for its dimension: {error.detail}",
                advice="Set embedding.dimension to start without asking.",
            ) from error

    def _without_refused(self, batch: list[str]) -> list[Vector | None]:
        try:
            rows = self._request(batch, attempts=MAX_ATTEMPTS, timeout=self._config.timeout_seconds)
        except _Refused:
            if len(batch) == 1:
                self._request(["."], attempts=1, timeout=self._config.timeout_seconds)
                return [None]
            middle = len(batch) // 2
            return self._without_refused(batch[:middle]) + self._without_refused(batch[middle:])
        return [self._fit(row) for row in rows]

    def _request(self, batch: list[str], *, attempts: int, timeout: float) -> list[list[float]]:
        wait = _FIRST_WAIT_SECONDS
        trouble = "not asked"
        for attempt in range(1, attempts + 1):
            try:
                response = self._client.post(
                    self._url, json={"model": self._model, "input": batch, "encoding_format": "float"}, timeout=timeout
                )
            except httpx.HTTPError as error:
                trouble, asked_wait = type(error).__name__, None
            else:
                if response.is_success:
                    return _rows(response, len(batch))
                trouble, asked_wait = f"status {response.status_code}", _retry_after(response)
                self._raise_unless_temporary(response.status_code)
            if attempt < attempts:
                self._pause(min(_LONGEST_WAIT_SECONDS, wait if asked_wait is None else asked_wait))
                wait *= 2
        raise EmbeddingFailed(f"The embedding provider failed: {trouble}.")

    def _raise_unless_temporary(self, status: int) -> None:
        if status in _TEXT_IS_TO_BLAME:
            raise _Refused(f"The embedding provider refused the input: status {status}.")
        if status not in _TRY_AGAIN:
            advice = "Check embedding.api_key." if status in {401, 403} else "Check embedding.base_url and model."
            raise EmbeddingFailed(f"The embedding provider failed: status {status}.", advice=advice)

    def _fit(self, row: list[float]) -> Vector | None:
        """The row as a unit vector of the table's dimension, zeros added on the right where it is shorter."""
        if len(row) > self._dimension:
            raise EmbeddingFailed(
                f"The embedding provider answers with {len(row)} dimensions, {self._dimension} are configured.",
                advice="Set embedding.dimension to the model's own.",
            )
        vector = np.zeros(self._dimension, dtype=np.float32)
        vector[: len(row)] = row
        return unit(vector)


def _rows(response: httpx.Response, expected: int) -> list[list[float]]:
    """The vectors in the order of the inputs, checked for number, order and finite values."""
    try:
        data = cast("list[dict[str, Any]]", response.json()["data"])
        by_index = {int(item.get("index", place)): item["embedding"] for place, item in enumerate(data)}
        rows = [[float(value) for value in by_index[index]] for index in range(expected)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EmbeddingFailed("The embedding provider did not answer with one vector a text.") from error
    if len(data) != expected or not all(row and np.isfinite(row).all() for row in rows):
        raise EmbeddingFailed("The embedding provider answered with vectors that are not usable.")
    return rows


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _prepared(text: str) -> str:
    cleaned = clean(text[:MAX_CHARACTERS])
    return cleaned if cleaned.strip() else "."

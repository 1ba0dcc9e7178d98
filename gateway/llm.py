"""LanguageModel: a prompt in, a checked answer out. Any OpenAI-compatible chat service, over httpx, with a deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import httpx
import jsonschema

from gateway.config import LanguageModelSettings
from gateway.errors import BadSettings, Unavailable

_TRIES = 3
# The longest text that a model is asked about at once. Whoever has more asks about it in portions.
MAX_CHARS: Final = 60_000


class ModelFailed(Unavailable):
    """The language model did not answer in time, or not with what was asked for."""

    code = "model-failed"
    title = "Language model failed"


class LanguageModel(Protocol):
    """Answers an order about a text with JSON that fits a schema."""

    def ask(self, order: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The answer.

        Raises:
            ModelFailed: no answer within the deadline, one that does not fit (prose, broken JSON, another shape), or a
                text of more than `MAX_CHARS`, of which a part only would have been read.
        """
        ...


class ChatModel:
    """A language model behind an OpenAI-compatible `/chat/completions`."""

    def __init__(self, settings: LanguageModelSettings) -> None:
        if not settings.base_url or not settings.model:
            raise BadSettings("A language model needs `llm.base_url` and `llm.model`.", field="llm.base_url")
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(base_url=settings.base_url.rstrip("/"), headers=headers, trust_env=False)
        self._model = settings.model
        self._deadline = settings.timeout_seconds

    def ask(self, order: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """See `LanguageModel.ask`. The text is framed as data, so that nothing in it reads as an order."""
        if len(text) > MAX_CHARS:
            raise ModelFailed(f"The text is longer than {MAX_CHARS:,} characters.")
        framed = text.replace("<transcript", "‹transcript").replace("</transcript", "‹/transcript")
        body = {
            "model": self._model,
            "temperature": 0,
            "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": order},
                {"role": "user", "content": f"<transcript>\n{framed}\n</transcript>"},
            ],
        }
        until = time.monotonic() + self._deadline
        return checked(self._answer(body, until), schema)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, body: dict[str, Any], until: float) -> str:
        reason = "no answer in time"
        for attempt in range(_TRIES):
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                answer = self._client.post("/chat/completions", json=body, timeout=left)
            except httpx.HTTPError as error:
                reason = type(error).__name__
            else:
                if answer.status_code == 200:
                    return _content(answer)
                reason = f"HTTP {answer.status_code}"
                if answer.status_code not in (408, 429, 500, 502, 503, 504):
                    break
            time.sleep(max(0.0, min(0.2 * 2**attempt, until - time.monotonic())))
        raise ModelFailed(f"The language model failed: {reason}.")


def checked(content: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of an answer, if it fits the schema and nothing is around it.

    Raises:
        ModelFailed: prose, broken JSON, or another shape.
    """
    try:
        value: Any = json.loads(content)
        jsonschema.validate(value, schema)
    except (ValueError, jsonschema.ValidationError, RecursionError) as error:
        raise ModelFailed(f"The language model answered with something else ({type(error).__name__}).") from None
    return value


def _content(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["choices"][0]["message"]["content"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise ModelFailed("The language model's answer has another shape than a chat completion.") from None

"""What one pass may cost, and a language model that keeps to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from gateway.config import ConsolidationSettings
from gateway.llm import LanguageModel, ModelFailed

_LOOK_SECONDS = 0.05
_FAILURES = 3


class Budget:
    """The items, seconds, model calls and drafts of one pass. `keep_going` says no when the gateway stops."""

    def __init__(self, settings: ConsolidationSettings, keep_going: Callable[[], bool]) -> None:
        self._keep_going = keep_going
        self._began = time.monotonic()
        self._until = self._began + settings.seconds_per_pass
        self.items = settings.items_per_pass
        self.calls = settings.model_calls_per_pass
        self.drafts = settings.drafts_per_pass
        self.calls_made = 0

    @property
    def seconds(self) -> float:
        """How long the pass has taken so far."""
        return time.monotonic() - self._began

    def more(self, *, first: bool = False) -> bool:
        """Whether the pass goes on: there is time, and nobody wants it to stop.

        Args:
            first: it is the first of its kind in this pass, which is done without time too: else what comes late in
                a pass would never be done where every pass runs out of time.
        """
        return (first or time.monotonic() < self._until) and self._keep_going()


class MeteredModel:
    """A language model within a budget. A call that takes too long for the pass, or is still out when the gateway
    stops, is not waited for; after three failures in a row it is not asked again in this pass."""

    def __init__(self, model: LanguageModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget
        self._failures = 0

    @property
    def spent(self) -> bool:
        """Whether all calls of the pass were made, though the model works."""
        return self._budget.calls_made >= self._budget.calls and self._failures == 0

    def ask(self, order: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """See `LanguageModel.ask`.

        Raises:
            ModelFailed: the model failed, or may not be asked any more.
        """
        if self._budget.calls_made >= self._budget.calls or self._failures >= _FAILURES:
            raise ModelFailed("The language model is not asked any more in this pass.")
        self._budget.calls_made += 1
        try:
            answer = self._awaited(order, text, schema)
        except ModelFailed:
            self._failures += 1
            raise
        self._failures = 0
        return answer

    def _awaited(self, order: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        answers: list[dict[str, Any]] = []
        errors: list[ModelFailed] = []

        def call() -> None:
            try:
                answers.append(self._model.ask(order, text, schema))
            except ModelFailed as error:
                errors.append(error)
            except Exception as error:  # its connections were closed under it
                errors.append(ModelFailed(f"The language model failed: {type(error).__name__}."))

        thread = threading.Thread(target=call, name="consolidation-model", daemon=True)
        thread.start()
        while thread.is_alive() and self._budget.more():
            thread.join(_LOOK_SECONDS)
        if answers:
            return answers[0]
        raise errors[0] if errors else ModelFailed("The pass ended before the language model answered.")

"""Logging through structlog: one line an event, no note text, no keys."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, cast

import structlog

_KEY = re.compile(r"mgk_[A-Za-z0-9_-]{8,}")


def configure(*, level: str = "info", shape: str = "console", mask: Callable[[str], str] | None = None) -> None:
    """Set up logging to standard error.

    Args:
        level: `debug | info | warning | error`.
        shape: `console` for people, `json` for machines.
        mask: takes secrets out of a text; it is applied to every value of every line.
    """
    number = getattr(logging, level.upper())
    logging.basicConfig(stream=sys.stderr, level=number, format="%(message)s", force=True)
    hide = _Masking(mask)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(hide)
    for noisy in ("httpx", "httpcore", "git", "watchfiles", "alembic", "uvicorn.access", "mcp"):
        logging.getLogger(noisy).setLevel(max(number, logging.WARNING))
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if shape == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            mask_keys,
            hide.process,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


class _Masking(logging.Formatter):
    """Takes secrets out of the lines of libraries, as a formatter, and out of our own, as a processor."""

    def __init__(self, mask: Callable[[str], str] | None) -> None:
        super().__init__("%(message)s")
        self._mask: Callable[[str], str] = mask or (lambda text: text)

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(super().format(record))

    def process(self, _logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        for field, value in event.items():
            event[field] = self._masked(value)
        return event

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value).items()
            return {key: self._masked(item) for key, item in pairs}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._masked(item) for item in cast("list[Any]", value)]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self._mask(str(value))


def mask_keys(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide anything that looks like an API key, whatever field it slipped into."""
    for field, value in event.items():
        if isinstance(value, str) and "mgk_" in value:
            event[field] = _KEY.sub("mgk_…", value)
    return event


def get(name: str) -> Any:
    """A logger bound to the part of the gateway that speaks."""
    return structlog.get_logger().bind(part=name)

"""Logging through structlog: one line an event, no note text, no keys."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_KEY = re.compile(r"mgk_[A-Za-z0-9_-]{8,}")


def configure(*, level: str = "info", shape: str = "console") -> None:
    """Set up logging to standard error.

    Args:
        level: `debug | info | warning | error`.
        shape: `console` for people, `json` for machines.
    """
    number = getattr(logging, level.upper())
    logging.basicConfig(stream=sys.stderr, level=number, format="%(message)s", force=True)
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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def mask_keys(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide anything that looks like an API key, whatever field it slipped into."""
    for field, value in event.items():
        if isinstance(value, str) and "mgk_" in value:
            event[field] = _KEY.sub("mgk_…", value)
    return event


def get(name: str) -> Any:
    """A logger bound to the part of the gateway that speaks."""
    return structlog.get_logger().bind(part=name)

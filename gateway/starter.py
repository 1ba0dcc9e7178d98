"""Where the starter vault and the templates are found: in a wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

from gateway.errors import Unavailable

_PACKAGE = Path(__file__).resolve().parent


def _find(name: str) -> Path:
    for candidate in (_PACKAGE / "_starter" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise Unavailable(f"The installation lacks its `{name}` folder.", advice="Reinstall memory-gateway.")


def starter_vault() -> Path:
    """The folder whose files a new vault begins with."""
    return _find("vault")


def templates() -> Path:
    """The folder of note and prompt templates."""
    return _find("templates")

"""Worlds for tests of consolidation."""

from __future__ import annotations

import pytest

from tests.api.conftest import template
from tests.consolidation.world import World

__all__ = ["template", "world"]


@pytest.fixture
def world(opened) -> World:
    """Tom, Ann and hermes; keywords only, no model."""
    return World(opened()).people()

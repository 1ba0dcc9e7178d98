"""Shared by all tests: a gateway on a real vault with real git, SQLite and LanceDB; keywords only."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from tests.nightly import NIGHTLY

__all__ = ["IMPATIENT", "NIGHTLY"]
# Nothing waits for quiet or for a second look, so that tests need not either.
IMPATIENT = {
    "embedding": {"provider": "none"},
    "git": {"quiet_seconds": 0},
    "watch": {"settle_seconds": 0, "absence_seconds": 0},
}

# Begun first, so that no process is left with one of them when the others have nothing to do.
SLOW_FILES = (
    "faults/test_kill.py",
    "forgetting/test_killed_clear.py",
    "forgetting/test_life.py",
    "reviews/test_four_ways.py",
    "reviews/test_two_clones.py",
    "cli/test_reviewing.py",
    "cli/test_forgetting.py",
    "isolation/test_routes.py",
    "isolation/test_twins.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first; the order within a file stays."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(SLOW_FILES))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Opens gateways by the name of their data directory; all are closed at the end."""
    gateways: list[Gateway] = []

    def open_one(name: str = "data", **settings) -> Gateway:
        gateway = open_gateway(load_settings(data_dir=tmp_path / name, **(IMPATIENT | settings)))
        gateways.append(gateway)
        return gateway

    yield open_one
    for gateway in gateways:
        gateway.close()

"""Commands are tried beside a running server and on the data directory alone; each module brings its `template`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.running import serving


@pytest.fixture(params=["server", "directory"])
def data(request, tmp_path, template) -> Iterator[Path]:
    shutil.copytree(template, tmp_path / "data", symlinks=True)
    if request.param == "server":
        with serving(tmp_path / "data"):
            yield tmp_path / "data"
    else:
        yield tmp_path / "data"

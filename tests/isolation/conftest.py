"""One world for the whole kit: nothing in it may change."""

import shutil

import pytest

from tests.api.conftest import start, template  # noqa: F401 - a fixture
from tests.isolation import world as worlds


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):  # noqa: F811 - the fixture
    data = tmp_path_factory.mktemp("isolation") / "data"
    shutil.copytree(template, data, symlinks=True)
    running, server, thread, listener = start(data)
    built = worlds.build(running.url, running.key, running.vault)
    yield built
    built.http.close()
    running.http.close()
    server.should_exit = True
    thread.join(timeout=20)
    listener.close()

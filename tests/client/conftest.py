"""One server for all tests of the client, with Tom's agent Hermes and its key."""

import pytest

from tests.api.conftest import template  # noqa: F401 - a fixture
from tests.servers import key_for, people, served


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, template):  # noqa: F811 - the fixture
    with served(tmp_path_factory.mktemp("client") / "data", template) as server:
        people(server)
        yield server


@pytest.fixture(scope="module")
def hermes(gateway) -> str:
    return key_for(gateway, "agent", "tom", "hermes")

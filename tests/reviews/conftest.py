"""One server with Tom, Ann and their agents for the tests of reviews over REST."""

import pytest

from tests.api.conftest import template  # noqa: F401 - a fixture
from tests.servers import key_for, must, people, served


@pytest.fixture(scope="module")
def server(tmp_path_factory, template):  # noqa: F811 - the fixture
    with served(tmp_path_factory.mktemp("reviews") / "data", template) as running:
        people(running)
        shared = {"workspace_id": "garden", "member_user_ids": ["tom", "ann"], "allowed_agent_ids": ["hermes"]}
        must(running, "POST", "/v1/workspaces", json=shared)
        yield running


@pytest.fixture(scope="module")
def keys(server) -> dict[str, str]:
    made = {
        "hermes": ("agent", "tom", "hermes"),
        "nanobot": ("agent", "tom", "nanobot"),
        "claude": ("agent", "ann", "claude"),
    }
    found = {name: key_for(server, *how) for name, how in made.items()}
    return found | {
        "tom": key_for(server, "user", "tom"),
        "ann": key_for(server, "user", "ann"),
        "reader": key_for(server, "reader", "tom"),
    }

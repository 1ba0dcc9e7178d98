"""A server with Tom's and Ann's drafts, and people who visit its pages."""

from __future__ import annotations

import html
import itertools
import re

import httpx
import pytest

from tests.api.conftest import Server, template  # noqa: F401 - a fixture
from tests.servers import key_for, must, people, served

_NUMBERS = itertools.count(101)
AGENTS = {"hermes": "tom", "nanobot": "tom", "claude": "ann"}


class World:
    """The server, its keys, and drafts by whoever asks for them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = server.url
        self.keys = {"admin": server.key}
        for name in ("tom", "ann"):
            self.keys[name] = key_for(server, "user", name)
        for agent, owner in AGENTS.items():
            self.keys[agent] = key_for(server, "agent", owner, agent)
        self.keys["reader"] = key_for(server, "reader", "tom")

    def draft(self, content: str = "Tom seems to like oolong tea", agent: str = "hermes", **fields) -> str:
        """A draft's id. Each text is another, so that nothing counts as proposed before."""
        text = f"{content} ({next(_NUMBERS)})"
        body = {"content": text, "source": "conversation", "confidence": 0.7, **fields}
        return must(self.server, "POST", "/v1/memory", self.keys[agent], json=body)["review"]["id"]

    def change(self, memory_id: str, content: str, agent: str = "hermes") -> str:
        """The id of a draft that changes a memory."""
        etag = must(self.server, "GET", f"/v1/memory/{memory_id}")["etag"]
        options = {"json": {"content": content}, "headers": {"If-Match": f'"{etag}"'}}
        return must(self.server, "PATCH", f"/v1/memory/{memory_id}", self.keys[agent], **options)["review"]["id"]

    def memory(self, content: str, who: str = "tom") -> str:
        """The id of a memory that a person wrote."""
        body = {"content": content}
        wait = {"Prefer": "wait=5"}
        return must(self.server, "POST", "/v1/memory", self.keys[who], json=body, headers=wait)["id"]

    def review(self, review_id: str) -> dict:
        """A draft as the API shows it."""
        return must(self.server, "GET", f"/v1/reviews/{review_id}")

    def text_of(self, review_id: str) -> str:
        """The text of the note that an accepted draft became, as it is in the vault."""
        memory_id = self.review(review_id)["review"]["memory_id"]
        path = must(self.server, "GET", f"/v1/memory/{memory_id}")["path"]
        return (self.server.vault / path).read_text("utf-8")


class Visitor:
    """A browser without scripts: it keeps cookies and fills in forms."""

    def __init__(self, world: World, **headers: str) -> None:
        self.world = world
        # Each has an address of its own, as behind a proxy, since attempts to log in are counted by address.
        own = {"Accept-Language": "en", "X-Forwarded-For": f"192.0.2.{next(_NUMBERS) % 250}"}
        self.http = httpx.Client(base_url=world.url, timeout=30, trust_env=False, headers=own | headers)

    def get(self, path: str = "", **options) -> httpx.Response:
        return self.http.get(f"/review{path}", **options)

    def login(self, name: str) -> httpx.Response:
        return self.try_key(self.world.keys[name])

    def try_key(self, key: str, **fields: str) -> httpx.Response:
        return self.http.post("/review/login", data={"key": key, **fields})

    def form(self, path: str) -> dict[str, str]:
        """The hidden fields of a page's decision form, and its text."""
        return fields(self.get(path).text)

    def decide(self, review_id: str, decision: str, **changed: str) -> httpx.Response:
        path = f"/drafts/{review_id}"
        return self.http.post(f"/review{path}", data=self.form(path) | {"decision": decision} | changed)


def fields(page: str) -> dict[str, str]:
    """What a form holds that decides a draft."""
    form = page.split('class="decide"', 1)[1].split("</form>", 1)[0]
    found = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
    text = re.search(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
    return found | ({"text": html.unescape(text.group(1))} if text else {})


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):  # noqa: F811 - the fixture
    with served(tmp_path_factory.mktemp("pages") / "data", template) as server:
        people(server)
        yield World(server)


@pytest.fixture
def visitor(world):
    """Makes visitors, logged in or not; all are gone at the end."""
    made = []

    def visit(name: str | None = None, **headers: str) -> Visitor:
        one = Visitor(world, **headers)
        made.append(one)
        if name is not None:
            assert one.login(name).status_code == 303
        return one

    yield visit
    for one in made:
        one.http.close()

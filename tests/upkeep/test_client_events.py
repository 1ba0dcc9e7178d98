"""The clients' `events()`: they go on by themselves, and end where the key does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.client import AsyncMemoryGateway, GatewayProblem, MemoryGateway
from tests.api.conftest import eventually
from tests.servers import key_for, must, people, served


def test_the_blocking_client_hears_until_its_key_is_revoked(tmp_path, template):
    heard: list[dict] = []
    ends: list[Exception] = []
    with served(tmp_path / "data", template) as server:
        people(server)
        made = must(server, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
        first = server.write("Tea at four.", user_id="tom")["id"]
        with MemoryGateway(server.url, made["key"]) as client:

            def hear() -> None:
                try:
                    heard.extend(client.events(kinds=["memory"]))
                except GatewayProblem as error:
                    ends.append(error)

            thread = threading.Thread(target=hear, daemon=True)
            thread.start()
            eventually(lambda: server.gateway.streams._open)
            second = server.write("Coffee at five.", user_id="tom")["id"]
            eventually(lambda: [one["id"] for one in heard] == [second])
            must(server, "DELETE", f"/v1/keys/{made['id']}")
            thread.join(timeout=10)
            assert not thread.is_alive()
            assert ends[0].status == 401
    assert first not in [one["id"] for one in heard]


def test_the_blocking_client_resumes_and_names_what_it_missed(server):
    key = key_for(server, "user", "tom")
    with MemoryGateway(server.url, key) as client:
        stream = client.events(last_event_id=0, kinds=["memory", "draft"])
        made = server.write("Bread at six.", user_id="tom")
        first = next(one for one in stream if one["id"] == made["id"])
        assert (first["event"], first["change"], first["version"]) == ("memory", "create", 1)
        stream.close()
        again = client.events(last_event_id=first["seq"] - 1)
        assert next(again)["id"] == made["id"]
        again.close()


def test_the_awaiting_client_hears_too(server):
    key = key_for(server, "user", "tom")

    async def run() -> dict:
        async with AsyncMemoryGateway(server.url, key) as client:
            stream = client.events(kinds=["memory"])
            following = asyncio.ensure_future(anext(stream))
            await asyncio.to_thread(eventually, lambda: server.gateway.streams._open)
            made = await asyncio.to_thread(server.write, "Soup at seven.", user_id="tom")
            heard = await asyncio.wait_for(following, 10)
            await stream.aclose()
            assert heard["id"] == made["id"]
            return heard

    assert asyncio.run(run())["namespace"] == "user/tom/long_term"


def test_a_key_that_is_none_is_refused(server):
    with MemoryGateway(server.url, "mgk_forged") as client, pytest.raises(GatewayProblem) as refused:
        next(client.events())
    assert refused.value.status == 401

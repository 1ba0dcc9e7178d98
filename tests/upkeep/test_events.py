"""Events over a real connection: whose, in order, resumed, and ended when they should be."""

from __future__ import annotations

import shutil
import socket
import time

import pytest

from gateway.api import events as api_events
from gateway.ledger import events as ledger_events
from gateway.ledger import jobs
from gateway.ledger.events import Event
from tests.api.conftest import eventually, start
from tests.servers import call, key_for, must, people, served
from tests.upkeep.conftest import Listener


@pytest.fixture(scope="module")
def world(tmp_path_factory, template):
    """Tom and Ann with their agents, in one server."""
    with served(tmp_path_factory.mktemp("events") / "data", template) as server:
        people(server)
        must(server, "POST", "/v1/workspaces", json={"workspace_id": "ws", "name": "WS", "owner_user_id": "tom"})
        yield server


@pytest.fixture(scope="module")
def keys(world):
    """A key of each."""
    return {
        "tom": key_for(world, "user", "tom"),
        "ann": key_for(world, "user", "ann"),
        "hermes": key_for(world, "agent", "tom", "hermes"),
        "claude": key_for(world, "agent", "ann", "claude"),
    }


def remember(server, key, content, **fields):
    return must(server, "POST", "/v1/memory", key, json={"content": content, **fields})


def test_a_memory_is_told_to_its_user_without_its_text(world, keys):
    with Listener(world, keys["tom"]) as tom:
        made = remember(world, keys["tom"], "The harbour opens at six.", summary="Harbour hours")
        told = eventually(lambda: tom.of("memory"))[0]
        assert told["id"] == made["id"]
        assert (told["kind"], told["change"], told["namespace"], told["version"]) == (
            "memory", "create", "user/tom/long_term", 1,
        )  # fmt: skip
        must(world, "PATCH", f"/v1/memory/{made['id']}", keys["tom"], json={"content": "At seven.", "version": 1})
        must(world, "DELETE", f"/v1/memory/{made['id']}", keys["tom"], params={"version": 2})
        eventually(lambda: [one["change"] for one in tom.of("memory")] == ["create", "update", "delete"])
    assert "arbour" not in str(tom.said)
    assert [one["seq"] for one in tom.said] == sorted(one["seq"] for one in tom.said)


def test_nothing_of_ann_reaches_tom_or_his_agent(world, keys):
    """Of every kind: memory, draft, problem and job; and Tom's own still come."""
    with Listener(world, keys["tom"]) as tom, Listener(world, keys["hermes"]) as hermes:
        with Listener(world, keys["ann"]) as ann, Listener(world, world.key) as admin:
            kept = remember(world, keys["ann"], "Ann keeps bees.")
            inferred = {"source": "conversation", "confidence": 0.6}
            draft = call(world, "POST", "/v1/memory", keys["claude"], json={"content": "Ann likes honey.", **inferred})
            assert draft.status_code == 202, draft.text
            broken = (world.vault / kept["path"]).parent / "broken.md"
            broken.write_text("---\ntags: [a\n---\nA title that says much.\n", "utf-8")
            with world.gateway.parts.ledger.write() as tx:
                job = jobs.new("clear", requested_by="key", scope="user", scope_id="ann", user_id="ann")
                jobs.add(tx, job)
                jobs.change(tx, job.id, status=jobs.RUNNING, done=1, total=2)
                jobs.finish(tx, job.id)
            eventually(lambda: {one["event"] for one in ann.said} >= {"memory", "draft", "problem", "job"}, 20)
            assert [one["change"] for one in ann.of("job")] == ["waiting", "running", "done"]
            assert ann.of("draft")[0]["id"] == draft.json()["review"]["id"]
            assert ann.of("problem")[0]["problem"] == "broken-properties"
            assert "says much" not in str(ann.said)
            assert "broken.md" not in str(ann.said)
            eventually(lambda: {one["event"] for one in admin.said} >= {"memory", "draft", "problem", "job"})
            broken.unlink()
            eventually(lambda: "cleared" in [one["change"] for one in ann.of("problem")], 20)
        mine = remember(world, keys["tom"], "Tom sails on Sundays.")
        eventually(lambda: mine["id"] in tom.ids() and mine["id"] in hermes.ids())
        assert [one["event"] for one in tom.said] == ["ready", "memory"]
        assert [one["event"] for one in hermes.said] == ["ready", "memory"]


def test_a_memory_for_one_agent_is_not_told_to_the_other(world, keys):
    other = key_for(world, "agent", "tom", "nanobot")
    with Listener(world, keys["hermes"]) as hermes, Listener(world, other) as nanobot:
        own = {"source": "manual", "confidence": 1.0, "visibility": "agent-only", "agent_id": "hermes"}
        made = remember(world, keys["hermes"], "Only Hermes knows.", **own)
        both = remember(world, keys["tom"], "Both know.")
        eventually(lambda: both["id"] in nanobot.ids() and made["id"] in hermes.ids())
        assert made["id"] not in nanobot.ids()


def test_a_draft_waits_and_is_decided(world, keys):
    with Listener(world, keys["tom"], params={"kinds": "draft"}) as tom, Listener(world, keys["hermes"]) as hermes:
        inferred = {"content": "Tom seems to like rain.", "source": "conversation", "confidence": 0.6}
        review = call(world, "POST", "/v1/memory", keys["hermes"], json=inferred).json()["review"]["id"]
        must(world, "POST", f"/v1/reviews/{review}/accept", keys["tom"], json={})
        eventually(lambda: [one["change"] for one in tom.of("draft")] == ["waiting", "accepted"])
        assert {one["event"] for one in tom.said} == {"ready", "draft"}
        eventually(lambda: len(hermes.of("draft")) == 2)


def test_a_listener_goes_on_where_it_was(world, keys):
    """After a reconnect by header or by query."""
    with Listener(world, keys["tom"]) as before:
        remember(world, keys["tom"], "Before the break.")
        last = eventually(lambda: before.of("memory"))[-1]["seq"]
    missed = [remember(world, keys["tom"], f"During the break {n}.")["id"] for n in range(3)]
    remember(world, keys["ann"], "Ann, meanwhile.")
    for how in ({"headers": {"Last-Event-ID": str(last)}}, {"params": {"last_event_id": str(last)}}):
        with Listener(world, keys["tom"], **how) as after:
            eventually(lambda after=after: len(after.of("memory")) >= 3)
            assert [one["id"] for one in after.of("memory")] == missed
            assert after.said[0] == {"event": "ready", "seq": last}


def test_a_listener_goes_on_after_a_restart(tmp_path, template):
    with served(tmp_path / "data", template) as server:
        people(server)
        key = key_for(server, "user", "tom")
        with Listener(server, key) as tom:
            remember(server, key, "Before the restart.")
            last = eventually(lambda: tom.of("memory"))[-1]["seq"]
        missed = remember(server, key, "Just before the stop.")["id"]
    resumed = {"headers": {"Last-Event-ID": str(last)}}
    with served(tmp_path / "data", template) as server, Listener(server, key, **resumed) as tom:
        eventually(lambda: missed in tom.ids())
        assert tom.said[0]["event"] == "ready"


def test_what_is_no_longer_kept_is_a_reset(world, keys):
    with Listener(world, keys["tom"]) as tom:
        remember(world, keys["tom"], "The first of many.")
        last = eventually(lambda: tom.of("memory"))[-1]["seq"]
    for number in range(3):
        remember(world, keys["tom"], f"Soon trimmed {number}.")
    ledger = world.gateway.parts.ledger
    with ledger.write() as tx:
        assert ledger_events.trim(tx, 2**60) >= 3
    with ledger.read() as tx:
        newest = ledger_events.newest(tx)
        assert newest > last
    for gone in (last, newest + 1_000):
        with Listener(world, keys["tom"], headers={"Last-Event-ID": str(gone)}) as after:
            assert after.said[0]["event"] == "reset"
            assert after.said[0]["seq"] == newest
            assert "list anew" in after.said[0]["advice"]
            made = remember(world, keys["tom"], f"After the reset {gone}.")
            eventually(lambda after=after, made=made: made["id"] in after.ids())
            newest = after.said[-1]["seq"]


def test_a_revoked_key_hears_nothing_more(world):
    made = must(world, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
    with Listener(world, made["key"]) as tom:
        must(world, "DELETE", f"/v1/keys/{made['id']}")
        later = remember(world, world.key, "After the key was revoked.", user_id="tom")
        eventually(lambda: tom.ended_after is not None, 5)
        assert later["id"] not in tom.ids()
        again = call(world, "GET", "/v1/events", made["key"])
        assert again.status_code == 401


def test_wrong_questions_are_refused(world, keys):
    for params, headers in (
        ({"kinds": "memory,rumour"}, {}),
        ({"kinds": ""}, {}),
        ({"last_event_id": "x"}, {}),
        ({}, {"Last-Event-ID": "-1"}),
        ({}, {"Last-Event-ID": "9" * 40}),
    ):
        answer = call(world, "GET", "/v1/events", keys["tom"], params=params, headers=headers)
        assert answer.status_code == 400, (params, headers)
        assert answer.headers["content-type"].startswith("application/problem+json")


def test_streams_are_few(tmp_path, template):
    policy = {"event_streams": 3, "event_streams_per_key": 2}
    with served(tmp_path / "data", template, policy=policy) as server:
        people(server)
        tom, ann = key_for(server, "user", "tom"), key_for(server, "user", "ann")
        with Listener(server, tom), Listener(server, tom):
            third = call(server, "GET", "/v1/events", tom)
            assert (third.status_code, third.json()["type"]) == (429, "urn:memory-gateway:problem:rate-limited")
            with Listener(server, ann):
                full = call(server, "GET", "/v1/events", ann)
                assert (full.status_code, full.json()["type"]) == (503, "urn:memory-gateway:problem:unavailable")
        eventually(lambda: not server.gateway.streams._open, 5)
        with Listener(server, tom) as again:
            assert again.status == 200


def test_the_server_stops_under_open_streams(tmp_path, template):
    shutil.copytree(template, tmp_path / "data", symlinks=True)
    server, uvicorn_server, thread, listener = start(tmp_path / "data")
    with Listener(server, server.key) as one, Listener(server, server.key) as two:
        began = time.monotonic()
        uvicorn_server.should_exit = True
        thread.join(timeout=15)
        assert not thread.is_alive()
        assert time.monotonic() - began < 8
        eventually(lambda: one.ended_after is not None and two.ended_after is not None, 5)
    server.http.close()
    listener.close()


def test_silence_is_broken_by_heartbeats(world, keys, monkeypatch):
    """A comment, and the number up to which there was nothing for this listener."""
    monkeypatch.setattr(api_events, "_HEARTBEAT_SECONDS", 0.5)
    with Listener(world, keys["tom"]) as tom:
        eventually(lambda: len(tom.comments) >= 2, 10)


def test_a_reader_that_does_not_read_is_cut_off(tmp_path, template, monkeypatch):
    monkeypatch.setattr(api_events, "_SLOW_SECONDS", 1.0)
    with served(tmp_path / "data", template) as server:
        host, port = server.url.removeprefix("http://").split(":")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(f"GET /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode())
        assert slow.recv(15).startswith(b"HTTP/1.1 200")
        many = [Event(ledger_events.JOB, "progress", f"job_{n}", data={"filler": "x" * 400}) for n in range(30_000)]
        for first in range(0, len(many), 5_000):
            with server.gateway.parts.ledger.write() as tx:
                ledger_events.write(tx, *many[first : first + 5_000])
        eventually(lambda: not server.gateway.streams._open, 20)
        slow.close()
        with Listener(server, server.key) as other:
            assert other.status == 200

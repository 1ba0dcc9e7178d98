"""Another embedding model: the old index serves until the new one is whole, through kills and changes of mind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from gateway.index.schema import table_name
from gateway.index.table import Database
from gateway.ledger import jobs, meta, registry
from gateway.services import rebuild
from tests.api.conftest import eventually
from tests.conftest import IMPATIENT
from tests.servers import call, must, served
from tests.upkeep.providers import DIMENSIONS, Provider, providing

NOTES = 60


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as running:
        yield running


def embedding(provider: Provider, model: str, **values) -> dict:
    return {
        "provider": "openai", "model": model, "base_url": provider.url, "dimension": DIMENSIONS[model],
        "batch_size": 8, **values,
    }  # fmt: skip


def opened(data: Path, chosen: dict) -> Gateway:
    return open_gateway(load_settings(data_dir=data, **(IMPATIENT | {"embedding": chosen})))


def filled(gateway: Gateway, notes: int = NOTES) -> None:
    folder = gateway.parts.files.root / "Memories" / "LongTerm"
    for number in range(notes):
        (folder / f"fact {number}.md").write_text(f"The lamp number {number} stands in room {number * 7}.\n", "utf-8")
    gateway.settle()
    while gateway.parts.feed.embedder is not None and gateway.parts.feed.fill_vectors():
        pass


def finish(gateway: Gateway, rounds: int = 200) -> None:
    for _ in range(rounds):
        if rebuild.migrate(gateway.parts):
            return
    raise AssertionError("the migration does not end")


def tables(gateway: Gateway) -> list[str]:
    return sorted(Database(gateway.parts.settings.index_location).names())


def table_of(parts) -> str:
    return table_name(parts.feed.index.identity, parts.feed.index.generation)


def search(gateway: Gateway, query: str, **fields):
    from gateway.access.principal import Principal
    from gateway.services import search as searching
    from gateway.services.requests import Search

    admin = Principal("local", "admin", None, None, (), None)
    return searching.search(admin, gateway.parts, gateway.query_vectors, Search(query=query, **({"limit": 3} | fields)))


def test_the_old_index_serves_by_meaning_until_the_new_one_is_whole(tmp_path, provider):
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first)
    old = first.parts.feed.index.identity
    first.close()
    second = opened(tmp_path / "data", embedding(provider, "new-model"))
    parts = second.parts
    try:
        assert parts.feed.index.identity == old
        assert parts.migration.source_name == old.slug
        answer = search(second, "lamp number 7")
        assert (answer.degraded, len(answer.results)) == ([], 3)
        rounds = 0
        while not rebuild.migrate(parts):
            rounds += 1
            assert parts.feed.index.identity == old
            assert parts.migration.done <= parts.migration.total
            assert not search(second, f"lamp number {rounds}").degraded
        assert rounds > 2
        assert parts.feed.index.identity.model == "new-model"
        answer = search(second, "lamp number 7")
        assert "number 7 " in answer.results[0].memory.content
        assert not answer.degraded
        assert [name for name in tables(second) if name.startswith("chunks_")] == [table_of(parts)]
        with parts.ledger.read() as tx:
            (job,) = [one for one in jobs.page(tx, user_id=None, limit=9, before=None) if one.kind == "migrate"]
            assert meta.get(tx, meta.INDEX_IDENTITY) == parts.feed.index.identity.slug
            assert registry.pending_counts(tx)["vectors"] == 0
        assert job.status == "done"
        assert job.done == job.total >= NOTES
        assert job.options == {"from": old.slug, "to": parts.feed.index.identity.slug}
    finally:
        second.close()
    third = opened(tmp_path / "data", embedding(provider, "new-model"))
    assert third.parts.migration is None
    assert provider.asked["new-model"] < NOTES + 40  # nothing was embedded twice
    third.close()


def test_without_the_old_model_keywords_answer_and_say_so(tmp_path, provider):
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first, 20)
    first.close()
    with providing() as elsewhere:
        second = opened(tmp_path / "data", embedding(elsewhere, "new-model"))
        try:
            assert second.parts.feed.embedder is None
            answer = search(second, "lamp number 7")
            assert "number 7 " in answer.results[0].memory.content
            assert answer.degraded == ["embedding_migration"]
            finish(second)
            assert search(second, "lamp number 7").degraded == []
        finally:
            second.close()


def test_what_changes_meanwhile_is_right_after_the_take_over(tmp_path, provider):
    """New, changed, moved and deleted notes: in the serving index at once, in the new one when it takes over."""
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first)
    first.close()
    second = opened(tmp_path / "data", embedding(provider, "same-size"))
    try:
        parts = second.parts
        folder = parts.files.root / "Memories" / "LongTerm"
        rebuild.migrate(parts)
        rebuild.migrate(parts)
        (folder / "new.md").write_text("A violin hangs in the attic.\n", "utf-8")
        (folder / "fact 3.md").write_text("The trumpet lies in the cellar.\n", "utf-8")
        (folder / "fact 4.md").unlink()
        (folder / "fact 5.md").rename(folder / "moved.md")
        second.settle()
        assert "violin" in search(second, "violin attic", mode="fts").results[0].memory.content
        finish(second)
        while parts.feed.fill_vectors():
            pass
        assert "violin" in search(second, "violin attic", mode="fts").results[0].memory.content
        assert "trumpet" in search(second, "trumpet cellar", mode="fts").results[0].memory.content
        with parts.ledger.read() as tx:
            wanted = {note_id: etag for note_id, etag, _, status in registry.note_revisions(tx) if status != "held"}
            waiting = registry.pending_counts(tx)
        found = parts.feed.index.note_etags()
        assert {one: etag for one, etag in found.items() if wanted.get(one) != etag} == {}
        assert set(wanted) >= set(found)
        assert waiting["vectors"] == 0
        stored = next(iter(parts.feed.index.table.scan(["vector"], "has_vector = true", limit=5)))
        assert stored.num_rows == 5
        old = parts.feed.index.vectors.name
        assert old.startswith("vectors_openai_same-size")
    finally:
        second.close()


def test_changing_back_in_mid_way_is_fine(tmp_path, provider):
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first)
    first.close()
    second = opened(tmp_path / "data", embedding(provider, "new-model"))
    rebuild.migrate(second.parts)
    rebuild.migrate(second.parts)
    assert len([name for name in tables(second) if name.startswith("chunks_")]) == 2
    second.close()
    asked = provider.asked["old-model"]
    third = opened(tmp_path / "data", embedding(provider, "old-model"))
    try:
        assert third.parts.migration is None
        assert not search(third, "lamp number 7").degraded
        assert [name for name in tables(third) if name.startswith("chunks_")] == [table_of(third.parts)]
        assert third.parts.feed.fill_vectors() == 0
        assert provider.asked["old-model"] <= asked + 1  # the query
        with third.parts.ledger.read() as tx:
            (job,) = jobs.page(tx, user_id=None, limit=9, before=None)
        assert job.status == "failed"
    finally:
        third.close()
    fourth = opened(tmp_path / "data", embedding(provider, "same-size"))  # and to a third one
    finish(fourth)
    assert fourth.parts.feed.index.identity.model == "same-size"
    fourth.close()


def test_a_provider_that_is_down_is_waited_for(tmp_path, provider):
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first, 20)
    first.close()
    provider.down.add("new-model")
    second = opened(tmp_path / "data", embedding(provider, "new-model", timeout_seconds=1.0))
    try:
        rebuild.migrate(second.parts)
        assert not rebuild.migrate(second.parts)
        assert second.parts.migration.error
        assert not search(second, "lamp number 7").degraded
        provider.down.clear()
        finish(second)
    finally:
        second.close()


def test_from_keywords_to_meaning_and_back(tmp_path, provider):
    first = opened(tmp_path / "data", {"provider": "none"})
    filled(first, 20)
    first.close()
    second = opened(tmp_path / "data", embedding(provider, "new-model"))
    assert second.parts.migration is not None
    finish(second)
    assert search(second, "lamp number 7").degraded == []
    second.close()
    third = opened(tmp_path / "data", {"provider": "none"})
    finish(third)
    assert third.parts.feed.index.identity is None
    assert "number 7 " in search(third, "lamp number 7").results[0].memory.content
    third.close()


def test_a_rebuild_carries_the_migration_to_its_end(tmp_path, provider):
    from gateway.access.principal import Principal

    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first, 20)
    first.close()
    second = opened(tmp_path / "data", embedding(provider, "new-model"))
    rebuild.rebuild(Principal("local", "admin", None, None, (), None), second.parts)
    assert second.parts.feed.index.identity.model == "new-model"
    second.close()


_SERVE = """
import sys, json
from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.services import rebuild
settings = json.loads(sys.argv[2])
gateway = open_gateway(load_settings(data_dir=sys.argv[1], **settings))
gateway.settle()
while True:
    over = rebuild.migrate(gateway.parts)
    print("over" if over else f"{gateway.parts.migration.phase} {gateway.parts.migration.done}", flush=True)
    if over:
        gateway.close()
        break
"""


def test_a_killed_migration_goes_on_where_it_was(tmp_path, provider):
    """kill -9 in each phase; texts that have a vector are not embedded again."""
    first = opened(tmp_path / "data", embedding(provider, "old-model"))
    filled(first, 300)
    first.close()
    settings = json.dumps(IMPATIENT | {"embedding": embedding(provider, "new-model")})
    command = [sys.executable, "-c", _SERVE, str(tmp_path / "data"), settings]
    for lines in (1, 3, 2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(lines):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            process.wait()
    last = opened(tmp_path / "data", embedding(provider, "new-model"))
    try:
        assert last.parts.migration is not None
        with last.parts.ledger.read() as tx:
            open_now = jobs.open_jobs(tx, ("migrate",))
        assert len(open_now) == 1
        finish(last)
        assert "number 7 " in search(last, "lamp number 7").results[0].memory.content
        chunks = last.parts.feed.index.table.count()
        assert last.parts.feed.index.pending_vectors() == 0
        assert provider.asked["new-model"] <= chunks + 4 * 64  # at most one round for each kill is asked for again
    finally:
        last.close()


def test_the_server_migrates_by_itself_and_says_how_far_it_is(tmp_path, template, provider):
    with served(tmp_path / "data", template, embedding=embedding(provider, "old-model")) as server:
        for number in range(30):
            server.write(f"The kettle number {number} is blue.")
        eventually(lambda: not must(server, "GET", "/v1/health")["queue"]["vectors"], 20)
        assert must(server, "GET", "/v1/health")["index"]["migration"] is None
    provider.most["new-model"] = 10
    upkeep = {"migration_share": 1.0}
    chosen = embedding(provider, "new-model")
    with served(tmp_path / "data", template, embedding=chosen, maintenance=upkeep) as server:
        told = eventually(lambda: must(server, "GET", "/v1/health")["index"]["migration"])
        assert told["from"].startswith("openai_old-model")
        assert told["to"].startswith("openai_new-model")
        listed = must(server, "GET", "/v1/jobs")["jobs"]
        assert [one["kind"] for one in listed if one["status"] != "done"] == ["migrate"]
        made = server.write("The teapot is red.")
        assert server.find("teapot red")[0] == "The teapot is red."
        provider.most.clear()
        eventually(lambda: must(server, "GET", "/v1/health")["index"]["migration"] is None, 30)
        assert server.find("teapot red")[0] == "The teapot is red."
        assert must(server, "GET", "/v1/health")["index"]["embedding"] == told["to"]
        eventually(lambda: must(server, "GET", f"/v1/memory/{made['id']}/receipt")["receipt"]["vector"] == "done", 20)
        assert call(server, "GET", "/v1/jobs", params={"status": "done"}).json()["jobs"][0]["kind"] in (
            "migrate", "maintain",
        )  # fmt: skip
        time.sleep(0.1)

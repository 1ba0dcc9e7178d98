"""How much our search costs over the bare LanceDB call, and what a whole search takes.

    python tests/bench/search.py [--sizes 1000,10000,100000] [--service-sizes 1000,10000] [--data DIR] [--queries N]

Vectors are made from hashes, so that no embedding model is needed and the numbers are those of the search itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
# Read when LanceDB is imported: it warns about the columns of every bare hybrid query.
os.environ.setdefault("LANCEDB_LOG", "error")

from lancedb.query import FullTextOperator, MatchQuery  # noqa: E402

from gateway import log  # noqa: E402
from gateway.access.principal import LOCAL_OPERATOR  # noqa: E402
from gateway.api.app import create_app  # noqa: E402
from gateway.bootstrap import Gateway, open_gateway  # noqa: E402
from gateway.config import load_settings  # noqa: E402
from gateway.index.embed import EmbeddingIdentity, Vector, unit  # noqa: E402
from gateway.index.schema import IndexedNote, note_rows  # noqa: E402
from gateway.index.scope import Scope  # noqa: E402
from gateway.index.search import CANDIDATES_PER_HIT, MIN_CANDIDATES, SearchRequest  # noqa: E402
from gateway.index.search import search as search_index  # noqa: E402
from gateway.index.store import Index  # noqa: E402
from gateway.index.tokens import query_tokens  # noqa: E402
from gateway.services.requests import Search  # noqa: E402
from gateway.services.search import search as search_service  # noqa: E402

DIMENSION = 384
IDENTITY = EmbeddingIdentity("fake", "hash", DIMENSION, "0" * 16)
USERS = 10
HITS = 10
BATCH = 2_000
COLUMNS = ["chunk_id", "note_id", "etag", "namespace", "heading", "text", "tokens"]
HEAD = f"{'what':<34}{'notes':>9}{'n':>6}{'p50 ms':>10}{'p95 ms':>10}{'ratio p50':>11}{'ratio p95':>11}"


class HashEmbedder:
    """A vector of the text's hash: it costs nothing and says nothing, as a search's price needs it."""

    identity = IDENTITY

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector a text."""
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        """The vector of a question."""
        return vector_of(text)

    def close(self) -> None:
        """Nothing to give back."""


def main() -> None:
    """Print the table."""
    arguments = _arguments()
    log.configure(level="warning")
    texts = [line["text"] for line in _lines(arguments.data / "memories.jsonl")]
    queries = [line["text"] for line in _lines(arguments.data / "queries.jsonl")][: arguments.queries]
    print(HEAD)
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="memory-gateway-bench-") as folder:
            _bare_and_ours(Path(folder), texts, queries, size)
    for size in arguments.service_sizes:
        with tempfile.TemporaryDirectory(prefix="memory-gateway-bench-") as folder:
            _whole_service(Path(folder), texts, queries, size, over_rest=size == min(arguments.service_sizes))


def vector_of(text: str) -> Vector:
    """A unit vector that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    vector = unit(np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32))
    assert vector is not None
    return vector


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a search costs.")
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "perf"
    parser.add_argument("--data", type=Path, default=default, help="folder with memories.jsonl and queries.jsonl")
    parser.add_argument("--sizes", type=_sizes, default=[1_000, 10_000, 100_000], help="chunks of the bare index")
    parser.add_argument("--service-sizes", type=_sizes, default=[1_000, 10_000], help="notes on disk; 0 for none")
    parser.add_argument("--queries", type=int, default=200)
    found = parser.parse_args()
    if not found.data.is_dir():
        sys.exit(f"There is no {found.data}; give --data a folder with memories.jsonl and queries.jsonl.")
    return found


def _sizes(text: str) -> list[int]:
    return [size for part in text.split(",") if (size := int(part))]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _body(texts: Sequence[str], number: int) -> str:
    return f"{texts[number % len(texts)][:400]} (zx{number:06d}q)"


def _note(texts: Sequence[str], number: int) -> IndexedNote:
    user = f"user{number % USERS}"
    return IndexedNote(f"n{number:06d}", "1", f"user/{user}/long_term", "", _body(texts, number), user_id=user)


def _scope(number: int) -> Scope:
    return Scope((f"user/user{number % USERS}/long_term", "global/public"))


def _bare_and_ours(folder: Path, texts: Sequence[str], queries: Sequence[str], size: int) -> None:
    index = Index.open(str(folder / "index"), IDENTITY)
    assert index.vectors is not None
    started = time.perf_counter()
    for start in range(0, size, BATCH):
        notes = [_note(texts, number) for number in range(start, min(start + BATCH, size))]
        rows = [row for note in notes for row in note_rows(note, "bench")]
        index.vectors.add({row["text_hash"]: vector_of(row["text"]) for row in rows})
        index.upsert(notes)
    index.optimise(force=True)
    print(f"# {size:,} notes indexed in {time.perf_counter() - started:.0f} s; {index.table.count():,} chunks")
    asked = max(MIN_CANDIDATES, CANDIDATES_PER_HIT * HITS)
    for mode in ("fts", "hybrid"):
        bare, ours = _interleaved(
            [lambda n, query, mode=mode: _bare(index, query, n, mode, asked), _ours(index, mode)], queries
        )
        _print(f"LanceDB alone, {mode}", size, bare)
        _print(f"our index search, {mode}", size, ours, bare)


def _interleaved(calls: Sequence[Callable[[int, str], object]], queries: Sequence[str]) -> list[list[float]]:
    """Times of each call on each query, in turns, so that a busy moment meets all of them."""
    times: list[list[float]] = [[] for _ in calls]
    for number, query in enumerate(queries[:10]):
        for call in calls:
            call(number, query)
    for number, query in enumerate(queries):
        for place in range(len(calls)):
            at = (place + number) % len(calls)
            started = time.perf_counter()
            calls[at](number, query)
            times[at].append((time.perf_counter() - started) * 1000)
    return times


def _ours(index: Index, mode: str) -> Callable[[int, str], object]:
    def call(number: int, query: str) -> object:
        vector = None if mode == "fts" else vector_of(query)
        request = SearchRequest(query, _scope(number), limit=HITS, mode=mode, query_vector=vector, now_ms=1)  # type: ignore[arg-type]
        return search_index(index, request)

    return call


def _bare(index: Index, query: str, number: int, mode: str, limit: int) -> object:
    """The same filter, the same tokens and as many candidates, straight from LanceDB; hybrid: its own hybrid query."""
    table: Any = index.table._table  # going round our own code is the point
    where = f"{_scope(number).sql()} AND expires_at > 1"
    tokens = query_tokens(query)
    match: Any = MatchQuery(tokens, "tokens", operator=FullTextOperator.OR)
    if mode == "fts":
        found = table.search(match, query_type="fts").where(where, prefilter=True).select([*COLUMNS, "_score"])
        return found.limit(limit).to_arrow()
    found = table.search(query_type="hybrid", vector_column_name="vector").vector(vector_of(query)).text(match)
    return found.distance_type("cosine").where(where, prefilter=True).select(COLUMNS).limit(limit).to_arrow()


def _whole_service(folder: Path, texts: Sequence[str], queries: Sequence[str], size: int, *, over_rest: bool) -> None:
    settings = load_settings(data_dir=folder / "data", embedding={"provider": "none"})
    _write_notes(settings.vault_root, texts, size)
    gateway = open_gateway(settings, embedder=HashEmbedder())
    try:
        started = time.perf_counter()
        gateway.parts.importer.scan(settled=True)
        gateway.parts.scanned.set()
        gateway.parts.feed.feed()
        gateway.parts.feed.fill_vectors()
        gateway.parts.feed.optimise(force=True)
        print(f"# {size:,} notes on disk imported and indexed in {time.perf_counter() - started:.0f} s, without git")
        index = gateway.parts.feed.index
        asked = max(MIN_CANDIDATES, CANDIDATES_PER_HIT * HITS)
        for mode in ("fts", "hybrid"):
            bare, whole = _interleaved(
                [lambda n, query, mode=mode: _bare(index, query, n, mode, asked), _service_call(gateway, mode)], queries
            )
            _print(f"LanceDB alone, {mode}", size, bare)
            _print(f"whole search with files, {mode}", size, whole, bare)
        if over_rest:
            _over_rest(gateway, queries, size)
    finally:
        gateway.close()


def _write_notes(vault: Path, texts: Sequence[str], size: int) -> None:
    for user in range(USERS):
        (vault / f"Users/user{user}/LongTerm").mkdir(parents=True)
    for number in range(size):
        path = vault / f"Users/user{number % USERS}/LongTerm/n{number:06d}.md"
        path.write_text(_body(texts, number) + "\n", "utf-8")


def _service_call(gateway: Gateway, mode: str) -> Callable[[int, str], object]:
    def call(number: int, query: str) -> object:
        wanted = Search.model_validate(
            {"query": query, "user_id": f"user{number % USERS}", "limit": HITS, "mode": mode}
        )
        return search_service(LOCAL_OPERATOR, gateway.parts, gateway.query_vectors, wanted)

    return call


def _over_rest(gateway: Gateway, queries: Sequence[str], size: int) -> None:
    key = gateway.parts.settings.admin_key_path.read_text("ascii").strip()
    headers = {"Authorization": f"Bearer {key}"}

    def call(number: int, query: str) -> httpx.Response:
        body = {"query": query, "user_id": f"user{number % USERS}", "limit": HITS}
        answer = client.post("/v1/memory/search", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    with _served(gateway) as url, httpx.Client(base_url=url, trust_env=False) as client:
        (times,) = _interleaved([call], queries)
    _print("POST /v1/memory/search, hybrid", size, times)


@contextmanager
def _served(gateway: Gateway) -> Iterator[str]:
    """The application on a loopback port, in a thread of this process, without the background work."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(gateway), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def _print(name: str, size: int, times: Sequence[float], against: Sequence[float] | None = None) -> None:
    ratios = (
        "".join(f"{here / there:>11.2f}" for here, there in zip(_marks(times), _marks(against), strict=True))
        if (against)
        else ""
    )
    print(f"{name:<34}{size:>9,}{len(times):>6}" + "".join(f"{mark:>10.1f}" for mark in _marks(times)) + ratios)


def _marks(times: Sequence[float]) -> Iterator[float]:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    yield from (cuts[49], cuts[94])


if __name__ == "__main__":
    main()

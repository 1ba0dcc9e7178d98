"""Many clients at once against `memory-gateway serve`: `python -m tests.bench.load [--clients 32] [--seconds 60]`.

70 % searches, 20 % writes, 10 % reads, changes and deletions. Afterwards every acknowledged write must be readable as
it was acknowledged, every deletion must be gone, and every acknowledged request must have its audit entry.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.bench.ingest import WORDS
from tests.journeys.running import Server, serving


@dataclass
class Record:
    """What all clients saw."""

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    # What was acknowledged: id -> (etag, text); None: deleted.
    kept: dict[str, tuple[str, str] | None] = field(default_factory=dict)
    # Requests that the audit must know.
    requests: set[str] = field(default_factory=set)


class Client:
    """One agent: asks, and remembers what it was told."""

    def __init__(self, http: httpx.AsyncClient, record: Record, number: int) -> None:
        self._http = http
        self._record = record
        self._random = random.Random(number)
        self._own: list[str] = []
        self._number = number
        self._written = 0

    async def run(self, until: float) -> None:
        while time.perf_counter() < until:
            dice = self._random.random()
            if dice < 0.7:
                await self._search()
            elif dice < 0.9 or not self._own:
                await self._write()
            else:
                await self._random.choice([self._get, self._change, self._delete])()

    def _text(self) -> str:
        self._written += 1
        words = " ".join(self._random.choices(WORDS, k=40))
        return f"Client {self._number}, memory {self._written}: {words}"

    async def _send(self, kind: str, method: str, path: str, **options) -> httpx.Response | None:
        request_id = uuid.uuid4().hex
        headers = options.pop("headers", {}) | {"X-Request-Id": request_id}
        started = time.perf_counter()
        try:
            answer = await self._http.request(method, path, headers=headers, **options)
        except httpx.HTTPError as error:
            self._record.errors[f"{kind}: {type(error).__name__}"] += 1
            return None
        self._record.took[kind].append(time.perf_counter() - started)
        if answer.status_code >= 300:
            self._record.errors[f"{kind}: HTTP {answer.status_code}"] += 1
            return None
        self._record.requests.add(request_id)
        return answer

    async def _search(self) -> None:
        query = " ".join(self._random.sample(WORDS, 2))
        await self._send("search", "POST", "/v1/memory/search", json={"query": query, "limit": 10})

    async def _write(self) -> None:
        text = self._text()
        answer = await self._send("write", "POST", "/v1/memory", json={"content": text})
        if answer is not None:
            made = answer.json()
            self._record.kept[made["id"]] = (made["etag"], text)
            self._own.append(made["id"])

    async def _get(self) -> None:
        await self._send("get", "GET", f"/v1/memory/{self._random.choice(self._own)}")

    async def _change(self) -> None:
        memory_id, text = self._random.choice(self._own), self._text()
        kept = self._record.kept[memory_id]
        assert kept is not None
        headers = {"If-Match": f'"{kept[0]}"'}
        path = f"/v1/memory/{memory_id}"
        answer = await self._send("change", "PATCH", path, json={"content": text}, headers=headers)
        if answer is not None:
            self._record.kept[memory_id] = (answer.json()["etag"], text)

    async def _delete(self) -> None:
        memory_id = self._own.pop(self._random.randrange(len(self._own)))
        kept = self._record.kept[memory_id]
        assert kept is not None
        headers = {"If-Match": f'"{kept[0]}"'}
        if await self._send("delete", "DELETE", f"/v1/memory/{memory_id}", headers=headers) is not None:
            self._record.kept[memory_id] = None


async def load(server: Server, clients: int, seconds: float) -> Record:
    """All clients at once, for so long."""
    record = Record()
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=60,
        trust_env=False,
        limits=limits,
    ) as http:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(Client(http, record, number).run(until) for number in range(clients)))
    return record


def lost(server: Server, record: Record) -> list[str]:
    """The acknowledged writes that cannot be read as they were acknowledged."""
    wrong = []
    for memory_id, kept in record.kept.items():
        answer = server.http.get(f"/v1/memory/{memory_id}")
        if kept is None:
            if answer.status_code != 404:
                wrong.append(memory_id)
        elif answer.status_code != 200 or (answer.json()["etag"], answer.json()["content"].strip()) != kept:
            wrong.append(memory_id)
    return wrong


def unaudited(server: Server, record: Record) -> set[str]:
    """The acknowledged requests that the audit does not know."""
    missing, before = set(record.requests), None
    while missing:
        query = {"limit": 200, **({"before": before} if before else {})}
        page = server.http.get("/v1/audit", params=query).json()
        if not page:
            break
        missing -= {one["request_id"] for one in page}
        before = page[-1]["id"]
    return missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    os.environ["MEMORY_GATEWAY_EMBEDDING__PROVIDER"] = "none"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "gateway.toml").write_text(
            "[policy]\nrequests_per_minute = 10000000\nrequest_burst = 10000000\n", "utf-8"
        )
        with serving(data) as server:
            server.http.timeout = 60
            record = asyncio.run(load(server, given.clients, given.seconds))
            report(record, given.seconds)
            print(f"lost writes: {len(lost(server, record))} of {len(record.kept)}")
            print(f"requests without audit entry: {len(unaudited(server, record))} of {len(record.requests)}")
            print(f"audit chain: {server.http.get('/v1/audit/verify').json()}")


def report(record: Record, seconds: float) -> None:
    """Rates and times by kind, and what went wrong."""
    total = sum(map(len, record.took.values()))
    print(f"{total:,} requests, {total / seconds:,.0f} a second")
    print("| kind | n | a second | p50 ms | p95 ms | max ms |\n|---|---:|---:|---:|---:|---:|")
    for kind, took in sorted(record.took.items()):
        cuts = statistics.quantiles(took, n=20) if len(took) > 1 else took * 19
        p50, p95 = cuts[9] * 1000, cuts[18] * 1000
        rate, longest = len(took) / seconds, max(took) * 1000
        print(f"| {kind} | {len(took):,} | {rate:,.1f} | {p50:,.0f} | {p95:,.0f} | {longest:,.0f} |")
    print(f"errors: {dict(record.errors) or 'none'}")


if __name__ == "__main__":
    main()

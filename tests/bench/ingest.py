"""How fast notes come in, by file and by import, and a rebuild: `python -m tests.bench.ingest [notes]`."""

import hashlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import Gateway, open_gateway
from gateway.config import load_settings
from gateway.index.embed import EmbeddingIdentity, Vector
from gateway.services.imports import import_notes
from gateway.services.operation_requests import ImportBatch, ImportedNote
from gateway.services.rebuild import rebuild

WORDS = ["memory", "vault", "note", "agent", "river", "stone", "cloud", "paper", "green", "seven", "light", "winter"]


class Deterministic:
    """Vectors from hashes: the provider is not what is measured."""

    identity = EmbeddingIdentity("bench", "hash", 256, "0" * 16)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        return self._vector(text)

    def close(self) -> None:
        pass

    def _vector(self, text: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(256).astype(np.float32)
        return vector / np.linalg.norm(vector)


def text(number: int) -> str:
    chosen = random.Random(number)
    body = "\n\n".join(" ".join(chosen.choices(WORDS, k=60)) for _ in range(2))
    return f"---\ntype: fact\ntags: [bench, t{number % 7}]\n---\n# Note {number}\n\n{body}\n"


def report(what: str, notes: int, work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    taken = time.perf_counter() - started
    print(f"{what}: {taken:.1f} s, {notes / taken:,.0f} notes/s")


def by_import(gateway: Gateway, notes: int) -> None:
    for first in range(0, notes, 200):
        batch = tuple(
            ImportedNote(path=f"b{first // 400}/{n}.md", text=text(n + notes)) for n in range(first, first + 200)
        )
        import_notes(LOCAL_OPERATOR, gateway.parts, ImportBatch(namespace="global/public", notes=batch))


def main() -> None:
    notes = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    folder = Path(tempfile.mkdtemp(prefix="bench-ingest-"))
    try:
        gateway = open_gateway(load_settings(data_dir=folder), embedder=Deterministic())
        place = gateway.parts.files.root / "Memories" / "LongTerm"
        place.mkdir(parents=True, exist_ok=True)
        for number in range(notes):
            (place / f"{number}.md").write_text(text(number))
        parts = gateway.parts
        report("files to ledger", notes, lambda: parts.importer.scan(settled=True))
        report("ledger to keyword index", notes, parts.feed.feed)
        report("commits", notes, lambda: parts.committer.flush(everything=True))
        report("import requests (files and ledger, durable)", notes, lambda: by_import(gateway, notes))
        report("their keyword index", notes, parts.feed.feed)
        report("vectors", notes * 2, parts.feed.fill_vectors)
        report("rebuild from cached vectors", notes * 2, lambda: rebuild(LOCAL_OPERATOR, parts))
        gateway.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

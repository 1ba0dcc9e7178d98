"""A fast, deterministic embedder and an index on disk for the tests of the index."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from gateway.errors import EmbeddingFailed
from gateway.index.embed import EmbeddingIdentity, Vector, unit
from gateway.index.schema import IndexedNote
from gateway.index.store import Index

DIMENSION = 16
IDENTITY = EmbeddingIdentity("fake", "hash-words", DIMENSION, "0" * 16)


class FakeEmbedder:
    """Vectors from hashed characters; `poison` texts get none, `down` makes every call fail."""

    def __init__(self) -> None:
        self.identity = IDENTITY
        self.poison = ""
        self.down = False
        self.embedded: list[str] = []
        self.before_answer: Callable[[], None] = lambda: None

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector a text."""
        if self.down:
            raise EmbeddingFailed("The provider is down.")
        self.embedded += texts
        self.before_answer()
        return [None if self.poison and self.poison in text else self.vector(text) for text in texts]

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        """The vector of a question."""
        return self.vector(text)

    def close(self) -> None:
        """Nothing to give back."""

    @staticmethod
    def vector(text: str) -> Vector:
        """Sum of a pseudo-random direction for each word."""
        total = np.full(DIMENSION, 0.01, dtype=np.float32)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4], "big")
            total += np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        vector = unit(total)
        assert vector is not None
        return vector


@pytest.fixture
def embedder() -> FakeEmbedder:
    """A fake that behaves."""
    return FakeEmbedder()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """An empty index of the fake's identity."""
    return Index.open(str(tmp_path / "index"), IDENTITY)


@pytest.fixture
def keyword_index(tmp_path: Path) -> Index:
    """An empty index without vectors."""
    return Index.open(str(tmp_path / "keywords"), None)


@pytest.fixture(scope="session")
def note() -> Callable[..., IndexedNote]:
    """Makes a note of an id and a body, with what a test does not care about filled in."""

    def make(note_id: str, body: str = "", **values: object) -> IndexedNote:
        given: dict[str, object] = {"etag": f"etag-{note_id}", "namespace": "user/tom/long_term", "title": ""}
        return IndexedNote(note_id=note_id, body=body, **(given | values))

    return make

"""With vectors: they confirm where one statement says a little more, and what the index has is not embedded again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.index.embed import EmbeddingIdentity, Vector, unit
from tests.conftest import IMPATIENT
from tests.consolidation.world import HERMES, World

NEAR = ("jog",)


class ByTopic:
    """Texts that speak of one topic have the same vector; counts what it is given."""

    identity = EmbeddingIdentity("test", "by-topic", 8, "0123456789abcdef")

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        self.texts += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        seed = 1 if any(word in text for word in NEAR) else abs(hash(text)) % 10_000
        return unit(np.random.default_rng(seed).normal(size=8).astype(np.float32))

    def close(self) -> None:
        pass


@pytest.fixture
def near(tmp_path):
    """A world whose embedder knows one topic, and that embedder."""
    embedder = ByTopic()
    gateway = open_gateway(load_settings(data_dir=tmp_path / "data", **IMPATIENT), embedder=embedder)
    yield World(gateway).people(), embedder
    gateway.close()


def test_vectors_confirm_a_little_more_and_nothing_that_words_deny(near):
    world, embedder = near
    more = "I jog along the canal path before breakfast."
    for text in ("I jog along the canal before breakfast.", more, "I never jog along the canal before breakfast."):
        world.remember(text)
    for _ in range(2):
        world.run()
    assert len(world.rows("agent/hermes/memory")) == 2
    assert len(world.drafts("conflict")) == 1
    assert len(embedder.texts) == len(set(embedder.texts))


def test_what_the_index_has_is_not_embedded_again(near):
    world, embedder = near
    for number in range(5):
        world.remember(f"The build number {number} is kept.")
    world.run()
    before = len(embedder.texts)
    for row in world.rows("agent/hermes/memory"):
        from tests.consolidation.test_memories import judge

        judge(world, row.note_id, "useful", HERMES)
    assert world.run().items == 5
    assert len(embedder.texts) == before

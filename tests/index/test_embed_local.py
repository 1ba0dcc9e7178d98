"""The model that ships with the product, where it has a build for this platform."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gateway.errors import BadSettings, EmbeddingFailed
from gateway.index import embed_local
from gateway.index.embed import EmbeddingConfig, EmbeddingIdentity, embed_query_within, open_embedder
from gateway.index.embed_local import MAX_CHARACTERS, MAX_TOKENS, LocalEmbedder, find_model, prepared
from gateway.index.tokens import count_tokens


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEmbedder]:
    """The real model in its child processes."""
    opened = open_embedder(EmbeddingConfig(batch_size=4, timeout_seconds=60))
    assert isinstance(opened.embedder, LocalEmbedder)
    yield opened.embedder
    opened.embedder.close()


def test_a_question_is_nearest_to_the_passage_that_answers_it_in_chinese_too(local: LocalEmbedder) -> None:
    """No shared words, two languages."""
    texts = ["我养了一只叫豆包的橘猫", "周末去爬山看日出", "The quarterly report is due on Friday"]
    passages = [vector for vector in local.embed_passages(texts) if vector is not None]
    assert len(passages) == 3
    for query, best in (("我的宠物叫什么名字", 0), ("户外运动计划", 1), ("deadline for the paperwork", 2)):
        scores = np.stack(passages) @ embed_query_within(local, query, 60)
        assert int(np.argmax(scores)) == best


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "\ufdfa" * 8_000, "a\x00b", "😀" * 9_000, "x" * 300_000])
def test_no_text_crashes_the_model(local: LocalEmbedder, text: str) -> None:
    """Code points that expand overran the C buffer, NUL cut the text, surrogates raised."""
    (vector,) = local.embed_passages([text])
    assert vector is not None
    assert np.isclose(np.linalg.norm(vector), 1.0, atol=1e-3)


def test_the_identity_names_the_weights_and_fits_a_table_name(local: LocalEmbedder) -> None:
    """The fingerprint is that of the file."""
    identity = local.identity
    assert (identity.provider, identity.dimension, len(identity.fingerprint)) == ("local", 384, 16)
    assert identity.slug.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize("text", ["\ufdfa" * MAX_CHARACTERS, "系" * 20_000, "😀" * 20_000, "word " * 20_000])
def test_prepared_text_is_cut_to_what_the_model_takes(text: str) -> None:
    """Also where it expanded: U+FDFA becomes eighteen characters."""
    assert 400 <= count_tokens(prepared(text)) <= MAX_TOKENS + 1


def test_a_poison_text_alone_is_lost_from_its_batch(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """The others get their vectors by halving."""
    embedder = _with_passages(monkeypatch, lambda text: "crash" in text)
    vectors = embedder.embed_passages(["a", "b", "crash", "d", "e"])
    assert [vector is not None for vector in vectors] == [True, True, False, True, True]


def test_a_model_that_fails_on_everything_blames_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises, so that nothing is given up."""
    embedder = _with_passages(monkeypatch, lambda text: True)
    with pytest.raises(EmbeddingFailed):
        embedder.embed_passages(["a", "b"])


def test_a_platform_without_a_build_falls_back_to_keywords_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No error at start."""
    monkeypatch.setattr(embed_local, "find_model", lambda: None)
    opened = open_embedder(EmbeddingConfig())
    assert opened.embedder is None
    assert opened.note is not None
    assert "keyword" in opened.note


def test_embeddings_can_be_switched_off_and_unknown_models_are_refused() -> None:
    """The reason is a sentence for people."""
    assert open_embedder(EmbeddingConfig(provider="none")).note
    with pytest.raises(BadSettings):
        open_embedder(EmbeddingConfig(model="no-such-model"))


def test_a_slug_of_any_model_name_is_safe() -> None:
    """Slashes, colons, blanks."""
    slug = EmbeddingIdentity("openai", "BAAI/bge-m3:latest (v 2)", 1024, "0" * 16).slug
    assert slug == "openai_BAAI-bge-m3-latest-v-2_1024_0000000000000000"


def _with_passages(monkeypatch: pytest.MonkeyPatch, fails: object) -> LocalEmbedder:
    """A local embedder whose process fails for some texts."""

    def embed(kind: str, texts: list[str], timeout: float, *, patient: bool) -> object:
        if any(fails(text) for text in texts):
            raise EmbeddingFailed("crash")
        return np.ones((len(texts), 384), dtype=np.float32)

    path = find_model()
    assert path is not None
    embedder = LocalEmbedder(path, EmbeddingConfig(batch_size=8))
    monkeypatch.setattr(embedder._batches, "embed", embed)
    return embedder

"""An OpenAI-compatible provider: retries, checks, and a key that never shows."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from gateway.errors import BadSettings, EmbeddingFailed
from gateway.index.embed import EmbeddingConfig
from gateway.index.embed_openai import MAX_ATTEMPTS, OpenAIEmbedder

KEY = "sk-very-secret"
Respond = Callable[[list[str]], httpx.Response]


class Server:
    """Answers requests with `respond`; keeps what was asked and waited."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.batches: list[list[str]] = []
        self.waits: list[float] = []
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Handle one request."""
        self.requests.append(request)
        self.batches.append(json.loads(request.content)["input"])
        return self.respond(self.batches[-1])

    def open(self, **values: object) -> OpenAIEmbedder:
        """An embedder that talks to this server."""
        given = {"base_url": "http://embed.test/v1/", "model": "m", "api_key": KEY, "dimension": 3, "batch_size": 2}
        config = EmbeddingConfig(provider="openai", **(given | values))
        return OpenAIEmbedder(config, transport=httpx.MockTransport(self), pause=self.waits.append)


def vectors(texts: list[str], dimension: int = 3) -> httpx.Response:
    """A good answer, in reverse order: `index` decides."""
    data = [
        {"index": place, "embedding": [float(len(text))] + [1.0] * (dimension - 1)} for place, text in enumerate(texts)
    ]
    return httpx.Response(200, json={"data": data[::-1]})


def test_batches_are_sent_with_the_key_and_ordered_by_index() -> None:
    """Unit vectors in the order of the texts."""
    server = Server(vectors)
    results = server.open().embed_passages(["a", "bb", "ccc"])
    assert server.batches == [["a", "bb"], ["ccc"]]
    assert str(server.requests[0].url) == "http://embed.test/v1/embeddings"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    ratios = [round(float(vector[0] / vector[1])) for vector in results if vector is not None]
    assert ratios == [1, 2, 3]


def test_the_dimension_is_asked_for_once_when_it_is_not_configured() -> None:
    """And not at all when it is, so that a start does not need the provider."""
    server = Server(lambda texts: vectors(texts, 5))
    assert server.open(dimension=None).identity.dimension == 5
    assert len(server.batches) == 1
    assert Server(lambda texts: httpx.Response(503)).open(dimension=7).identity.dimension == 7


def test_an_unknown_dimension_of_a_provider_that_is_down_says_what_to_set() -> None:
    """The advice names the setting."""
    with pytest.raises(EmbeddingFailed) as caught:
        Server(lambda texts: httpx.Response(503)).open(dimension=None)
    assert "embedding.dimension" in str(caught.value)


def test_shorter_vectors_are_padded_and_longer_ones_refused() -> None:
    """A shorter vector keeps its meaning; a longer one would lose some."""
    (padded,) = Server(lambda texts: vectors(texts, 2)).open().embed_passages(["a"])
    assert padded is not None
    assert padded[2] == 0.0
    with pytest.raises(EmbeddingFailed):
        Server(lambda texts: vectors(texts, 4)).open().embed_passages(["a"])


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_trouble_is_tried_again_with_growing_waits(status: int) -> None:
    """And ends after a bounded number of tries."""
    server = Server(lambda texts: httpx.Response(status))
    with pytest.raises(EmbeddingFailed) as caught:
        server.open().embed_passages(["a"])
    assert len(server.batches) == MAX_ATTEMPTS
    assert server.waits == [0.5, 1.0, 2.0]
    assert KEY not in str(caught.value) + repr(caught.value.__dict__)


def test_the_provider_may_say_how_long_to_wait() -> None:
    """Retry-After, within reason."""
    answers = iter(
        [httpx.Response(429, headers={"retry-after": "3"}), httpx.Response(429, headers={"retry-after": "9999"})]
    )
    server = Server(lambda texts: next(answers, None) or vectors(texts))
    assert server.open().embed_passages(["a"])[0] is not None
    assert server.waits == [3.0, 20.0]


def test_a_time_out_is_tried_again_but_not_for_a_question() -> None:
    """Somebody waits for a question."""

    def time_out(texts: list[str]) -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    server = Server(time_out)
    embedder = server.open()
    with pytest.raises(EmbeddingFailed):
        embedder.embed_query("q", timeout=0.1)
    assert len(server.batches) == 1
    with pytest.raises(EmbeddingFailed):
        embedder.embed_passages(["a"])
    assert len(server.batches) == 1 + MAX_ATTEMPTS


def test_a_text_the_server_refuses_is_lost_alone() -> None:
    """400 for one of them."""
    server = Server(lambda texts: httpx.Response(400) if "bad" in texts else vectors(texts))
    results = server.open(batch_size=4).embed_passages(["a", "bad", "c"])
    assert [vector is not None for vector in results] == [True, False, True]


def test_a_refusal_of_everything_is_not_blamed_on_the_texts() -> None:
    """A wrong model name is 400 at some servers."""
    with pytest.raises(EmbeddingFailed):
        Server(lambda texts: httpx.Response(400)).open().embed_passages(["a"])


def test_a_wrong_key_fails_at_once_and_is_not_shown() -> None:
    """401 is not tried again."""
    server = Server(lambda texts: httpx.Response(401, text=f"bad key {KEY}"))
    with pytest.raises(EmbeddingFailed) as caught:
        server.open().embed_passages(["a"])
    assert len(server.batches) == 1
    assert KEY not in str(caught.value)
    assert KEY not in repr(EmbeddingConfig(provider="openai", api_key=KEY))


@pytest.mark.parametrize(
    "answer",
    [
        "not json",
        "[]",
        '{"data": null}',
        '{"data": []}',
        '{"data": [{"index": 1, "embedding": [1, 2, 3]}]}',
        '{"data": [{"index": 0, "embedding": [1, 2, NaN]}]}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": "AAAA"}]}',
        '{"data": [{"index": 0, "embedding": [1, 2, 3]}, {"index": 1, "embedding": [1, 2, 3]}]}',
    ],
)
def test_an_answer_that_is_not_one_finite_vector_a_text_is_an_error(answer: str) -> None:
    """Count, order and numbers are checked."""
    with pytest.raises(EmbeddingFailed):
        Server(lambda texts: httpx.Response(200, text=answer)).open().embed_passages(["a"])


def test_an_all_zero_vector_is_no_vector() -> None:
    """It has no direction to compare."""
    zero = {"data": [{"index": 0, "embedding": [0.0, 0.0, 0.0]}]}
    assert Server(lambda texts: httpx.Response(200, json=zero)).open().embed_passages(["a"]) == [None]


def test_address_and_model_are_part_of_the_identity() -> None:
    """The same name elsewhere may be another model."""
    one, other = Server(vectors).open(), Server(vectors).open(base_url="http://other.test/v1")
    assert one.identity != other.identity
    assert one.identity == Server(vectors).open(base_url="http://embed.test/v1").identity


def test_settings_without_address_or_model_are_refused() -> None:
    """Before anything is sent."""
    for missing in ({"base_url": None}, {"model": None}):
        with pytest.raises(BadSettings):
            Server(vectors).open(**missing)


def test_a_question_gets_a_unit_vector() -> None:
    """As passages do."""
    assert np.isclose(np.linalg.norm(Server(vectors).open().embed_query("q")), 1.0)

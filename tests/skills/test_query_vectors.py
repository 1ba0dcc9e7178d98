"""Deadlines that follow a provider's pace, and the circuit breaker in front of it."""

import numpy as np
import pytest

from gateway.errors import EmbeddingBusy, EmbeddingFailed
from gateway.index.embed import MAX_QUERY_CHARACTERS, EmbeddingIdentity
from gateway.skills.query_vectors import (
    CEILING_SECONDS,
    FAILURES_TO_OPEN,
    FLOOR_SECONDS,
    OPEN_SECONDS,
    QueryVectors,
)


class Provider:
    """A provider whose pace and health a test sets; its time passes on the test's clock."""

    def __init__(self, name: str = "a") -> None:
        self.identity = EmbeddingIdentity("fake", name, 3, "1")
        self.now = 0.0
        self.takes = 0.05
        self.fails: type[BaseException] | None = None
        self.asked: list[tuple[str, float]] = []

    def embed_query(self, query: str, *, timeout: float):
        self.asked.append((query, timeout))
        if self.fails is not None:
            raise self.fails("no")
        if self.takes > timeout:
            self.now += timeout
            raise EmbeddingFailed("too late")
        self.now += self.takes
        return np.array([1.0, 0.0, 0.0], dtype=np.float32)


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def vectors(provider):
    return QueryVectors(monotonic=lambda: provider.now)


def ask(vectors, provider, number: int):
    return vectors.of(f"query {number}", provider)


def test_a_vector_is_asked_for_once(vectors, provider):
    for _ in range(3):
        found, degraded = ask(vectors, provider, 0)
        assert found is not None
        assert degraded == []
    assert len(provider.asked) == 1


def test_only_the_first_two_thousand_code_points_are_sent(vectors, provider):
    vectors.of("x" * 5_000, provider)
    assert len(provider.asked[0][0]) == MAX_QUERY_CHARACTERS == 2_000


def test_the_deadline_follows_the_pace_between_floor_and_ceiling(vectors, provider):
    assert vectors.deadline(provider) == CEILING_SECONDS, "of an unknown provider nothing is expected"
    for number in range(20):
        ask(vectors, provider, number)
    assert vectors.deadline(provider) == FLOOR_SECONDS
    provider.takes = 0.5
    for number in range(20, 40):
        ask(vectors, provider, number)
    assert FLOOR_SECONDS < vectors.deadline(provider) < CEILING_SECONDS
    provider.takes = 1.9
    for number in range(40, 60):
        ask(vectors, provider, number)
    assert vectors.deadline(provider) == CEILING_SECONDS


def test_one_miss_widens_the_next_deadline_and_a_success_brings_it_back(vectors, provider):
    for number in range(10):
        ask(vectors, provider, number)
    provider.takes = 1.0
    assert ask(vectors, provider, 10) == (None, ["embedding_timeout"])
    assert provider.asked[-1][1] == FLOOR_SECONDS
    assert ask(vectors, provider, 11)[0] is not None
    assert provider.asked[-1][1] == CEILING_SECONDS
    assert vectors.deadline(provider) < CEILING_SECONDS


def open_circuit(vectors, provider) -> None:
    provider.fails = EmbeddingFailed
    for number in range(FAILURES_TO_OPEN):
        assert ask(vectors, provider, number) == (None, ["embedding_timeout"])


def test_a_failing_provider_is_left_alone_and_tried_by_one_probe(vectors, provider):
    open_circuit(vectors, provider)
    asked = len(provider.asked)
    assert ask(vectors, provider, 10) == (None, ["embedding_resting"])
    assert len(provider.asked) == asked, "nothing waits while the circuit is open"
    provider.now += OPEN_SECONDS + 1
    assert ask(vectors, provider, 11) == (None, ["embedding_timeout"])
    assert ask(vectors, provider, 12) == (None, ["embedding_resting"]), "the probe failed"
    provider.now += OPEN_SECONDS + 1
    provider.fails = None
    assert ask(vectors, provider, 13)[0] is not None
    assert ask(vectors, provider, 14)[0] is not None


def test_only_one_probe_is_under_way(vectors, provider):
    open_circuit(vectors, provider)
    provider.now += OPEN_SECONDS + 1
    provider.fails = None
    seen = []

    class Probe(Provider):
        def embed_query(self, query, *, timeout):
            seen.append(vectors.of("another meanwhile", provider))
            return provider.embed_query(query, timeout=timeout)

    assert vectors.of("probe", Probe())[0] is not None
    assert seen == [(None, ["embedding_resting"])]


def test_failures_far_apart_do_not_open_it(vectors, provider):
    for number in range(10):
        provider.fails = EmbeddingFailed
        assert ask(vectors, provider, number) == (None, ["embedding_timeout"])
        provider.now += 61


@pytest.mark.parametrize("local", [EmbeddingBusy, KeyboardInterrupt])
def test_what_is_local_is_no_failure_of_the_provider(vectors, provider, local):
    for number in range(10):
        provider.fails = local
        if local is EmbeddingBusy:
            assert ask(vectors, provider, number) == (None, ["embedding_busy"])
        else:
            with pytest.raises(local):
                ask(vectors, provider, number)
    provider.fails = None
    assert ask(vectors, provider, 99)[0] is not None


def test_each_provider_and_model_has_its_own_circuit_and_a_change_resets_all(vectors, provider):
    open_circuit(vectors, provider)
    other = Provider("b")
    assert ask(vectors, other, 50)[0] is not None
    assert ask(vectors, provider, 51) == (None, ["embedding_resting"])
    vectors.reset()
    provider.fails = None
    assert ask(vectors, provider, 52)[0] is not None

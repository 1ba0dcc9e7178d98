"""The filter: what it lets through, and that no value can break out of its quotes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.index.schema import IndexedNote
from gateway.index.scope import Grant, Scope, one_of, quoted
from gateway.index.search import SearchRequest, search
from gateway.index.store import Index

MakeNote = Callable[..., IndexedNote]
NAMESPACE = "user/tom/long_term"
NOTES: tuple[tuple[str, dict[str, object]], ...] = (
    ("plain", {}),
    ("other-namespace", {"namespace": "user/eve/long_term"}),
    ("archived", {"status": "archived"}),
    ("profile", {"memory_type": "profile"}),
    ("tagged", {"tags": ("memory/preference", "it's")}),
    ("tagged-both", {"tags": ("memory/preference", "it's", "source/manual")}),
    ("of-agent", {"agent_id": "nova", "visibility": "agent-only", "user_id": "tom"}),
    ("shared", {"workspace_id": "lab", "visibility": "workspace-shared"}),
    ("old", {"created_at": 100, "updated_at": 200}),
    ("expired", {"expires_at": 1_000}),
    ("doubtful", {"confidence": 0.4}),
    ("of-session", {"session_id": "s1", "source": "chat"}),
)
DEFAULTS: dict[str, object] = {"created_at": 5_000, "updated_at": 5_000, "confidence": 0.8}
ACTIVE = {name for name, _ in NOTES} - {"other-namespace", "archived"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, note: MakeNote) -> Index:
    """One note of each kind, all with the same text, half of them tidied into the indices."""
    index = Index.open(str(tmp_path_factory.mktemp("scope")), None)
    notes = [note(name, "needle in hay", **(DEFAULTS | values)) for name, values in NOTES]
    index.upsert(notes[::2])
    index.optimise(force=True)
    index.upsert(notes[1::2])
    return index


def found(index: Index, scope: Scope, now_ms: int | None = None) -> set[str]:
    """Ids of what a search for the common text finds."""
    result = search(index, SearchRequest("needle", scope, limit=50, mode="fts", now_ms=now_ms))
    return {hit.note_id for hit in result.hits}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope((NAMESPACE,)), ACTIVE),
        (Scope(()), set()),
        (Scope((NAMESPACE, "user/eve/long_term")), ACTIVE | {"other-namespace"}),
        (Scope((NAMESPACE,), statuses=("archived",)), {"archived"}),
        (Scope((NAMESPACE,), statuses=()), set()),
        (Scope((NAMESPACE,), memory_types=("profile", "fact")), {"profile"}),
        (Scope((NAMESPACE,), tags_any=("it's", "none")), {"tagged", "tagged-both"}),
        (Scope((NAMESPACE,), tags_all=("it's", "source/manual")), {"tagged-both"}),
        (Scope((NAMESPACE,), grants=(Grant("agent-only", "tom", "nova"),)), {"of-agent"}),
        (
            Scope(
                (NAMESPACE,),
                grants=(Grant("agent-only", "tom", "nova"), Grant("workspace-shared", workspace_id="lab")),
            ),
            {"of-agent", "shared"},
        ),
        (Scope((NAMESPACE,), grants=(Grant("agent-only", "tom", "other"),)), set()),
        (Scope((NAMESPACE,), agent_id="nova"), {"of-agent"}),
        (Scope((NAMESPACE,), workspace_id="lab", visibilities=("workspace-shared",)), {"shared"}),
        (Scope((NAMESPACE,), session_id="s1", source="chat"), {"of-session"}),
        (Scope((NAMESPACE,), created_until=101), {"old"}),
        (Scope((NAMESPACE,), created_until=100), set()),
        (Scope((NAMESPACE,), updated_from=200, updated_until=201), {"old"}),
        (Scope((NAMESPACE,), min_confidence=0.8), ACTIVE - {"doubtful"}),
        (Scope((NAMESPACE,), not_expired_at=1_000), ACTIVE - {"expired"}),
        (Scope((NAMESPACE,), not_expired_at=999), ACTIVE),
    ],
)
def test_a_scope_lets_through_exactly_what_it_names(filled: Index, scope: Scope, expected: set[str]) -> None:
    """Rows inside and outside the indices alike."""
    assert found(filled, scope) == expected


def test_the_moment_of_a_search_leaves_out_what_has_expired(filled: Index) -> None:
    """The same as `not_expired_at`, given by the request."""
    assert found(filled, Scope((NAMESPACE,)), now_ms=1_000) == ACTIVE - {"expired"}


HOSTILE = st.text(alphabet=st.sampled_from("'\"\\;-%_ab系é😀\n\t/*()"), max_size=12) | st.text(max_size=12)


@given(value=HOSTILE)
@settings(max_examples=60, deadline=None)
def test_no_value_breaks_out_of_its_quotes(filled: Index, value: str) -> None:
    """A value that names nothing finds nothing, whatever characters it is made of."""
    known = {NAMESPACE, "user/eve/long_term"}
    storable = value.encode("utf-8", "replace").decode("utf-8")
    assert found(filled, Scope((storable,))) == set() or storable in known
    assert found(filled, Scope((NAMESPACE,), tags_any=(storable,))) <= {"tagged", "tagged-both"}
    assert found(filled, Scope((NAMESPACE,), grants=(Grant(agent_id=storable),))) <= ACTIVE


@pytest.mark.parametrize(
    "value", ["it's", "a\\b", "a\\", "''", '"x"', "系統", "😀", "a' OR 'a'='a", "line\nbreak", "%_", ""]
)
def test_a_stored_value_is_found_again_by_exactly_itself(tmp_path: Path, note: MakeNote, value: str) -> None:
    """Round trip through LanceDB's parser, indexed and not."""
    index = Index.open(str(tmp_path), None)
    index.upsert([note("x", "needle", namespace=value, tags=(value,)), note("y", "needle", namespace=value + "y")])
    scope = Scope((value,), tags_any=(value,), tags_all=(value,))
    assert found(index, scope) == {"x"}
    index.optimise(force=True)
    assert found(index, scope) == {"x"}


def test_many_values_are_one_condition_without_repeats() -> None:
    """The order given is kept."""
    assert one_of("a", ["x", "y", "x"]) == "a IN ('x', 'y')"
    assert quoted("o'clock") == "'o''clock'"

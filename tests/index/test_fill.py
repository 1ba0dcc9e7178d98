"""Vectors in the background: once a text, never for a row that is gone, and no text is tried for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.index.fill import MAX_ATTEMPTS
from gateway.index.schema import IndexedNote
from gateway.index.scope import Scope
from gateway.index.search import SearchRequest, search
from gateway.index.store import Index

MakeNote = Callable[..., IndexedNote]


def nearest(index: Index, embedder: Any, query: str) -> list[str]:
    """Ids found by meaning."""
    request = SearchRequest(
        query, Scope(("user/tom/long_term",)), mode="vector", query_vector=embedder.embed_query(query)
    )
    return [hit.note_id for hit in search(index, request).hits]


def test_pending_chunks_get_their_vectors_and_complete_notes_are_reported(
    index: Index, note: MakeNote, embedder: Any
) -> None:
    """A note is complete when its last chunk is."""
    index.upsert([note("a", "teapot"), note("b", "# One\n\nspoon\n\n# Two\n\nkettle")])
    first = index.fill_vectors(embedder, limit=2)
    assert (first.embedded, first.completed) == (2, (("a", "etag-a"),))
    assert index.fill_vectors(embedder).completed == (("b", "etag-b"),)
    assert (index.missing_vectors(10), index.pending_vectors()) == ([], 0)
    assert nearest(index, embedder, "teapot")[0] == "a"


def test_keywords_still_find_a_chunk_after_its_vector_arrived(index: Index, note: MakeNote, embedder: Any) -> None:
    """Updating two columns must not cost the row its place in the full-text index."""
    index.upsert([note("a", "teapot")])
    index.optimise(force=True)
    index.fill_vectors(embedder)
    scope = Scope(("user/tom/long_term",))
    for _ in range(2):
        hits = search(index, SearchRequest("teapot", scope, mode="fts")).hits
        assert [hit.note_id for hit in hits] == ["a"]
        assert nearest(index, embedder, "teapot") == ["a"]
        index.optimise(force=True)


def test_the_same_text_is_embedded_once_for_ever(tmp_path: Path, note: MakeNote, embedder: Any) -> None:
    """Across notes, other properties, restarts."""
    index = Index.open(str(tmp_path), embedder.identity)
    index.upsert([note("a", "teapot"), note("b", "teapot")])
    assert index.fill_vectors(embedder).embedded == 1
    assert index.upsert([note("a", "teapot", status="archived", etag="new")])[0].complete
    again = Index.open(str(tmp_path), embedder.identity)
    assert again.upsert([note("c", "teapot")])[0].complete
    assert len(embedder.embedded) == 1
    assert again.pending_vectors() == 0


def test_a_note_deleted_or_replaced_while_it_is_embedded_does_not_come_back(
    index: Index, note: MakeNote, embedder: Any
) -> None:
    """The vector is kept for the text, the row is gone."""
    index.upsert([note("gone", "teapot"), note("changed", "spoon"), note("stays", "kettle")])

    def meanwhile() -> None:
        embedder.before_answer = lambda: None
        index.delete(["gone"])
        index.upsert([note("changed", "fork", etag="new")])

    embedder.before_answer = meanwhile
    assert index.fill_vectors(embedder).completed == (("stays", "etag-stays"),)
    assert index.note_etags() == {"changed": "new", "stays": "etag-stays"}
    assert index.table.count() == 2
    assert [text for _, text in index.missing_vectors(10)] == ["fork"]


def test_a_poison_text_loses_only_itself_and_is_given_up(index: Index, note: MakeNote, embedder: Any) -> None:
    """It stays findable by keyword and is reported."""
    embedder.poison = "bad"
    index.upsert([note("bad", "bad text"), note("good", "good text")])
    reports = [index.fill_vectors(embedder) for _ in range(MAX_ATTEMPTS + 1)]
    assert reports[0].completed == (("good", "etag-good"),)
    assert len(reports[-1].given_up) == 1
    assert (index.missing_vectors(10), index.pending_vectors()) == ([], 1)
    assert sum("bad" in text for text in embedder.embedded) == MAX_ATTEMPTS


def test_a_provider_that_is_down_ends_the_round_and_blames_no_text(index: Index, note: MakeNote, embedder: Any) -> None:
    """What was embedded before is kept."""
    index.upsert([note(str(number), f"teapot {number}") for number in range(4)])

    def go_down() -> None:
        embedder.down = True

    embedder.before_answer = go_down
    report = index.fill_vectors(embedder, batch=2)
    assert (report.embedded, report.error is not None, report.given_up) == (2, True, ())
    embedder.down, embedder.before_answer = False, lambda: None
    assert index.fill_vectors(embedder).embedded == 2


def test_vectors_of_another_model_are_refused(keyword_index: Index, index: Index, embedder: Any) -> None:
    """Two identities are never mixed."""
    assert keyword_index.fill_vectors(embedder).embedded == 0
    embedder.identity = embedder.identity.__class__("fake", "other", 16, "1" * 16)
    assert index.fill_vectors(embedder).error is not None


def test_title_summary_and_headings_are_embedded_and_searched_with_the_text(
    index: Index, note: MakeNote, embedder: Any
) -> None:
    """A passage means little without its context."""
    index.upsert([note("a", "# Kitchen\n\nblue", title="Teapot", summary="What we own")])
    assert index.missing_vectors(1)[0][1] == "Teapot\nWhat we own\nKitchen\nblue"
    for query in ("teapot", "kitchen", "own"):
        assert len(search(index, SearchRequest(query, Scope(("user/tom/long_term",)), mode="fts")).hits) == 1

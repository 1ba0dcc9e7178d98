"""Writing, deleting, tidying and rebuilding the index on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.index.schema import IndexedNote
from gateway.index.scope import Scope
from gateway.index.search import SearchRequest, search
from gateway.index.store import TORN_ETAG, Index, NamespaceCount, OptimisePolicy

MakeNote = Callable[..., IndexedNote]
SCOPE = Scope(("user/tom/long_term",))


def found(index: Index, query: str, limit: int = 10) -> list[str]:
    """Ids found by keyword."""
    return [hit.note_id for hit in search(index, SearchRequest(query, SCOPE, limit=limit, mode="fts")).hits]


def rows(index: Index) -> int:
    """Chunks stored."""
    return index.table.count()


def test_a_note_is_found_at_once_in_an_index_that_was_made_empty(keyword_index: Index, note: MakeNote) -> None:
    """The full-text index of an empty table serves later rows without tidying."""
    assert keyword_index.created
    keyword_index.upsert([note("a", "the blue teapot"), note("b", "a red kettle")])
    assert found(keyword_index, "teapots") == ["a"]


def test_an_upsert_replaces_all_chunks_of_a_note(keyword_index: Index, note: MakeNote) -> None:
    """Old text is no longer found, old chunks do not pile up."""
    keyword_index.upsert([note("a", "# One\n\nteapot\n\n# Two\n\nkettle"), note("b", "other")])
    states = keyword_index.upsert([note("a", "spoon", etag="new")])
    assert [(state.etag, state.chunks, state.with_vectors) for state in states] == [("new", 1, 0)]
    assert (found(keyword_index, "teapot"), found(keyword_index, "spoon"), rows(keyword_index)) == ([], ["a"], 2)
    assert keyword_index.note_etags() == {"a": "new", "b": "etag-b"}


def test_a_known_note_is_replaced_after_a_restart_too(tmp_path: Path, note: MakeNote) -> None:
    """What is known is read from the table, not remembered."""
    Index.open(str(tmp_path), None).upsert([note("a", "teapot")])
    again = Index.open(str(tmp_path), None)
    again.upsert([note("a", "spoon")])
    assert (again.created, rows(again)) == (False, 1)


def test_the_later_of_two_notes_with_one_id_wins(keyword_index: Index, note: MakeNote) -> None:
    """Within one batch."""
    keyword_index.upsert([note("a", "teapot"), note("a", "spoon")])
    assert (found(keyword_index, "spoon"), rows(keyword_index)) == (["a"], 1)


def test_an_upsert_of_new_notes_is_one_version_and_of_known_ones_two(keyword_index: Index, note: MakeNote) -> None:
    """Versions are what tidying and disk pay for."""
    before = keyword_index.table._table.version
    keyword_index.upsert([note(str(number), "text") for number in range(50)])
    assert keyword_index.table._table.version == before + 1
    keyword_index.upsert([note(str(number), "other") for number in range(50)])
    assert keyword_index.table._table.version == before + 3


def test_an_empty_note_without_title_leaves_no_rows(keyword_index: Index, note: MakeNote) -> None:
    """And its earlier text is gone."""
    keyword_index.upsert([note("a", "teapot")])
    assert keyword_index.upsert([note("a", "")])[0].chunks == 0
    assert (rows(keyword_index), keyword_index.note_etags()) == (0, {})


def test_deleted_notes_vanish_and_unknown_ids_are_fine(keyword_index: Index, note: MakeNote) -> None:
    """More ids than one statement takes."""
    keyword_index.upsert([note(str(number), "teapot") for number in range(1_200)])
    keyword_index.delete([*(str(number) for number in range(1, 1_200)), "unknown", "it's"])
    assert (found(keyword_index, "teapot"), list(keyword_index.note_etags())) == (["0"], ["0"])


def test_a_note_torn_by_a_crash_asks_to_be_written_again(
    keyword_index: Index, note: MakeNote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows added, old ones not yet deleted: no etag fits, and the next write mends it."""
    keyword_index.upsert([note("a", "teapot")])

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(keyword_index.table, "delete", crash)
        with pytest.raises(KeyboardInterrupt):
            keyword_index.upsert([note("a", "spoon", etag="new")])
    assert keyword_index.note_etags() == {"a": TORN_ETAG}
    keyword_index.upsert([note("a", "spoon", etag="new")])
    assert (keyword_index.note_etags(), found(keyword_index, "teapot")) == ({"a": "new"}, [])


def test_counts_are_by_namespace_and_tell_who_has_all_vectors(index: Index, note: MakeNote, embedder: Any) -> None:
    """A note with one chunk pending is not complete."""
    index.upsert([note("a", "teapot"), note("b", "spoon", namespace="global")])
    index.fill_vectors(embedder)
    index.upsert([note("c", "# One\n\nteapot\n\n# Two\n\nkettle")])
    assert index.counts() == [NamespaceCount("global", 1, 1, 1), NamespaceCount("user/tom/long_term", 2, 3, 1)]
    assert index.counts(["global"]) == [NamespaceCount("global", 1, 1, 1)]
    assert index.counts([]) == []


def test_disk_stays_bounded_under_single_writes(tmp_path: Path, note: MakeNote, embedder: Any) -> None:
    """Five hundred saves of ten notes, tidied whenever the policy asks for it."""
    index = Index.open(str(tmp_path / "index"), embedder.identity)
    policy = OptimisePolicy(max_writes=40, keep_versions_seconds=0.001)
    sizes: list[int] = []
    for number in range(500):
        index.upsert([note(str(number % 10), f"teapot number {number}", etag=str(number))])
        if index.needs_optimise(policy):
            assert index.optimise(policy).ran
            sizes.append(sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()))
    assert len(sizes) > 10
    assert max(sizes[-5:]) < 2 * max(sizes[:5])
    assert len(found(index, "teapot", 20)) == 10


def test_tidying_is_skipped_below_the_limits_unless_forced(keyword_index: Index, note: MakeNote) -> None:
    """And afterwards nothing is left unindexed."""
    keyword_index.upsert([note("a", "teapot")])
    assert not keyword_index.optimise().ran
    report = keyword_index.optimise(force=True)
    assert (report.ran, report.unindexed_rows, found(keyword_index, "teapot")) == (True, 0, ["a"])


def test_writers_searchers_and_tidying_at_once_lose_and_double_nothing(keyword_index: Index, note: MakeNote) -> None:
    """Four writers, two readers, one that tidies all the time."""
    errors: list[BaseException] = []
    done = threading.Event()

    def guarded(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def write(writer: int) -> None:
        for number in range(15):
            keyword_index.upsert([note(f"{writer}-{number % 5}", f"teapot {number}", etag=str(number))])

    def read() -> None:
        while not done.is_set():
            found(keyword_index, "teapot")

    def tidy() -> None:
        while not done.is_set():
            keyword_index.optimise(OptimisePolicy(keep_versions_seconds=0.001), force=True)

    background = [guarded(read), guarded(read), guarded(tidy)]
    for thread in [guarded(lambda writer=writer: write(writer)) for writer in range(4)]:
        thread.join()
    done.set()
    for thread in background:
        thread.join()
    assert errors == []
    assert rows(keyword_index) == 20
    assert set(keyword_index.note_etags().values()) == {"10", "11", "12", "13", "14"}


def test_a_rebuild_fills_a_new_generation_without_embedding_while_the_old_one_serves(
    tmp_path: Path, note: MakeNote, embedder: Any
) -> None:
    """The vector cache outlives generations."""
    uri = str(tmp_path)
    old = Index.open(uri, embedder.identity)
    old.upsert([note("a", "teapot")])
    old.fill_vectors(embedder)
    new = Index.open(uri, embedder.identity, generation=1)
    assert new.created
    assert new.upsert([note("a", "teapot")])[0].complete
    assert (found(old, "teapot"), found(new, "teapot")) == (["a"], ["a"])
    assert Index.generations(uri, embedder.identity) == [0, 1]
    assert len(new.drop_others()) == 1
    assert Index.generations(uri, embedder.identity) == [1]
    Index.drop_generation(uri, embedder.identity, 1)
    assert Index.generations(uri, embedder.identity) == []
    assert len(embedder.embedded) == 1


def test_another_format_starts_empty(tmp_path: Path, note: MakeNote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derived data is versioned: a change of the constant forces a rebuild."""
    Index.open(str(tmp_path), None).upsert([note("a", "teapot")])
    monkeypatch.setattr("gateway.index.schema.INDEX_FORMAT", 999)
    assert Index.open(str(tmp_path), None).created


def test_the_index_comes_back_after_its_folder_was_deleted(tmp_path: Path, note: MakeNote) -> None:
    """`rm -rf` of a search copy loses nothing but time."""
    uri = tmp_path / "index"
    Index.open(str(uri), None).upsert([note("a", "teapot")])
    for file in sorted(uri.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    index = Index.open(str(uri), None)
    assert index.created
    index.upsert([note("a", "teapot")])
    assert found(index, "teapot") == ["a"]

"""Searching with a real index: both sources, one hit a note, pages, budgets, degraded answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Invalid, Unavailable
from gateway.index.schema import IndexedNote
from gateway.index.scope import Scope
from gateway.index.search import MAX_CANDIDATES, SearchRequest, SearchResult, search
from gateway.index.store import Index

MakeNote = Callable[..., IndexedNote]
SCOPE = Scope(("user/tom/long_term",))

NOTES = {
    "zh-hant": "系統設定：每天凌晨備份資料庫",
    "zh-hans": "系统没有任何输出，我重启了服务",
    "mixed": "昨晚 GitHub备份脚本上传失败，原因是 token 过期 (zq00017x)",
    "ja": "来週の会議で新しいデータベースを紹介します",
    "ko": "주말에는 부산으로 여행을 갑니다",
    "ru": "Запасные ключи лежат у соседки",
    "de": "Das Café in München öffnet um acht",
    "fr": "La réunion de l'équipe est reportée à jeudi",
    "hi": "हिन्दी की कक्षा सोमवार को है",
    "th": "ฉันชอบกินต้มยำกุ้ง",
    "ar": "موعد الطبيب يوم الثلاثاء",
    "el": "Η πτήση για Αθήνα φεύγει το πρωί",
    "en": "She is running the deployment from src/deploy_tool/main.py at v1.2.3",
}


def ask(index: Index, query: str, embedder: Any = None, **values: Any) -> SearchResult:
    """Search; by both sources where an embedder is given."""
    given: dict[str, Any] = {"scope": SCOPE, "mode": "fts"}
    if embedder is not None:
        given |= {"mode": "hybrid", "query_vector": embedder.embed_query(query)}
    return search(index, SearchRequest(query, **(given | values)))


def ids(result: SearchResult) -> list[str]:
    """Note ids, best first."""
    return [hit.note_id for hit in result.hits]


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory, note: MakeNote) -> Index:
    """One note a language, half of them in the tidied part."""
    index = Index.open(str(tmp_path_factory.mktemp("languages")), None)
    notes = [note(name, text) for name, text in NOTES.items()]
    index.upsert(notes[::2])
    index.optimise(force=True)
    index.upsert(notes[1::2])
    return index


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("系統", "zh-hant"),
        ("系统", "zh-hans"),
        ("输出", "zh-hans"),
        ("GitHub备份脚本上传失败", "mixed"),
        ("github", "mixed"),
        ("zq00017x", "mixed"),
        ("データベース", "ja"),
        ("여행", "ko"),
        ("КЛЮЧИ", "ru"),
        ("cafe munchen", "de"),
        ("équipe", "fr"),
        ("reunion", "fr"),
        ("हिन्दी", "hi"),
        ("ต้มยำกุ้ง", "th"),
        ("الطبيب", "ar"),
        ("αθηνα", "el"),
        ("run deployments", "en"),
        ("main.py", "en"),
        ("deploy_tool", "en"),
        ("v1.2.3", "en"),
        ('"v1.2.3" OR (', "en"),
    ],
)
def test_a_note_is_found_by_keyword_in_its_language(languages: Index, query: str, expected: str) -> None:
    """As the only or the first hit."""
    assert ids(ask(languages, query))[0] == expected


@pytest.mark.parametrize(
    "query", ["", "  ", '"', '"""', "😀", "AND (", "\\", "'; DROP TABLE x; --", "x" * 10_000, "\x00\ud800"]
)
@pytest.mark.parametrize("mode", ["fts", "hybrid", "vector"])
def test_no_query_is_an_error(index: Index, note: MakeNote, embedder: Any, query: str, mode: str) -> None:
    """Operators are text, nothing is a phrase query."""
    index.upsert([note("a", "teapot")])
    index.fill_vectors(embedder)
    ask(index, query, embedder, mode=mode)


def test_a_note_comes_once_with_its_best_chunk_and_heading(index: Index, note: MakeNote, embedder: Any) -> None:
    """Chunks of one note do not crowd out others."""
    body = "\n\n".join(f"# Part {number}\n\nteapot" for number in range(40)) + "\n\n# Best\n\nteapot blue glaze"
    index.upsert([note("long", body), note("short", "blue sky")])
    index.fill_vectors(embedder, limit=100)
    result = ask(index, "teapot blue glaze", embedder)
    assert ids(result) == ["long", "short"]
    best = result.hits[0]
    assert (best.heading, best.text, best.fts_rank, best.vector_rank) == ("Best", "teapot blue glaze", 1, 1)
    assert best.chunk_id.startswith("long#")
    assert best.etag == "etag-long"
    assert 0.0 < result.hits[1].score < best.score <= 1.0


def test_refill_doubles_until_enough_notes_are_there(keyword_index: Index, note: MakeNote) -> None:
    """One long note would otherwise take every place."""
    body = "\n\n".join(f"# Part {number}\n\nteapot" for number in range(300))
    keyword_index.upsert(
        [note("long", body), *(note(f"n{number}", "teapot and more words here") for number in range(8))]
    )
    result = ask(keyword_index, "teapot", limit=5)
    assert len(set(ids(result))) == 5
    assert not result.candidate_budget_exhausted


def test_an_exhausted_budget_is_admitted(keyword_index: Index, note: MakeNote) -> None:
    """More than the budget of chunks in one note."""
    body = "\n\n".join(f"# Part {number}\n\nteapot" for number in range(MAX_CANDIDATES + 50))
    keyword_index.upsert([note("long", body), note("other", "teapot and many other words make this rank last here")])
    result = ask(keyword_index, "teapot", limit=5)
    assert (ids(result), result.candidate_budget_exhausted) == (["long"], True)


def test_pages_follow_each_other_without_gap_or_repeat(index: Index, note: MakeNote, embedder: Any) -> None:
    """Over the same index."""
    index.upsert([note(f"n{number:02}", f"teapot number {number}") for number in range(25)])
    index.fill_vectors(embedder, limit=100)
    pages = [ids(ask(index, "teapot number", embedder, limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert len({note_id for page in pages for note_id in page}) == 25


def test_equal_hits_are_in_the_order_of_their_ids_every_time(index: Index, note: MakeNote, embedder: Any) -> None:
    """Also after tidying moved the rows."""
    names = [f"n{number}" for number in range(9)]
    index.upsert([note(name, "teapot") for name in reversed(names)])
    index.fill_vectors(embedder)
    for _ in range(3):
        assert ids(ask(index, "teapot", embedder)) == names
        index.optimise(force=True)


def test_without_a_vector_keywords_answer_and_say_so(
    index: Index, keyword_index: Index, note: MakeNote, embedder: Any
) -> None:
    """The caller's embedding timed out, or there is no model."""
    for some in (index, keyword_index):
        some.upsert([note("a", "teapot")])
    result = ask(index, "teapot", mode="hybrid")
    assert (ids(result), result.degraded) == (["a"], ("no_query_vector",))
    result = ask(keyword_index, "teapot", embedder)
    assert (ids(result), result.degraded) == (["a"], ("no_embeddings",))
    assert ask(index, "teapot").degraded == ()


def test_a_note_whose_vector_is_pending_is_found_by_keyword_in_hybrid_mode(
    index: Index, note: MakeNote, embedder: Any
) -> None:
    """Searchable at once, among notes that have their vectors."""
    index.upsert([note(f"n{number}", f"kettle {number}") for number in range(5)])
    index.fill_vectors(embedder)
    index.upsert([note("fresh", "blue teapot")])
    assert ids(ask(index, "blue teapot", embedder))[0] == "fresh"


def test_the_filter_comes_before_the_ranking(index: Index, note: MakeNote, embedder: Any) -> None:
    """A hundred better hits of others leave room for one's own."""
    index.upsert([note(f"eve{number}", "teapot", namespace="user/eve/long_term") for number in range(100)])
    index.upsert([note("mine", "teapot among many other words that dilute it")])
    index.fill_vectors(embedder, limit=200)
    for mode in ("fts", "vector", "hybrid"):
        assert ids(ask(index, "teapot", embedder, mode=mode)) == ["mine"]


def test_a_search_out_of_range_is_refused(index: Index, embedder: Any) -> None:
    """Limits, and vectors of another model."""
    for values in ({"limit": 0}, {"offset": -1}):
        with pytest.raises(Invalid):
            ask(index, "teapot", **values)
    with pytest.raises(Invalid):
        ask(index, "teapot", mode="vector", query_vector=embedder.vector("teapot")[:3])


def test_an_index_whose_files_are_gone_is_unavailable(tmp_path: Path, note: MakeNote) -> None:
    """One error of ours, whatever LanceDB raised."""
    index = Index.open(str(tmp_path), None)
    index.upsert([note("a", "teapot")])
    for file in sorted(tmp_path.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    with pytest.raises(Unavailable):
        ask(index, "teapot")

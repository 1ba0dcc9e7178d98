"""Bad input gets a clear error, writes nothing and is never a 500."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROBLEM = "application/problem+json"

BAD_BODIES = [
    {},
    {"content": ""},
    {"content": "   "},
    {"content": "x", "user_id": ""},
    {"content": "x", "user_id": "no-such-user"},
    {"content": "x", "user_id": "../ann"},
    {"content": "x", "user_id": "CON"},
    {"content": "x", "user_id": "a/b"},
    {"content": "x", "user_id": "x" * 65},
    {"content": "x", "user_id": "tom", "importance": 2},
    {"content": "x", "user_id": "tom", "importance": "high"},
    {"content": "x", "user_id": "tom", "visibility": "everyone"},
    {"content": "x", "user_id": "tom", "visibility": "agent-only"},
    {"content": "x", "user_id": "tom", "visibility": "workspace-shared"},
    {"content": "x", "user_id": "tom", "namespace": "user/ann/long_term"},
    {"content": "x", "user_id": "tom", "namespace": "user/tom/profile"},
    {"content": "x", "user_id": "tom", "namespace": "nonsense"},
    {"content": "x", "user_id": "tom", "tags": ["two words"]},
    {"content": "x", "user_id": "tom", "tags": "text"},
    {"content": "x", "user_id": "tom", "summary": "two\nlines"},
    {"content": "x", "user_id": "tom", "expires_at": "tomorrow"},
    {"content": "x", "user_id": "tom", "unknown_field": 1},
    {"content": "a\u0000b", "user_id": "tom"},
    {"content": "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", "user_id": "tom"},
    {"content": "x" * 3_000_000, "user_id": "tom"},
    {"content": "---\nid: mem_x\n", "user_id": "tom", "memory_type": ""},
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_bad_memory_is_refused_and_nothing_is_written(server, body):
    before = sorted(server.vault.rglob("*.md"))
    answer = server.http.post("/v1/memory", json=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == PROBLEM
    problem = answer.json()
    assert problem["type"].startswith("urn:memory-gateway:problem:")
    assert problem["detail"]
    assert sorted(server.vault.rglob("*.md")) == before
    assert server.http.get("/v1/memory?status=any").json()["total"] == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"\xff\xfe",
        b'{"content": "\\ud800", "user_id": "tom"}',
        b'{"a":' * 5000,
    ],
    ids=range(9),
)
def test_a_body_that_is_no_json_object_is_a_clear_400(server, raw):
    answer = server.http.post("/v1/memory", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == PROBLEM


def test_a_body_over_the_limit_is_413(server):
    answer = server.http.post("/v1/memory", content=b'{"content": "' + b"x" * 5_000_000 + b'"}')
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "'",
        '"unclosed phrase',
        "AND OR NOT",
        "+ - * / ( ) [ ] { } ^ ~ ? : \\",
        "🙂",
        "。，！",
        "a" * 10_000,
        "\\",
        "%_",
    ],
    ids=range(11),
)
def test_odd_queries_get_an_answer(server, query):
    server.write("Something to find.", user_id="tom")
    for mode in ("hybrid", "fts", "vector"):
        answer = server.http.post("/v1/memory/search", json={"user_id": "tom", "query": query, "mode": mode})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "body",
    [
        {"query": ""},
        {"query": " \n "},
        {"query": "x" * 30_000},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 10_000},
        {"query": "x", "limit": "many"},
        {"query": "x", "mode": "magic"},
        {"query": "x", "namespaces": []},
        {"query": "x", "namespaces": ["user//long_term"]},
        {"query": "x", "user_id": "nobody"},
        {"query": None},
    ],
    ids=range(11),
)
def test_bad_searches_are_refused(server, body):
    answer = server.http.post("/v1/memory/search", json=body)
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"] == PROBLEM


def test_a_phrase_in_quotes_is_just_words(server):
    server.write('He said "open sesame" twice.', user_id="tom")
    assert server.find('"open sesame"', user_id="tom") == ['He said "open sesame" twice.']


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(min_size=1, max_size=200))
def test_no_query_at_all_makes_a_500(server, query):
    answer = server.http.post("/v1/memory/search", content=json.dumps({"user_id": "tom", "query": query}))
    assert answer.status_code in (200, 400)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(min_size=1, max_size=400), summary=st.none() | st.text(max_size=60))
def test_any_text_is_kept_as_it_is_or_refused_clearly(server, content, summary):
    body = {"user_id": "tom", "content": content} | ({"summary": summary} if summary else {})
    answer = server.http.post("/v1/memory", content=json.dumps(body))
    assert answer.status_code in (200, 201, 400, 409, 422), answer.text
    if answer.status_code == 201:
        kept = server.http.get(f"/v1/memory/{answer.json()['id']}").json()["content"]
        assert kept == content.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


@pytest.mark.parametrize("wait", ["soon", "-1", "1e9", ""])
def test_a_wrong_wait_is_a_clear_400(server, wait):
    answer = server.http.post(f"/v1/memory?wait={wait}", json={"user_id": "tom", "content": "x"})
    assert answer.status_code == 400


@pytest.mark.parametrize("if_match", ["", "abc", '"unclosed'])
def test_a_wrong_if_match_is_a_clear_400(server, if_match):
    body = server.write("x", user_id="tom")
    answer = server.http.patch(f"/v1/memory/{body['id']}", json={"summary": "y"}, headers={"If-Match": if_match})
    assert answer.status_code in (400, 428)

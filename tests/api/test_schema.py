"""The OpenAPI document holds against a real server: generated requests, good and bad, on every route.

By day a few examples a route; with `MEMORY_GATEWAY_NIGHTLY=1` many.
"""

from __future__ import annotations

import re
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.specs.openapi import checks

from tests.nightly import NIGHTLY
from tests.servers import call, must, people, served

# What a schema cannot say may still be refused with 400: reserved ids, a namespace that contradicts the ids, an end in
# the past. That nothing but 400 comes of it is checked all the same.
BEYOND_SCHEMAS = [checks.positive_data_acceptance]
API_GUIDE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
EXAMPLES = 400 if NIGHTLY else 15


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory, template):
    data = tmp_path_factory.mktemp("schema") / "data"
    policy = {"requests_per_minute": 10_000_000, "request_burst": 10_000_000}
    with served(data, template, policy=policy) as server:
        people(server)
        yield server


# An answer that never ends cannot be validated as a whole; tests/upkeep/test_events.py reads it as it comes.
ENDLESS = {"GET /v1/events"}
ROUTES = [
    route
    for route in re.findall(
        r"^### ((?:GET|POST|PUT|PATCH|DELETE) /(?:v1|api)/\S+)$", API_GUIDE.read_text("utf-8"), re.MULTILINE
    )
    if route not in ENDLESS
]


@pytest.fixture(scope="module")
def api(fuzzed):
    """The document as the server gives it; `tests/test_docs.py` sees to it that the guide has the same routes."""
    return schemathesis.openapi.from_url(f"{fuzzed.url}/schema/openapi.json")


@pytest.mark.parametrize("route", ROUTES)
def test_every_answer_is_documented(fuzzed, api, route):
    """No 5xx, no status, header, media type or body that the document does not have."""
    method, _, path = route.partition(" ")

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not NIGHTLY,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=api[path][method].as_strategy())
    def check(case):
        headers = {"Authorization": f"Bearer {fuzzed.key}"}
        case.call_and_validate(headers=headers, timeout=30, excluded_checks=BEYOND_SCHEMAS)

    check()


ODD = ["%00", "a%00b", "%ff", "%2e%2e", "a%2Fb", "x" * 5_000, "%F0%9F%98%80", "%ED%A0%80", "-", "%20", "%0a", "CON"]
PATHS = [
    "/v1/memory/{}",
    "/v1/memory/{}/history",
    "/v1/memory/{}/history/1",
    "/v1/memory/mem_x/history/{}",
    "/v1/memory/{}/diff",
    "/v1/memory/{}/blame",
    "/v1/memory/{}/receipt",
    "/v1/sessions/{}",
    "/v1/sessions/{}/episodes",
    "/v1/users/{}",
    "/v1/users/{}/profile",
    "/v1/agents/{}",
    "/v1/workspaces/{}",
]


@pytest.mark.parametrize("path", PATHS)
def test_odd_ids_in_paths_are_not_found_or_invalid(fuzzed, path):
    for odd in ODD:
        answer = call(fuzzed, "GET", path.format(odd))
        assert answer.status_code in (400, 404), (path, odd, answer.status_code, answer.text)
        assert answer.headers["content-type"].startswith("application/problem+json")


HUGE = ["9" * 30, "-1", "1e400", "NaN", "", "9223372036854775808", "1.5"]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "path",
    [
        "/v1/memory?limit={}",
        "/v1/audit?limit={}",
        "/v1/audit?before={}",
        "/v1/sessions/s/episodes?after={}",
        "/v1/memory/x?user_id={}",
    ],
)
def test_numbers_that_are_none_are_refused(fuzzed, path, number):
    assert call(fuzzed, "GET", path.format(number)).status_code in (400, 404)


def test_huge_numbers_in_bodies_are_refused(fuzzed):
    made = fuzzed.write("a note that has one version only")
    for version in (10**30, -1, 2**63):
        path = f"/v1/memory/{made['id']}"
        answer = call(fuzzed, "PATCH", path, json={"summary": "x", "version": version})
        assert answer.status_code in (400, 409), answer.text
        assert call(fuzzed, "DELETE", path, params={"version": version}).status_code in (400, 409)
    for body in ({"ttl_seconds": 10**30}, {"ttl_seconds": 2**63}, {"expires_at": "9999-12-31T23:59:59Z"}):
        answer = call(fuzzed, "POST", "/v1/sessions", json=body)
        assert answer.status_code == 400, answer.text
    for field in ("limit", "offset"):
        assert call(fuzzed, "POST", "/v1/memory/search", json={"query": "x", field: 10**30}).status_code == 400


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_times_that_utc_does_not_have_are_refused(fuzzed, at):
    for path, body in (
        ("/v1/keys", {"role": "admin"}),
        ("/v1/memory", {"content": "x"}),
        ("/v1/sessions", {}),
    ):
        assert call(fuzzed, "POST", path, json=body | {"expires_at": at}).status_code == 400


def test_the_document_names_both_answers_to_a_write_and_the_503_of_health(fuzzed):
    paths = must(fuzzed, "GET", "/schema/openapi.json")["paths"]
    assert {"200", "201"} <= set(paths["/v1/memory"]["post"]["responses"])
    assert {"200", "503"} <= set(paths["/v1/health"]["get"]["responses"])
    assert "ETag" in paths["/v1/memory/{memory_id}"]["get"]["responses"]["200"]["headers"]


@pytest.mark.parametrize("path", ["/v1/memory", "/v1/health", "/v1/keys/x", "/v1/audit"])
def test_wrong_methods_are_told_which_are_right(fuzzed, path):
    answer = call(fuzzed, "PUT", path)
    assert answer.status_code == 405
    assert answer.headers["allow"]
    assert answer.json()["type"] == "urn:memory-gateway:problem:method-not-allowed"

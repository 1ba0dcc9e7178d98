"""Getting in and out: who may, what the cookie is, and what a form must carry."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import pytest
from litestar.routes import HTTPRoute

from gateway.api.app import create_app
from gateway.api.pages import sessions
from gateway.api.pages.sessions import PageSessions
from gateway.ledger import keys
from tests.servers import call, key_for, must

# Anybody may see these; what each of the others shows to whom is in test_pages.
OPEN = {("GET", "/review/login"), ("POST", "/review/login"), ("GET", "/review/assets/{name}")}
WALKED = {
    ("GET", "/review"),
    ("GET", "/review/drafts/{review_id}"),
    ("POST", "/review/drafts/{review_id}"),
    ("GET", "/review/memories/{memory_id}"),
    ("GET", "/review/memories/{memory_id}/compare"),
    ("GET", "/review/search"),
    ("GET", "/review/health"),
    ("POST", "/review/logout"),
    ("GET", "/review/{rest}"),
}
_COOKIE = "memory_gateway_review"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def test_without_a_login_every_page_leads_to_the_form_and_back(visitor):
    someone = visitor()
    for path in ("", "/drafts/x", "/memories/x", "/memories/x/compare?to=1", "/search?q=tea", "/health", "/no/such"):
        answer = someone.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/review/login")
    assert someone.http.post("/review/drafts/x", data={"decision": "accept"}).headers["location"] == "/review/login"
    page = someone.get("/search?q=tea", follow_redirects=True).text
    assert "admin.key" in page
    assert 'name="next" value="/review/search?q=tea"' in page
    following = someone.try_key(someone.world.keys["tom"], next="/review/search?q=tea")
    assert following.headers["location"] == "/review/search?q=tea"


def test_every_page_that_the_api_document_leaves_out_needs_a_login(visitor, world):
    """The isolation kit walks the document; these routes are not in it, and who sees what is tested here."""
    hidden = {
        (method, route.path_format)
        for route in create_app(world.server.gateway).routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if not handler.resolve_include_in_schema()
        for method in handler.http_methods - {"OPTIONS", "HEAD"}
    }
    pages = {(method, path) for method, path in hidden if path.startswith("/review")}
    assert {path for _, path in hidden - pages if not path.startswith("/schema")} == {"/metrics"}
    assert pages - OPEN == WALKED
    someone = visitor()
    for method, path in WALKED:
        answer = someone.http.request(method, path.format(review_id="x", memory_id="x", rest="x"))
        assert answer.status_code == 303 and answer.headers["location"].startswith("/review/login"), path


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org",
        "//example.org",
        "/v1/keys",
        "/reviewer",
        "/review\\@x",
        "/review/../v1",
        "/review/login",
        "",
    ],
)
def test_the_way_back_leads_nowhere_else(visitor, address):
    location = visitor().try_key(visitor().world.keys["tom"], next=address).headers["location"]
    assert location == "/review" or (location.startswith("/review/") and address == "/review/../v1")


def test_the_cookie_is_for_these_pages_and_this_site_alone(visitor, world):
    answer = visitor().login("tom")
    cookie = answer.headers["set-cookie"]
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/review", "max-age=43200"} <= parts
    assert "secure" not in parts
    value = re.match(rf"{_COOKIE}=([\w-]+);", cookie).group(1)
    assert len(value) >= 43
    assert world.keys["tom"] not in str(answer.headers)
    behind = visitor(**{"X-Forwarded-Proto": "https"}).login("tom").headers["set-cookie"]
    assert "secure" in behind.lower()


def test_the_key_is_on_no_page_and_in_no_address(visitor, world, capfd):
    tom = visitor("tom")
    pages = [tom.get(path) for path in ("", "/health", "/login", "/search?q=tea")]
    pages += [tom.try_key(world.keys["tom"]), tom.try_key(f"{world.keys['tom']}x")]
    for page in pages:
        assert world.keys["tom"] not in page.text + str(page.headers)
    assert world.keys["tom"] not in "".join(capfd.readouterr())


def test_wrong_keys_are_answered_alike(visitor, world, monkeypatch):
    revoked = must(world.server, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
    call(world.server, "DELETE", f"/v1/keys/{revoked['id']}")
    ending = {"role": "user", "user_id": "tom", "expires_at": "2030-01-01T00:00:00Z"}
    expired = must(world.server, "POST", "/v1/keys", json=ending)
    monkeypatch.setattr(keys, "now_ms", lambda: 1_900_000_000_000)
    someone = visitor()
    answers = [someone.try_key(key) for key in ("", "mgk_wrong", "ü" * 50, revoked["key"], expired["key"])]
    assert {one.status_code for one in answers} == {401}
    assert len({one.text for one in answers}) == 1
    assert all("set-cookie" not in one.headers for one in answers)


@pytest.mark.parametrize("name", ["hermes", "reader"])
def test_agents_and_readers_are_told_why_they_may_not(visitor, name):
    someone = visitor()
    answer = someone.login(name)
    assert answer.status_code == 403
    assert "Agents propose; people decide." in answer.text
    assert someone.get().status_code == 303


def test_guessing_is_slowed_down(visitor, world):
    someone = visitor()
    answers = [someone.try_key(f"mgk_{number}") for number in range(30)]
    assert answers[-1].status_code == 429
    assert "Wait a minute" in answers[-1].text
    assert someone.login("tom").status_code == 429  # the right key tells nothing either


def test_every_answer_has_the_strict_headers(visitor, world):
    tom = visitor("tom")
    answers = [tom.get(path) for path in ("", "/health", "/drafts/none", "/no/such", "/assets/review.js", "/assets/no")]
    answers += [visitor().get(), visitor().get("/login"), tom.http.post("/review", data={}), tom.http.put("/review/x")]
    answers.append(tom.http.post("/review/logout", data={}))
    for answer in answers:
        assert answer.headers["content-security-policy"] == _POLICY, answer
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
    other = world.server.http.get("/v1/health")
    assert "content-security-policy" not in other.headers


def test_a_form_without_the_sessions_token_does_nothing(visitor, world):
    draft = world.draft()
    tom, ann = visitor("tom"), visitor("tom")
    path = f"/review/drafts/{draft}"
    sent = tom.form(f"/drafts/{draft}") | {"decision": "accept"}
    for token in ("", "wrong", "ü", ann.form(f"/drafts/{draft}")["csrf"]):
        answer = tom.http.post(path, data=sent | {"csrf": token})
        assert answer.status_code == 403
        assert "does not belong to this login" in answer.text
    assert tom.http.post("/review/logout", data={"csrf": "wrong"}).status_code == 403
    assert tom.http.post(path, json=sent).status_code == 400
    assert world.review(draft)["review"]["status"] == "pending"
    foreign = tom.http.post(path, data=sent, headers={"Origin": "https://example.org"})
    assert foreign.status_code == 403
    assert tom.http.post(path, data=sent, headers={"Origin": "null"}).status_code == 403
    assert tom.http.post(path, data=sent | {"csrf": ""}, headers={"X-CSRF-Token": sent["csrf"]}).status_code == 303
    assert world.review(draft)["review"]["status"] == "accepted"


def test_logging_out_ends_the_session_on_the_server(visitor):
    tom = visitor("tom")
    token = re.search(r'name="csrf" value="([^"]+)"', tom.get().text).group(1)
    kept = tom.http.cookies.get(_COOKIE)
    answer = tom.http.post("/review/logout", data={"csrf": token})
    assert answer.headers["location"] == "/review/login"
    assert tom.http.get("/review/logout").status_code == 405
    assert visitor().get(headers={"Cookie": f"{_COOKIE}={kept}"}).status_code == 303


def test_a_session_ends_with_its_key(visitor, world):
    made = must(world.server, "POST", "/v1/keys", json={"role": "user", "user_id": "tom"})
    tom = visitor()
    assert tom.try_key(made["key"]).status_code == 303
    assert tom.get().status_code == 200
    call(world.server, "DELETE", f"/v1/keys/{made['id']}")
    assert tom.get().headers["location"] == "/review/login?ended=1"
    assert "Your login has ended." in tom.get(follow_redirects=True).text


def test_a_session_ends_when_its_key_expires(visitor, world, monkeypatch):
    ending = {"role": "user", "user_id": "tom", "expires_at": "2030-01-01T00:00:00Z"}
    tom = visitor()
    assert tom.try_key(must(world.server, "POST", "/v1/keys", json=ending)["key"]).status_code == 303
    assert tom.get().status_code == 200
    monkeypatch.setattr(keys, "now_ms", lambda: 1_900_000_000_000)
    assert tom.get().status_code == 303


def test_a_session_ends_after_twelve_hours(visitor, monkeypatch):
    tom = visitor("tom")
    assert tom.get().status_code == 200
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 12 * 3600 + 1)
    monkeypatch.setattr(sessions, "time", later)
    assert tom.get().status_code == 303


def test_sessions_are_bounded_and_one_key_does_not_push_out_another():
    kept = PageSessions()
    ann, _ = kept.open("ann")
    toms = [kept.open("tom")[0] for _ in range(50)]
    assert kept.find(ann) is not None
    assert [kept.find(one) is not None for one in toms] == [False] * 40 + [True] * 10
    for number in range(1_200):
        kept.open(f"key {number}")
    assert len(kept._sessions) == 1_000


def test_a_second_login_takes_the_place_of_the_first(visitor, world):
    tom = visitor("tom")
    first = tom.http.cookies.get(_COOKIE)
    assert tom.try_key(key_for(world.server, "user", "ann")).status_code == 303
    assert "Logged in as ann" in tom.get().text
    assert visitor().get(headers={"Cookie": f"{_COOKIE}={first}"}).status_code == 303

"""What the pages show and do, without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.servers import must

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[a link](javascript:alert(1)) javascript:alert(1)",
    "{{7*7}} {% raw %} {{ visit.csrf }}",
    "right \u202eot tfel\u202c \u2066x\u2069 zero\u200bwidth",
    "</textarea></pre><svg onload=alert(1)>",
]


class Tags(HTMLParser):
    """What a browser would make of a page: elements and attributes that no page of ours has."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("img", "svg", "style", "iframe", "base", "object") or "style" in given:
            self.bad.append(tag)
        if tag == "script" and given.get("src") not in ("/review/assets/htmx.min.js", "/review/assets/review.js"):
            self.bad.append(f"script {given}")
        for name, value in given.items():
            outside = name in ("href", "src", "action") and not re.match(r"/review(/|\?|$)|data:,$|#page$", value or "")
            if name.startswith("on") or outside:
                self.bad.append(f"{tag} {name}={value}")


def drafts_on(page: str) -> list[str]:
    """The drafts that a queue lists, in its order."""
    return re.findall(r'class="entry" href="/review/drafts/(rev_\w+)', page)


def test_a_draft_says_everything_that_is_needed_to_decide_it(visitor, world):
    draft = world.draft("Tom is thinking of moving to Lisbon")
    page = visitor("tom").get(f"/drafts/{draft}").text
    for said in (
        "agent:hermes",
        "70%",
        "user/tom/long_term",
        "no person told it",
        "Tom is thinking of moving to Lisbon",
    ):
        assert said in page


def test_accepting_leads_to_the_next_draft_and_says_so(visitor, world):
    tom = visitor("tom")
    first, second = world.draft("Tom has a cat"), world.draft("Tom has a dog")
    answer = tom.decide(first, "accept", reason="I said\r\nso")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/review/drafts/{second}"
    page = tom.http.get(answer.headers["location"]).text
    assert '<p class="done">Accepted: Tom has a cat' in page
    assert '<p class="done">' not in tom.get().text
    decided = world.review(first)["review"]
    assert (decided["status"], decided["decision_reason"]) == ("accepted", "I said so")
    assert "tom" in decided["decided_by"]
    assert "Tom has a cat" in world.text_of(first)


def test_rejecting_keeps_nothing(visitor, world):
    tom = visitor("tom")
    draft = world.draft("Tom hates coriander")
    assert tom.decide(draft, "reject").status_code == 303
    assert world.review(draft)["review"]["status"] == "rejected"
    page = tom.get(f"/drafts/{draft}").text
    assert "rejected" in page
    assert 'class="decide"' not in page


def test_the_last_decision_leads_to_an_empty_queue(visitor, world):
    ann = visitor("ann")
    for draft in drafts_on(ann.get().text):
        ann.decide(draft, "reject")
    answer = ann.decide(world.draft("Ann plays chess", "claude"), "accept")
    assert answer.headers["location"] == "/review"
    assert "Nothing waits for a decision." in ann.get().text


def test_a_text_edited_in_place_is_what_is_kept(visitor, world):
    tom = visitor("tom")
    draft = world.draft("Tom's sister is called Eva")
    tom.decide(draft, "accept", text="Tom's sister is called Ada.\r\n\r\nShe lives in Riga.")
    assert "Tom's sister is called Ada.\n\nShe lives in Riga." in world.text_of(draft)
    assert "Eva" not in world.text_of(draft).split("---")[-1]


def test_a_change_is_shown_beside_what_is_there(visitor, world):
    memory = world.memory("Tom's desk is in room 4.\nIt stands by the window.\n早上喝茶")
    draft = world.change(memory, "Tom's desk is in room 7.\nIt stands by the window.\n早上喝咖啡")
    tom = visitor("tom")
    page = tom.get(f"/drafts/{draft}").text
    assert "Tom&#39;s desk is in room <del>4</del>." in page
    assert "Tom&#39;s desk is in room <ins>7</ins>." in page
    assert "早上喝<ins>咖啡</ins>" in page
    assert f'href="/review/memories/{memory}"' in page
    tom.decide(draft, "accept")
    shown = tom.get(f"/memories/{memory}").text
    assert "room 7" in shown
    compared = re.search(rf'href="(/review/memories/{memory}/compare\?from=1&amp;to=2)"', shown).group(1)
    page = tom.http.get(compared.replace("&amp;", "&")).text
    assert "<del>4</del>" in page and "<ins>7</ins>" in page
    assert "room 4" in tom.get(f"/memories/{memory}/compare?to=1").text


def test_a_draft_that_was_edited_meanwhile_must_be_looked_at_again(visitor, world):
    tom = visitor("tom")
    draft = world.draft("Tom works on Mondays")
    seen = tom.form(f"/drafts/{draft}") | {"decision": "accept", "text": "My own wording"}
    file = world.server.vault / world.review(draft)["review"]["path"]
    file.write_text(file.read_text("utf-8").replace("Mondays", "Tuesdays"), "utf-8")
    answer = tom.http.post(f"/review/drafts/{draft}", data=seen)
    assert answer.status_code == 409
    assert "was changed meanwhile, for example in Obsidian" in answer.text
    assert "Tom works on Tuesdays" in answer.text
    assert '<pre class="text">My own wording</pre>' in answer.text
    assert world.review(draft)["review"]["status"] == "pending"
    assert tom.decide(draft, "accept").status_code == 303
    assert "Tuesdays" in world.text_of(draft)


def test_a_draft_whose_memory_changed_must_be_looked_at_again(visitor, world):
    tom = visitor("tom")
    memory = world.memory("Tom's plan\n\nOne\n\nTwo\n\nThree")
    draft = world.change(memory, "Tom's plan\n\nOne\n\nTwo\n\nFour")
    etag = must(world.server, "GET", f"/v1/memory/{memory}")["etag"]
    change = {"json": {"content": "Tom's plan\n\nZero\n\nTwo\n\nThree"}, "headers": {"If-Match": f'"{etag}"'}}
    must(world.server, "PATCH", f"/v1/memory/{memory}", world.keys["tom"], **change)
    assert "The memory changed after this was proposed" in tom.get(f"/drafts/{draft}").text
    answer = tom.decide(draft, "accept")
    assert answer.status_code == 409
    assert "The memory changed meanwhile; nothing was decided." in answer.text
    assert tom.decide(draft, "accept").status_code == 303
    assert "Zero" in world.text_of(draft) and "Four" in world.text_of(draft)


def test_a_draft_is_decided_once(visitor, world):
    tom = visitor("tom")
    draft = world.draft("Tom wears glasses")
    form = tom.form(f"/drafts/{draft}") | {"decision": "accept"}
    assert tom.http.post(f"/review/drafts/{draft}", data=form).status_code == 303
    answer = tom.http.post(f"/review/drafts/{draft}", data=form | {"decision": "reject"})
    assert answer.status_code == 409
    assert "was decided before; nothing was done" in answer.text


def test_a_secret_is_refused_and_the_text_stays_to_be_mended(visitor, world):
    tom = visitor("tom")
    draft = world.draft("Tom's router")
    secret = "Tom's router, password: " + "hunter2-Correct-Horse-9"
    answer = tom.decide(draft, "accept", text=secret)
    assert answer.status_code == 422
    assert "holds a password, key or personal number" in answer.text
    assert '<details id="edit" open>' in answer.text
    assert secret.replace("'", "&#39;") in answer.text
    assert tom.decide(draft, "accept", text="   ").status_code == 400
    assert tom.decide(draft, "perhaps").status_code == 400
    assert tom.decide(draft, "accept", etag="").status_code == 400
    assert world.review(draft)["review"]["status"] == "pending"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_and_do_nothing(visitor, world, text):
    tom = visitor("tom")
    draft = world.draft(text)
    pages = [tom.get().text, tom.get(f"/drafts/{draft}").text]
    assert tom.form(f"/drafts/{draft}")["text"].startswith(text)
    assert tom.decide(draft, "accept").status_code == 303
    memory = world.review(draft)["review"]["memory_id"]
    pages += [tom.get(f"/memories/{memory}").text, tom.get(f"/memories/{memory}/compare?to=1").text, tom.get().text]
    pages.append(tom.get("/search", params={"q": text}).text)
    pages.append(tom.get("", params={"namespace": text, "by": text, "kind": text, "status": text}).text)
    pages.append(tom.get("/search", params={"q": "x", "agent": text}).text)
    for page in pages:
        reader = Tags()
        reader.feed(page)
        assert reader.bad == []
        bare = re.sub(r"<textarea.*?</textarea>", "", page, flags=re.DOTALL)
        assert not set(bare) & set("\u202e\u202c\u2066\u2069\u200b")
    if "\u202e" in text:
        assert "⟦U+202E⟧" in pages[1] and "hidden characters" in pages[1]
    if "7*7" in text:
        assert "{{7*7}} {% raw %} {{ visit.csrf }}" in pages[1] and "{{7*7}}" in pages[2]


def test_the_queue_is_filtered_and_paged(visitor, world):
    tom = visitor("tom")
    one, other = world.draft("Tom is tall", "hermes"), world.draft("Tom is quick", "nanobot")
    assert {one, other} <= set(drafts_on(tom.get().text))
    by = drafts_on(tom.get("?by=agent:nanobot").text)
    assert other in by and one not in by
    assert drafts_on(tom.get("?kind=merge").text) == []
    assert one in drafts_on(tom.get("?kind=create&namespace=user/tom/long_term").text)
    assert drafts_on(tom.get("?namespace=user/ann/long_term").text) == []
    assert tom.get("?namespace=nonsense").status_code == 400
    assert tom.get("?cursor=nonsense").status_code == 400
    tom.decide(one, "reject")
    assert one in drafts_on(tom.get("?status=rejected").text)
    assert one not in drafts_on(tom.get().text)
    for number in range(51):
        world.draft(f"Tom counts to {number}")
    first = tom.get()
    following = re.search(r'rel="next" href="([^"]+)"', first.text).group(1)
    second = tom.http.get(following.replace("&amp;", "&"))
    assert len(drafts_on(first.text)) == 50
    assert drafts_on(second.text) and not set(drafts_on(first.text)) & set(drafts_on(second.text))


def test_neighbours_keep_to_the_filter(visitor, world):
    tom = visitor("tom")
    one, _, three = world.draft("A", "nanobot"), world.draft("B", "hermes"), world.draft("C", "nanobot")
    page = tom.get(f"/drafts/{one}?by=agent:nanobot").text
    assert f'data-key="j" href="/review/drafts/{three}?by=agent%3Ananobot"' in page
    page = tom.get(f"/drafts/{three}?by=agent:nanobot").text
    assert f'data-key="k" href="/review/drafts/{one}?by=agent%3Ananobot"' in page


def test_each_sees_what_is_theirs(visitor, world):
    """Another's draft or memory answers exactly like one that does not exist."""
    toms_draft, toms_memory = world.draft("Tom's moonstone secret"), world.memory("Tom's moonstone memory")
    ann, tom = visitor("ann"), visitor("tom")
    for path in (f"/drafts/{toms_draft}", f"/memories/{toms_memory}", f"/memories/{toms_memory}/compare?to=1"):
        assert tom.get(path).status_code == 200
        missing = re.sub(r"(rev|mem)_\w+", r"\1_00000000000000000000", path)
        others, none = ann.get(path), ann.get(missing)
        assert others.status_code == none.status_code == 404
        assert _without_ids(others.text) == _without_ids(none.text)
        assert "moonstone" not in others.text
    assert "moonstone" not in ann.get().text + ann.get("?status=any").text
    assert "Nothing was found." in ann.get("/search?q=moonstone").text
    assert "moonstone memory" in tom.get("/search?q=moonstone").text
    form = tom.form(f"/drafts/{toms_draft}") | {"decision": "accept", "csrf": _token(ann)}
    assert ann.http.post(f"/review/drafts/{toms_draft}", data=form).status_code == 404
    for query in ("agent=hermes", "user=tom", "agent=forged", "workspace=forged"):
        assert "moonstone memory" not in ann.get(f"/search?q=moonstone&{query}").text
    assert "moonstone" in visitor("admin").get(f"/drafts/{toms_draft}").text


def _without_ids(page: str) -> str:
    return re.sub(r"(rev|mem)_\w+|%3F|value=\"[^\"]+\"", "", page)


def _token(one) -> str:
    return re.search(r'name="csrf" value="([^"]+)"', one.get().text).group(1)


def test_a_search_says_why_each_result_was_found(visitor, world):
    world.memory("Tom keeps the zephyrine rose on the balcony")
    page = visitor("tom").get("/search?q=zephyrine").text
    assert "1 result" in page
    assert re.search(r"Score [\d.]+\s+· by keywords: place 1, score [\d.]+", page)
    assert "Nothing was found." in visitor("tom").get("/search?q=qqqqq").text
    assert visitor("tom").get(f"/search?q={'x' * 20_100}").status_code == 400


def test_health_tells_administrators_more(visitor, world):
    (world.server.vault / "Memories" / "LongTerm").mkdir(parents=True, exist_ok=True)
    administrator, tom = visitor("admin").get("/health").text, visitor("tom").get("/health").text
    assert "user/tom/long_term" in administrator
    assert "user/tom/long_term" not in tom
    assert "The gateway is ready." in tom and "Administrators see more here." in tom


def test_the_language_follows_the_browser_and_the_choice(visitor):
    someone = visitor(**{"Accept-Language": "fr;q=0.9, zh-CN;q=0.8, en;q=0.5"})
    answer = someone.get("/login")
    assert '<html lang="zh-CN">' in answer.text
    assert "密钥在哪里" in answer.text
    assert 'href="/review/login?lang=en"' in answer.text
    chosen = someone.get("/login?lang=en")
    assert "Where the key is" in chosen.text
    cookie = chosen.headers["set-cookie"].lower()
    assert "samesite=strict" in cookie and "path=/review" in cookie
    assert "Where the key is" in someone.get("/login").text
    assert '<html lang="en">' in visitor(**{"Accept-Language": "de"}).get("/login?lang=xx").text


def test_both_languages_show_every_page(visitor, world):
    memory = world.memory("Tom 的书桌在窗边")
    paths = ["", f"/drafts/{world.draft('Tom 喜欢围棋')}", f"/drafts/{world.change(memory, 'Tom 的书桌在门边')}"]
    paths += [f"/memories/{memory}", f"/memories/{memory}/compare?to=1", "/search?q=书桌", "/health", "/no/such"]
    for one in (visitor("tom", **{"Accept-Language": "zh"}), visitor("admin", **{"Accept-Language": "zh"})):
        for path in paths:
            answer = one.get(path)
            assert answer.status_code in (200, 404)
            assert answer.headers["content-language"] == "zh"
            assert "退出" in answer.text


def test_an_unexpected_error_is_a_page_without_details(visitor, monkeypatch):
    tom = visitor("tom")

    def broken(*_args, **_options):
        raise ZeroDivisionError("a private detail")

    monkeypatch.setattr("gateway.services.reviews.page", broken)
    answer = tom.get()
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert "private detail" not in answer.text

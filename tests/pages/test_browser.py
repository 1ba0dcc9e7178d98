"""The pages in a real browser: keys, focus, announcements, contrast, narrow screens; and no note runs a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from gateway.api.pages.entry import SESSION_COOKIE
from tests.pages.conftest import Visitor

CHROMIUM = "/usr/bin/chromium"
HOSTILE = (
    '<script>alert(1)</script> "><img src=x onerror=alert(1)> [a](javascript:alert(1)) <style>*{display:none}</style> '
    "</textarea></pre><svg onload=alert(1)> \u202etxet"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is missing; install the Debian package chromium (`apt-get install chromium`).")
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield one
        one.close()


@pytest.fixture(scope="module")
def sessions(world) -> dict[str, str]:
    """Who is logged in, with the ids of their sessions."""
    found = {}
    for name in ("tom", "admin"):
        visitor = Visitor(world)
        visitor.login(name)
        found[name] = visitor.http.cookies[SESSION_COOKIE]
        visitor.http.close()
    return found


@pytest.fixture
def opened(browser, world, sessions):
    """Opens pages; whatever a browser complains of on any of them fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(name: str | None = "tom", **options) -> Page:
        context = browser.new_context(**({"base_url": world.url, "locale": "en-GB"} | options))
        context.set_default_timeout(5_000)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: complaints.append(f"error {error}"))
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error('policy ' + e.violatedDirective))"
        )
        if name is not None:
            flags = {"domain": "127.0.0.1", "path": "/review", "httpOnly": True, "sameSite": "Strict"}
            context.add_cookies([{"name": SESSION_COOKIE, "value": sessions[name], **flags}])
            page.goto("/review")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # Browsers write down answers that say no as errors.
    assert [one for one in complaints if not re.search("status of (404|409)", one)] == []


def settled(page: Page) -> None:
    """Long enough after a page came up that a key decides it."""
    page.wait_for_timeout(550)


def decided(page: Page, world, draft: str) -> str:
    """What became of a draft, once the page has said that something did."""
    page.wait_for_url(lambda url: draft not in url)
    return world.review(draft)["review"]["status"]


def test_a_person_logs_in_and_decides_by_keyboard_alone(opened, world):
    one, two, three = (world.draft(f"Tom collects {what}") for what in ("stamps", "coins", "maps"))
    page = opened(None)
    page.goto("/review")
    assert page.url.endswith("/review/login")
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type(world.keys["tom"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/review")
    while page.evaluate("document.activeElement.getAttribute('href')") != f"/review/drafts/{one}":
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{one}")
    page.keyboard.press("j")
    page.wait_for_url(f"**/{two}")
    page.keyboard.press("k")
    page.wait_for_url(f"**/{one}")
    settled(page)
    page.keyboard.press("a")
    assert decided(page, world, one) == "accepted"
    page.wait_for_url(f"**/{two}")
    expect(page.locator("#message")).to_have_text(re.compile("Accepted: Tom collects stamps"))
    expect(page.locator("h1")).to_be_focused()
    expect(page).to_have_title(re.compile("Tom collects coins"))
    settled(page)
    page.keyboard.press("r")
    assert decided(page, world, two) == "rejected"
    expect(page.locator("#message")).to_have_text(re.compile("Rejected: Tom collects coins"))
    assert world.review(three)["review"]["status"] == "pending"


def test_a_second_press_by_mistake_decides_nothing_unseen(opened, world):
    one, two = world.draft("Tom sings"), world.draft("Tom whistles")
    page = opened()
    page.goto(f"/review/drafts/{one}")
    page.keyboard.press("a")
    page.wait_for_url(f"**/{two}")
    page.keyboard.press("a")
    page.get_by_role("button", name="Accept").click()
    page.wait_for_timeout(200)
    assert world.review(two)["review"]["status"] == "pending"


def test_editing_in_place_and_accepting_writes_the_text_into_the_vault(opened, world):
    draft = world.draft("Tom's car is red")
    page = opened()
    page.goto(f"/review/drafts/{draft}")
    page.keyboard.press("e")
    field = page.get_by_label("Text that will be kept")
    expect(field).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("Tom's car is blue, as jar keeps asking.")  # keys in a field are text
    page.get_by_label("Reason (optional)").fill("I repainted it")
    page.get_by_role("button", name="Accept").click()
    assert decided(page, world, draft) == "accepted"
    assert "Tom's car is blue, as jar keeps asking." in world.text_of(draft)
    assert world.review(draft)["review"]["decision_reason"] == "I repainted it"


def test_an_edit_in_obsidian_meanwhile_is_shown_and_announced(opened, world):
    draft = world.draft("Tom swims on Mondays")
    page = opened()
    page.goto(f"/review/drafts/{draft}")
    file = world.server.vault / world.review(draft)["review"]["path"]
    file.write_text(file.read_text("utf-8").replace("Mondays", "Fridays"), "utf-8")
    page.keyboard.press("a")
    expect(page.locator("#message")).to_contain_text("was changed meanwhile, for example in Obsidian")
    expect(page.locator("#page pre.text").first).to_contain_text("Fridays")
    assert page.url.endswith(draft)
    settled(page)
    page.keyboard.press("a")
    assert decided(page, world, draft) == "accepted"
    assert "Fridays" in world.text_of(draft)


def test_a_hostile_note_runs_nothing(opened, world):
    draft = world.draft(HOSTILE)
    page = opened()
    page.goto(f"/review/drafts/{draft}")
    expect(page.locator("pre.text").first).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("pre.text").first).to_contain_text("⟦U+202E⟧txet")
    page.get_by_role("link", name="All drafts").click()
    page.wait_for_url("**/review")
    page.locator(f'a[href$="{draft}"]').click()  # this time htmx puts it in
    page.wait_for_url(f"**/{draft}")
    assert page.locator("main script, main img, main svg, main style").count() == 0
    settled(page)
    page.keyboard.press("a")
    decided(page, world, draft)
    page.goto(f"/review/memories/{world.review(draft)['review']['memory_id']}")
    expect(page.locator("pre.text").first).to_contain_text("<img src=x onerror=alert(1)>")
    page.wait_for_timeout(100)


def test_search_help_and_the_switch_of_the_keys(opened, world):
    world.memory("Tom keeps a quokka calendar")
    draft = world.draft("Tom likes figs")
    page = opened()
    page.keyboard.press("/")
    page.keyboard.type("quokka")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review/search?q=quokka")
    expect(page.locator("main")).to_contain_text("by keywords: place 1")
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_focused()
    expect(page.locator("#keys")).to_contain_text("next draft")
    page.get_by_role("link", name="Tom keeps a quokka calendar").click()
    page.wait_for_url("**/memories/**")
    page.go_back()
    page.wait_for_url("**/review/search?q=quokka")
    page.get_by_label("Use these keys").uncheck()
    page.goto(f"/review/drafts/{draft}")
    page.keyboard.press("a")
    page.wait_for_timeout(150)
    assert world.review(draft)["review"]["status"] == "pending"
    expect(page.get_by_label("Use these keys")).not_to_be_checked()


def test_nothing_of_a_note_stays_in_the_browser(opened, world):
    draft = world.draft("Tom's private cormorant")
    page = opened()
    page.locator(f'a[href$="{draft}"]').click()
    page.wait_for_url(f"**/{draft}")
    page.get_by_role("link", name="All drafts").click()
    page.wait_for_url("**/review")
    kept = page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie")
    assert "cormorant" not in kept
    assert "memory_gateway_review" not in kept


PAGES = ["", "/drafts/{new}", "/drafts/{change}", "/memories/{memory}", "/memories/{memory}/compare?to=1", "/health"]
PAGES += ["/search?q=tea", "/drafts/none", "/login"]


@pytest.fixture(scope="module")
def places(world) -> list[str]:
    """Addresses of all kinds of pages, with long words in them."""
    long = "Tom's tea " + "x" * 300 + "\n\n" + "一二三四五六七八九十" * 40
    memory = world.memory(long)
    ids = {"new": world.draft(long), "change": world.change(memory, long.replace("xxx", "yxx", 1)), "memory": memory}
    return [f"/review{path.format(**ids)}" for path in PAGES]


# Every element with text of its own: its colour against the nearest background that is painted.
_CONTRAST = """
() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if ((!own && !element.matches("input, textarea")) || !element.getClientRects().length) continue;
    for (const pseudo of [null, "::placeholder"]) {
      if (pseudo && !element.placeholder) continue;
      const [a, b] = [light(parse(getComputedStyle(element, pseudo).color)), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) found.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
    }
  }
  return found;
}
"""


_SMALL = """
() => [...document.querySelectorAll("button, input:not([type=hidden]):not([type=checkbox]), select")]
  .filter((one) => one.getClientRects().length && one.getBoundingClientRect().height < 40).map((one) => one.outerHTML)
"""
_TWICE = """
() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}
"""


def test_every_page_is_narrow_enough_stands_out_and_has_names(opened, places):
    """At 360 pixels, in light and in dark."""
    page = opened("admin", viewport={"width": 360, "height": 740})
    for place in places:
        page.goto(place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
        assert page.evaluate(_SMALL) == [], place
        assert page.evaluate(_TWICE) == [], place
        assert page.locator("h1").count() == 1, place
        for scheme, back in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 28)")):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == back
            assert page.evaluate(_CONTRAST) == [], f"{place} {scheme}"
        tree = page.locator("body").aria_snapshot()
        for role in ("button", "link", "textbox", "searchbox", "combobox", "checkbox"):
            assert re.findall(rf"^\s*- {role}(?! \")[^\n]*$", tree, re.MULTILINE) == [], place
        assert "- main" in tree and "- banner" in tree, place


def test_everything_can_be_reached_by_tab_and_the_focus_is_seen(opened, world):
    page = opened()
    page.goto(f"/review/drafts/{world.draft('Tom skates')}")
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        told = page.evaluate(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.id || e.value || e.textContent.trim(), s.outlineStyle, parseFloat(s.outlineWidth)] })()"
        )
        assert told[1] == "solid" and told[2] >= 2, told
        reached.append(told[0])
    assert reached[0] == "Skip to the content"
    for name in ("find", "reason", "accept", "reject", "Health", "use-keys", "Edit the text before accepting"):
        assert name in reached


def test_the_skip_link_leads_to_the_content(opened):
    page = opened()
    page.goto("/review")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_the_language_is_switched_and_stays(opened, world):
    draft = world.draft("Tom skis")
    page = opened(None)  # with a session of its own, since it ends
    page.goto(f"/review/drafts/{draft}")
    page.get_by_label("API key").fill(world.keys["tom"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"**/review/drafts/{draft}")
    page.get_by_role("link", name="中文").click()
    expect(page.get_by_role("button", name="接受")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.keyboard.press("r")
    decided(page, world, draft)
    expect(page.locator("#message")).to_have_text(re.compile("已拒绝：Tom skis"))
    page.get_by_role("button", name="退出").click()
    page.wait_for_url("**/review/login")
    expect(page.get_by_role("button", name="登录")).to_be_visible()


def test_without_scripts_everything_works_by_mouse(opened, world):
    one, two = world.draft("Tom rows"), world.draft("Tom dives")
    page = opened(java_script_enabled=False)
    page.goto(f"/review/drafts/{one}")
    page.get_by_text("Edit the text before accepting").click()
    page.get_by_label("Text that will be kept").fill("Tom rows at dawn")
    page.get_by_role("button", name="Accept").click()
    page.wait_for_url(f"**/{two}")
    expect(page.locator("#message")).to_have_text(re.compile("Accepted: Tom rows"))
    assert "Tom rows at dawn" in world.text_of(one)
    expect(page.get_by_text("this list")).to_be_hidden()
    page.get_by_role("button", name="Reject").click()
    page.wait_for_url(lambda url: two not in url)
    assert world.review(two)["review"]["status"] == "rejected"

"""The words: both languages say everything, templates say nothing themselves; and small parts that are pure."""

from __future__ import annotations

import re
import string
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gateway import errors
from gateway.api.pages.comparing import MAX_LINES, side_by_side
from gateway.api.pages.language import said, wanted, words
from gateway.api.pages.visible import hidden_count, shown
from gateway.ledger.reviews import STATUSES
from gateway.notes.drafts import PROPOSALS

FOLDER = Path(__file__).resolve().parents[2] / "gateway" / "api" / "pages"
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))


def test_both_languages_have_the_same_words_with_the_same_values():
    english, chinese = words("en"), words("zh")
    assert set(english) == set(chinese)
    for name in english:
        assert _values(english[name]) == _values(chinese[name]), name
        assert chinese[name].strip() or name in ("colon", "comma")


def test_chinese_is_chinese():
    same = {name for name, text in words("zh").items() if text == words("en")[name]}
    assert same == {"name", "health.git", "queue.namespace_hint", "queue.by_hint"}


def _values(text: str) -> set[str | None]:
    return {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}


def test_every_word_that_a_page_says_is_there_and_every_word_is_said():
    source = "".join(path.read_text("utf-8") for path in [*TEMPLATES, *FOLDER.glob("*.py")])
    named = set(re.findall(r'say\(\s*"([a-z_.]+)"', source)) | set(re.findall(r'else "([a-z_]+\.[a-z_]+)"', source))
    named |= set(re.findall(r'say\("([a-z_.]+)" if', source))
    assert {name for name in named if not name.endswith(".")} <= set(words("en"))
    lists = ("status.", "kind.", "op.", "problem.", "told.", "health.", "search.user", "draft.added", "draft.removed")
    unsaid = {name for name in words("en") if name not in named and not name.startswith(lists)}
    unsaid -= {"language", "search.agent", "search.workspace"}
    assert unsaid == set()
    for kind, names in (("status", (*STATUSES, "any")), ("kind", PROPOSALS), ("told", ("accepted", "rejected"))):
        assert all(f"{kind}.{name}" in words("en") for name in names)


def test_every_error_that_is_explained_exists():
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}
    explained = {name.split(".")[1] for name in words("en") if name.startswith("problem.")}
    assert explained - codes == {"stale-form"}


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("aria-label", "placeholder", "title", "alt")]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]
        assert tag != "style"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_hold_no_words_and_no_inline_code(path):
    reader = _Texts()
    reader.feed(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", path.read_text("utf-8"), flags=re.DOTALL))
    letters = [text for text in reader.found if re.search(r"\w", text)]
    allowed = {"j", "k", "a", "r", "e", "Esc"} if path.name == "layout.html" else {" UTC", "UTC"}
    assert [text for text in letters if text.strip() not in {one.strip() for one in allowed}] == []
    assert "safe" not in re.findall(r"\|\s*(\w+)", path.read_text("utf-8"))


def test_a_language_is_chosen_by_query_then_cookie_then_browser():
    assert wanted("zh", "en", "en") == "zh"
    assert wanted("xx", "zh", "en") == "zh"
    assert wanted(None, None, "en;q=0.3,zh-TW;q=0.8") == "zh"
    assert wanted(None, None, "de, en;q=x, *") == "en"
    assert wanted(None, None, None) == "en"


def test_values_in_sentences_are_values_only():
    assert said("en", "told.accepted", title="{0} {title} \u202e") == "Accepted: {0} {title} ⟦U+202E⟧"


def test_hidden_characters_are_made_visible_and_pictures_stay():
    assert shown("a\u200bb\u202e\x07\ufeff\u2028") == "a⟦U+200B⟧b⟦U+202E⟧⟦U+0007⟧⟦U+FEFF⟧⟦U+2028⟧"
    assert shown("👩\u200d💻 🏃\u200d♂\ufe0f 茶\n\tok\r\nend") == "👩\u200d💻 🏃\u200d♂\ufe0f 茶\n\tok\r\nend"
    assert shown("a\u200db\rc") == "a⟦U+200D⟧b⟦U+000D⟧c"
    assert hidden_count("a\u200db\u00adc") == 2


def test_texts_side_by_side():
    old = "\n".join(f"line {number}" for number in range(40))
    new = old.replace("line 20", "line twenty").replace("line 39", "line 39\nline 40")
    rows = side_by_side(old, new)
    assert [row.kind for row in rows] == [
        "gap", "same", "same", "same", "changed", "same", "same", "same", "gap", "same", "same", "same", "added",
    ]  # fmt: skip
    assert rows[0].skipped == 17
    assert rows[4].old.pieces == ((False, "line "), (True, "20"))
    assert rows[-1].new.number == 41
    assert [row.kind for row in side_by_side("", "a\nb")] == ["added", "added"]
    assert [row.kind for row in side_by_side("a", "")] == ["removed"]
    assert side_by_side("x\n" * (MAX_LINES + 1), "") is None
    whole = side_by_side("completely different", "另一句话")[0]
    assert whole.old.pieces == ((True, "completely different"),)

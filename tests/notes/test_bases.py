"""The `.base` files of the starter vault against the documented syntax of Obsidian Bases."""

import json
import re
from pathlib import Path

import pytest
import yaml

from gateway.notes.drafts import DRAFT_PROPERTIES
from gateway.notes.template import PROPERTY_ORDER

VAULT = Path(__file__).parents[2] / "vault"
BASES = sorted(VAULT.rglob("*.base"))
TYPES = json.loads((VAULT / ".obsidian/types.json").read_text(encoding="utf-8"))["types"]
KNOWN = {*PROPERTY_ORDER, *DRAFT_PROPERTIES, "secrets", "aliases"}

FILE_FIELDS = {
    *("name", "basename", "path", "folder", "ext", "size", "ctime", "mtime", "tags", "links", "embeds", "backlinks"),
    *("properties", "file"),
}
FILE_FUNCTIONS = {"hasTag", "inFolder", "hasProperty", "hasLink", "asLink"}
GLOBALS = {"now", "today", "date", "duration", "if", "number", "link", "list", "min", "max", "icon", "image", "file"}
METHODS = {
    *("isEmpty", "isTruthy", "isType", "toString", "contains", "containsAll", "containsAny", "startsWith", "endsWith"),
    *("lower", "title", "trim", "replace", "slice", "split", "reverse", "repeat", "length"),
    *("abs", "ceil", "floor", "round", "toFixed", "relative", "format", "date", "time"),
    *("year", "month", "day", "hour", "minute", "second", "millisecond"),
    *("filter", "map", "reduce", "flat", "join", "sort", "unique", "asFile", "linksTo"),
}
TOKEN = re.compile(
    r"""\s*(?:(\d+(?:\.\d+)?)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)"""
    r"""|(==|!=|>=|<=|&&|\|\||[-+*/%<>!().,\[\]]))"""
)


class Expression:
    """A recursive-descent reader of formulas and filters; fails with what is wrong."""

    def __init__(self, text: str, formulas: set[str]) -> None:
        self.formulas = formulas
        self.tokens: list[tuple[str, str]] = []
        self.used: set[str] = set()
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match, f"cannot read {text[at:]!r}"
            kind = ("number", "text", "name", "sign")[match.lastindex - 1]
            self.tokens.append((kind, match.group(match.lastindex)))
            at = match.end()
        self.at = 0
        self.binary()
        assert self.at == len(self.tokens), f"left over: {self.tokens[self.at :]}"

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> tuple[str, str]:
        assert self.at < len(self.tokens), "ends too early"
        kind, value = self.tokens[self.at]
        assert wanted is None or value == wanted, f"{wanted} expected, {value} found"
        self.at += 1
        return kind, value

    def binary(self) -> None:
        self.unary()
        while self.peek() in {"==", "!=", ">", "<", ">=", "<=", "&&", "||", "+", "-", "*", "/", "%"}:
            self.take()
            self.unary()

    def unary(self) -> None:
        while self.peek() in {"!", "-"}:
            self.take()
        self.primary()
        while self.peek() in {".", "["}:
            if self.take()[1] == "[":
                self.binary()
                self.take("]")
                continue
            kind, name = self.take()
            assert kind == "name"
            assert name in METHODS, f"no function or field {name}"
            if self.peek() == "(":
                self.arguments()

    def primary(self) -> None:
        kind, value = self.take()
        if value == "(":
            self.binary()
            self.take(")")
        elif kind == "name" and value not in {"true", "false", "null"}:
            self.named(value)
        else:
            assert kind in {"number", "text", "name"}, f"unexpected {value}"

    def named(self, name: str) -> None:
        if self.peek() == "(":
            assert name in GLOBALS, f"no function {name}()"
            self.arguments()
        elif name in {"file", "note", "formula"} and self.peek() == ".":
            self.take(".")
            field = self.take()[1]
            if name == "file" and self.peek() == "(":
                assert field in FILE_FUNCTIONS, f"no function file.{field}()"
                self.arguments()
            else:
                check_property(f"{name}.{field}", self.formulas)
                self.used.add(f"{name}.{field}")
        else:
            check_property(name, self.formulas)

    def arguments(self) -> None:
        self.take("(")
        while self.peek() != ")":
            self.binary()
            if self.peek() != ")":
                self.take(",")
        self.take(")")


def check_property(name: str, formulas: set[str]) -> None:
    """A property that exists: of the file, a formula of this base, or one that notes of the gateway have."""
    kind, _, field = name.rpartition(".")
    if kind == "file":
        assert field in FILE_FIELDS, name
    elif kind == "formula":
        assert field in formulas, name
    else:
        assert kind in {"", "note"}, name
        assert field in KNOWN, name
        assert field in TYPES, f"{field} has no type in types.json"


def check_filter(tree: object, formulas: set[str]) -> None:
    if isinstance(tree, str):
        Expression(tree, formulas)
        return
    assert isinstance(tree, dict)
    assert len(tree) == 1, "one of and, or, not"
    ((kind, parts),) = tree.items()
    assert kind in {"and", "or", "not"}
    assert isinstance(parts, list) and parts
    for part in parts:
        check_filter(part, formulas)


def check_view(view: dict, formulas: set[str], summaries: set[str]) -> None:
    assert set(view) <= {"type", "name", "filters", "order", "sort", "groupBy", "limit", "summaries"}
    assert view["type"] in {"table", "cards", "list", "map"}
    assert isinstance(view["name"], str) and view["name"]
    if "filters" in view:
        check_filter(view["filters"], formulas)
    for name in view.get("order", []):
        check_property(name, formulas)
    for by in [*view.get("sort", []), *([view["groupBy"]] if "groupBy" in view else [])]:
        assert set(by) == {"property", "direction"}
        assert by["direction"] in {"ASC", "DESC"}
        check_property(by["property"], formulas)
    assert isinstance(view.get("limit", 1), int)
    for name, summary in view.get("summaries", {}).items():
        check_property(name, formulas)
        assert summary in summaries | {
            "Average",
            "Min",
            "Max",
            "Sum",
            "Earliest",
            "Latest",
            "Empty",
            "Filled",
            "Unique",
        }


def check_base(base: dict) -> None:
    assert set(base) <= {"filters", "formulas", "properties", "summaries", "views"}
    formulas = base.get("formulas", {})
    needs = {name: Expression(text, set(formulas)).used for name, text in formulas.items()}
    for name, used in needs.items():
        assert f"formula.{name}" not in used, "a formula that needs itself"
    if "filters" in base:
        check_filter(base["filters"], set(formulas))
    for name, values in base.get("properties", {}).items():
        assert "." in name, f"{name} must be written note.{name} to have a display name"
        check_property(name, set(formulas))
        assert set(values) == {"displayName"}
    for text in base.get("summaries", {}).values():
        assert isinstance(text, str)
    names = [view["name"] for view in base["views"]]
    assert len(names) == len(set(names))
    for view in base["views"]:
        check_view(view, set(formulas), set(base.get("summaries", {})))


def test_there_are_bases():
    assert {path.name for path in BASES} >= {"Reviews.base", "Profiles.base"}


@pytest.mark.parametrize("path", BASES, ids=lambda path: path.name)
def test_a_base_is_written_as_documented(path):
    check_base(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_the_base_of_reviews_shows_what_a_decision_needs():
    base = yaml.safe_load((VAULT / "Reviews/Reviews.base").read_text(encoding="utf-8"))
    views = {view["name"]: view for view in base["views"]}
    assert list(views) == ["Waiting", "By kind", "Oldest first", "Decided"]
    for name in ("Waiting", "By kind", "Oldest first"):
        assert {"note.decision", "note.summary", "formula.age"} <= set(views[name]["order"])
    assert views["By kind"]["groupBy"]["property"] == "note.proposal"
    assert {"note.decided", "note.decided_by"} <= set(views["Decided"]["order"])


@pytest.mark.parametrize(
    "wrong",
    [
        "file.inFolder('x'",
        "file.inFolders('x')",
        "nothing.isEmpty()",
        "formula.none > 1",
        "created.frobnicate()",
        "1 +",
        "a b",
        "'open",
        "file.nam",
        "sqrt(2)",
        "(created",
    ],
)
def test_the_check_finds_what_is_wrong(wrong):
    with pytest.raises(AssertionError):
        Expression(wrong, {"age"})


@pytest.mark.parametrize(
    "right",
    [
        '(now() - file.ctime) / 86400000 > 3 && !file.hasTag("a")',
        'if(created, date("2026-11-30").relative(), "")',
        "list(tags).contains('x') || file.folder.split('/')[1] == \"a\"",
        "-1.5 * (confidence + 2).round(2) % 3",
    ],
)
def test_the_check_takes_what_is_documented(right):
    Expression(right, set())


@pytest.mark.parametrize(
    "base",
    [
        {"views": [{"type": "board", "name": "x"}]},
        {"views": [], "extra": 1},
        {"views": [{"type": "table", "name": "x", "order": ["unheard_of"]}]},
        {"views": [{"type": "table", "name": "x", "group_by": "type"}]},
        {"views": [{"type": "table", "name": "x", "filters": {"and": ["type"], "or": ["type"]}}]},
        {"properties": {"type": {"displayName": "Type"}}, "views": []},
        {"formulas": {"a": "formula.a + 1"}, "views": []},
    ],
)
def test_the_check_finds_what_is_wrong_with_a_base(base):
    with pytest.raises(AssertionError):
        check_base(base)

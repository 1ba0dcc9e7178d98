import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import CannotPatch
from gateway.notes.frontmatter import split
from gateway.notes.note import parse
from gateway.notes.patch import DELETE, patch_properties, replace_body, set_properties
from gateway.notes.properties import same

TORTURE = """---
# who wrote this
zeta:   1        # keep me
alpha: 'it''s fine'
flow: [a, b,c]\t# flow
lit: |
  line 1
    indented

keep: |+
  kept

fold: >-
  a b

  c d
tags: # mine
- a
- b
# between
nest:
    deep: {x: 1}
    lit: |
      more
"quoted key": x
empty: # nothing
multi: one
  two
emoji: 🌲👩‍👩‍👧
标题: 你好，世界
---

    code first
two spaces\x20\x20
no final newline"""


def patched(text: str, **changes: object) -> str:
    return patch_properties(text.encode(), changes).decode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("zeta", 2, "zeta:   1        # keep me", "zeta:   2        # keep me"),
        ("alpha", "no", "alpha: 'it''s fine'", 'alpha: "no"'),
        ("flow", ["x", "y, z"], "flow: [a, b,c]\t# flow", 'flow: [x, "y, z"]\t# flow'),
        ("flow", 3, "flow: [a, b,c]\t# flow", "flow: 3\t# flow"),
        ("lit", "short", "lit: |\n  line 1\n    indented\n", "lit: short\n"),
        ("keep", "k", "keep: |+\n  kept\n\n", "keep: k\n"),
        ("fold", "f", "fold: >-\n  a b\n\n  c d\n", "fold: f\n"),
        ("tags", ["a", "c"], "tags: # mine\n- a\n- b\n", "tags: # mine\n- a\n- c\n"),
        ("tags", "one", "tags: # mine\n- a\n- b\n", "tags: one # mine\n"),
        ("nest", "flat", "nest:\n    deep: {x: 1}\n    lit: |\n      more\n", "nest: flat\n"),
        ("quoted key", True, '"quoted key": x', '"quoted key": true'),
        ("empty", "e", "empty: # nothing", "empty: e # nothing"),
        ("empty", ["e"], "empty: # nothing", "empty: # nothing\n  - e"),
        ("multi", "m", "multi: one\n  two\n", "multi: m\n"),
        ("zeta", None, "zeta:   1        # keep me", "zeta:           # keep me"),
        ("emoji", "👩‍👩‍👧🌲", "emoji: 🌲👩‍👩‍👧", 'emoji: "👩‍👩‍👧🌲"'),
        ("标题", "茶: 绿", "标题: 你好，世界", '标题: "茶: 绿"'),
        ("new", "fresh", "世界\n---", "世界\nnew: fresh\n---"),
    ],
)
def test_only_the_lines_of_the_asked_key_change(key: str, value: object, old: str, new: str):
    for eol in ("\n", "\r\n"):
        for bom in ("", "\ufeff"):
            text = bom + TORTURE.replace("\n", eol)
            wanted = bom + TORTURE.replace(old, new, 1).replace("\n", eol)
            assert old in TORTURE
            assert patched(text, **{key: value}) == wanted


def test_each_key_of_the_torture_note_can_be_deleted_and_leaves_the_rest():
    lines = TORTURE.split("\n")
    for key in parse(TORTURE.encode()).properties:
        result = patched(TORTURE, **{key: DELETE})
        values = parse(result.encode()).properties
        assert key not in values
        assert list(values) == [other for other in parse(TORTURE.encode()).properties if other != key]
        remaining = iter(lines)
        assert all(line in remaining for line in result.split("\n"))


def test_the_items_of_a_list_that_stay_keep_their_quotes_and_comments():
    text = "---\ntags: # mine\n  # about tea\n  - 'tea'   # green\n  - cups\n\n  - \"[[x]]\"\n# end\n---\n"
    assert patched(text, tags=["tea", "new", "[[x]]"]) == (
        "---\ntags: # mine\n  # about tea\n  - 'tea'   # green\n  - new\n\n  - \"[[x]]\"\n# end\n---\n"
    )
    assert patched("---\na:\n- k: v\n- |\n  - x\n---\n", a=["y"]) == '---\na:\n- "y"\n---\n'
    assert patched("---\na:\n- - 1\n  - 2\n- x\n---\n", a=["z", "x"]) == "---\na:\n- z\n- x\n---\n"
    assert patched("---\na:\n- |\n  # x\n- y\n---\n", a=["# x\n"]) == '---\na:\n- "# x\\n"\n---\n'
    assert patched("---\na:\n- x\u2028- z\n- y\n---\n", a=["y"]) == "---\na:\n- y\n---\n"


def test_a_value_that_is_already_as_asked_changes_nothing():
    data = TORTURE.encode()
    assert patch_properties(data, dict(parse(data).properties)) == data


def test_a_mixed_file_keeps_each_line_end():
    data = b"---\ntype: a\r\nstatus: open\n---\none\r\ntwo\n"
    assert (
        patch_properties(data, {"type": "b", "rank": 1}) == b"---\ntype: b\r\nstatus: open\nrank: 1\n---\none\r\ntwo\n"
    )


def test_the_last_key_can_go_and_a_new_one_can_come_into_an_empty_block():
    assert patched("---\na: 1\n---\n", a=DELETE) == "---\n---\n"
    assert patched("---\n---\n", a="01E10") == '---\na: "01E10"\n---\n'
    assert patched("---\n---", a=["x"]) == "---\na:\n  - x\n---"


def test_dates_stay_plain_and_doubtful_text_is_quoted():
    written = patched(
        "---\n---\n",
        created="2026-11-30T10:00:00Z",
        day="2026-11-30",
        id="01E10",
        link="[[Tea]]",
        word="yes",
        colon="a: b",
        wake="06:20",
        version="1.10",
        long="word " * 60 + "end",
        lines="a\nb",
    )
    assert written == (
        "---\ncreated: 2026-11-30T10:00:00Z\nday: 2026-11-30\n"
        'id: "01E10"\nlink: "[[Tea]]"\nword: "yes"\ncolon: "a: b"\nwake: "06:20"\nversion: "1.10"\n'
        "long: " + "word " * 60 + 'end\nlines: "a\\nb"\n---\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\ntype: x\nno end\n",
        "--- \na: 1\n---\n",
        '---\n{"a": 1}\n---\n',
        "---\n{a: 1}\n---\n",
        "---\na: 1\na: 2\n---\n",
        "---\n? a\n: 1\n---\n",
        "---\ra: 1\r---\rbody\r",
        "---\na: b: c\n---\n",
        "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n",
        "no block\n",
    ],
)
def test_a_patch_refuses_what_it_cannot_do_safely(text: str):
    with pytest.raises(CannotPatch):
        patch_properties(text.encode(), {"a": "new"})


@pytest.mark.parametrize("value", [float("nan"), 2**60, "\ud800", {"a": {"b": [["deep"] * 1] * 1}, "c": "\ud800"}])
def test_a_value_that_would_not_read_back_is_refused(value: object):
    with pytest.raises(CannotPatch):
        patch_properties(b"---\na: 1\n---\n", {"a": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("text", ["a: |+\n  kept\nb: 1\n\nc: 2\n", "a: |\n  one\nb: 1\n  # comment\nc: 2\n"])
def test_a_line_that_keeps_a_block_scalar_above_from_growing_is_not_removed(text: str):
    with pytest.raises(CannotPatch):
        patched(f"---\n{text}---\n", b=DELETE)
    assert patched(f"---\n{text}---\n", b=2) == f"---\n{text}---\n".replace("b: 1", "b: 2")


def test_a_note_without_a_block_gets_one_at_the_very_top():
    assert set_properties(b"Text\n", {"id": "mem_a"}) == b"---\nid: mem_a\n---\nText\n"
    assert set_properties("\ufeffA\r\nB".encode(), {"rank": 1}) == "\ufeff---\r\nrank: 1\r\n---\r\nA\r\nB".encode()
    assert set_properties(b"----\nrule\n---\n", {"rank": 1}) == b"---\nrank: 1\n---\n----\nrule\n---\n"
    assert set_properties(b"Text\n", {"rank": DELETE}) == b"Text\n"
    assert set_properties(b"---\na: 1\n---\n", {"b": 2}) == b"---\na: 1\nb: 2\n---\n"


@pytest.mark.parametrize("text", ["---", "---\ntext\n", "--- \ntext\n", "a\rb\r", ""])
def test_no_block_is_put_above_what_looks_like_one(text: str):
    with pytest.raises(CannotPatch):
        set_properties(text.encode(), {"id": "mem_a"})


def test_a_new_body_keeps_properties_line_ends_and_the_missing_final_newline():
    head = "\ufeff---\r\na:   1 # c\r\n---\r\n"
    assert replace_body((head + "old\r\n").encode(), "x\ny").decode() == head + "x\r\ny\r\n"
    assert replace_body((head + "old").encode(), "x\ny").decode() == head + "x\r\ny"
    assert replace_body(b"---\na: 1\n---", "x") == b"---\na: 1\n---\nx\n"
    assert replace_body(b"old\n", "new") == b"new\n"


@pytest.mark.parametrize("body", ["---\na: 1\n---\n", "<<<<<<< a\n=======\n>>>>>>> b\n", "", "---\nunfinished: 1\n"])
def test_a_new_body_that_would_be_read_as_something_else_is_refused(body: str):
    with pytest.raises(CannotPatch):
        replace_body(b"just text\n", body)


KEYS = st.sampled_from(["id", "type", "tags", "摘要", "up link", "no", "2024", "content", "self", "a-b"])
PLAIN = st.sampled_from(
    ["no", "1e3", "1.10", "0123", "06:20", "2024-02-30", "2024-01-02T10:30:00", "true", "1", "-0.5", "~", "yes", "x y"]
)
QUOTED = st.sampled_from(
    ['"[[' + "Long link " * 20 + '|x]]"', "'it''s'", '"a: #b"', '"tab\\t"', '"🌲👩‍👩‍👧"', "你好，世界"]
)
MANY = st.sampled_from(
    [
        "[a, 'b',  c]",
        '\n  - x\n  - "[[y]]"   # z',
        "\n- 1\n-\n- k: v\n  l: |\n    m",
        "|\n  one\n\n    two\n",
        ">-\n  folded\n  text\n\n",
        "|+\n  kept\n\n",
        "\n    deep: {x: [1, 2]}",
        "plain over\n  two lines",
        '"quoted over\n  two lines"',
        "[flow,\n  over lines]",
        "",
    ]
)
COMMENT = st.sampled_from(["", "", " # note", "\t", "   "])
BETWEEN = st.sampled_from(["", "", "# a comment\n", "\n", "  # indented comment\n"])
BODIES = st.sampled_from(["", "text\n", "\n\n    code\n\n\n", "no newline  ", "a\u2028b\n---\nc\n", "🌲\r\nx\n", "\tq"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15).filter(
        lambda number: number == 0 or abs(number) > 1e-9
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    PLAIN,
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=4),
    st.dictionaries(st.text("abc: #\"'", min_size=1, max_size=4), SCALARS, max_size=2),
    st.just(DELETE),
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    keys = draw(st.lists(KEYS, unique=True, max_size=6))
    block = ""
    for key in keys:
        value = draw(st.one_of(PLAIN, QUOTED, MANY))
        comment = draw(COMMENT) if "\n" not in value else ""
        name = draw(st.sampled_from([key, f'"{key}"']))
        block += (
            draw(BETWEEN)
            + f"{name}: {value}{comment}".rstrip("\n")
            + "\n" * max(1, len(value) - len(value.rstrip("\n")))
        )
    text = draw(st.sampled_from(["", "\ufeff"])) + f"---\n{block}---\n" + draw(BODIES)
    return text.replace("\r\n", "\n").replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@given(notes(), st.one_of(KEYS, st.text("abЖ茶 _-", min_size=1, max_size=5)), VALUES)
@settings(max_examples=400, deadline=None)
def test_patching_any_property_leaves_every_other_byte_as_it_was(text: str, key: str, value: object):
    data = text.encode()
    before = parse(data)
    assert before.readiness == "ready", before.problems
    try:
        result = patch_properties(data, {key: value})  # type: ignore[dict-item]
    except CannotPatch:
        assert value is DELETE
        assert re.search(r": [|>]", text)
        return
    after = parse(result)
    wanted = {name: old for name, old in before.properties.items() if value is not DELETE or name != key}
    if value is not DELETE:
        wanted[key] = value  # type: ignore[assignment]
    assert same(dict(after.properties), wanted)
    assert after.body == before.body
    above, below = _around(text, key)
    assert result.decode().startswith(above)
    assert result.decode().endswith(below)
    assert result.count(b"# a comment") == data.count(b"# a comment")
    assert patch_properties(result, {key: value}) == result  # type: ignore[dict-item]


def _around(text: str, key: str) -> tuple[str, str]:
    """What stands above the line of a key, and what stands below its value, from the next key or the fence on."""
    note, parts = parse(text.encode()), split(text)
    lines = text.splitlines(keepends=True) if "\u2028" not in text else [line + "\n" for line in text.split("\n")]
    fence = len(parts.bom + parts.opening + parts.block)
    if key not in note.key_lines:
        return text[:fence], text[fence:]
    start = note.key_lines[key] - 1
    following = [line - 1 for line in note.key_lines.values() if line - 1 > start]
    below = text[len("".join(lines[: following[0]])) :] if following else text[fence:]
    return "".join(lines[:start]), below


@given(notes(), st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_new_body_leaves_the_bytes_of_the_properties(text: str, body: str):
    data, parts = text.encode(), split(text)
    try:
        result = replace_body(data, body).decode()
    except CannotPatch:
        return
    assert result.startswith(parts.head)
    assert dict(parse(result.encode()).properties) == dict(parse(data).properties)
    assert result[len(parts.head) :].replace("\r\n", "\n").rstrip("\n") == body.replace("\r\n", "\n").replace(
        "\r", "\n"
    ).rstrip("\n")


ITEMS = st.sampled_from(
    ["tea", "'it''s'", '"[[x]]"', "no", "1", "|\n    # block", '"a\n    - b"', "k: v", "[a]", "", "- n", "- n\n    - m"]
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "  # above\n", "\n"]), ITEMS, st.sampled_from(["", "   # note"])),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
@settings(max_examples=300, deadline=None)
def test_changing_a_list_reads_back_and_keeps_the_lines_around_it(
    items: list[tuple[str, str, str]], data: st.DataObject
):
    lines = "".join(f"{above}  - {item}{'' if chr(10) in item else note}\n" for above, item, note in items)
    above, below = "---\nbefore: 1 # b\nlist: # mine\n", "# between\nafter: [x,y]\n---\nbody"
    text = above + lines + below
    old = parse(text.encode()).properties["list"]
    assert isinstance(old, list)
    wanted = data.draw(st.lists(st.one_of(st.sampled_from(old), SCALARS), min_size=1, max_size=6))
    result = patched(text, list=wanted)
    assert result.startswith(above)
    assert result.endswith(below)
    assert same(parse(result.encode()).properties["list"], wanted)

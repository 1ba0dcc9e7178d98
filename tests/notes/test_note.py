import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import CannotPatch
from gateway.notes.fields import read_fields, tags_of
from gateway.notes.frontmatter import split
from gateway.notes.links import body_tags, links_in
from gateway.notes.note import locate_key_line, parse, summary_of, title_of
from gateway.notes.patch import DELETE, patch_properties, set_properties
from gateway.notes.paths import conflict_copy_of

HOSTILE = Path(__file__).parents[1] / "data" / "hostile-notes"
MANIFEST = json.loads((HOSTILE / "manifest.json").read_text(encoding="utf-8"))
HOLDING = {
    "hold-empty": {"empty"},
    "quarantine": {"not-utf8"},
    "hold-conflict": {"conflict-markers"},
    "hold-invalid-properties": {"broken-properties", "duplicate-key"},
}
FLAGS = {
    "13-nul-byte.md": "nul-byte",
    "19-wikilink-unquoted.md": "unquoted-wikilink",
    "22-hash-tags.md": "hash-tags",
    "35-double-frontmatter.md": "second-properties-block",
    "41-bidi-zero-width.md": "bidi-characters",
    "54-system-fields-changed.md": "bad-property",
}


def hostile(name: str) -> bytes:
    return (HOSTILE / name).read_bytes()


def test_the_hostile_notes_are_all_there_with_their_bytes():
    assert len(MANIFEST) == 62
    assert all(len(hostile(item["file"])) == item["bytes"] for item in MANIFEST)


@pytest.mark.parametrize("item", MANIFEST, ids=lambda item: item["file"])
def test_a_hostile_note_is_read_as_expected(item: dict[str, str]):
    name, expected = item["file"], item["expect"]
    data = hostile(name)
    note = parse(data)
    kinds = {problem.kind for problem in note.problems} | {problem.kind for problem in read_fields(note)[1]}
    if expected in HOLDING:
        assert note.readiness == ("empty" if expected == "hold-empty" else "held")
        assert kinds <= HOLDING[expected]
        assert kinds
        assert not note.properties
    else:
        assert note.readiness == "ready"
    if expected == "import-no-properties":
        assert not note.properties
        assert not note.problems
        assert note.body == data.decode()
    if expected in ("import", "agent-write-refused", "hold-duplicate-id", "hold-sync-conflict"):
        assert note.properties or name == "06-empty-frontmatter.md"
        assert not note.problems
    if name in FLAGS:
        assert FLAGS[name] in kinds
    assert (conflict_copy_of(name) is not None) == (expected == "hold-sync-conflict")


@pytest.mark.parametrize("item", MANIFEST, ids=lambda item: item["file"])
def test_a_hostile_note_is_patched_in_its_own_lines_or_not_at_all(item: dict[str, str]):
    data = hostile(item["file"])
    note = parse(data)
    if note.readiness != "ready" or not split(note.text).has_block or item["file"].startswith("38"):
        with pytest.raises(CannotPatch):
            patch_properties(data, {"type": "changed"})
        return
    added = patch_properties(data, {"zz added": ["x", "[[y]]"]})
    assert patch_properties(added, {"zz added": DELETE}) == data
    for key in note.properties:
        assert parse(patch_properties(data, {key: DELETE})).body == note.body
        changed = parse(patch_properties(data, {key: "other: value"}))
        assert dict(changed.properties) == {**note.properties, key: "other: value"}


@pytest.mark.parametrize("name", ["03-empty-file.md", "04-only-fence.md", "05-unterminated.md", "09-cr-only.md"])
def test_a_note_that_looks_unfinished_gets_no_second_block(name: str):
    with pytest.raises(CannotPatch):
        set_properties(hostile(name), {"id": "mem_a"})


def test_values_are_typed_as_obsidian_shows_them():
    values = parse(hostile("17-norway-time-octal.md")).properties
    assert values == {
        "country": "no",
        "switch": "on",
        "wake": "06:20",
        "lunch": "12:30",
        "zip": "01234",
        "big": "1_000",
        "ver": "1.10",
    }
    note = parse(b"---\na: true\nb: ~\nc: 12\nd: 0.5\ne: 1e3\nf: -0\ng: 99999999999999999999\nh: 2024-01-02\n---\n")
    assert list(note.properties.values()) == [True, None, 12, 0.5, "1e3", "-0", "99999999999999999999", "2024-01-02"]
    assert list(parse(hostile("16-numeric-keys.md")).properties) == ["2024", "~", "on"]
    assert parse(hostile("38-json-frontmatter.md")).properties == {"tags": ["memory/fact"], "publish": False}
    assert parse(hostile("42-line-separators.md")).properties == {"a": "x\u2028y"}


def test_separators_that_are_no_line_ends_stay_inside_a_value():
    note = parse("---\na: x\u2028b: y\x85z\u2029\ud7ff\n---\n".encode())
    assert note.readiness == "held" or note.properties == {"a": "x\u2028b: y\x85z\u2029\ud7ff"}
    assert parse("---\na: x\u2028y\x85z\n---\n".encode()).properties == {"a": "x\u2028y\x85z"}


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("---\na: 1\nb: x: y\n---\n", "broken-properties", 3),
        ("---\na: 1\n\nb:\n  c: 1\n  c: 2\n---\n", "duplicate-key", 6),
        ("---\n- a\n---\n", "broken-properties", 2),
        ("---\na: \x01\n---\n", "broken-properties", 2),
        ("---\na: 1\n--- \nb: 2\n---\n", "broken-properties", 3),
        ('---\n{"a": 1,\n "a": 2}\n---\n', "duplicate-key", 2),
        ("---\na: {{date}}\n---\n", "broken-properties", 2),
        ("---\na: [1, 2\n---\n", "broken-properties", 2),
        ("---\nb: &x 1\n---\n", "broken-properties", 2),
        ("x\n<<<<<<< a\n=======\n>>>>>>> b\n", "conflict-markers", 2),
    ],
)
def test_a_held_note_names_the_line(text: str, kind: str, line: int):
    note = parse(text.encode())
    assert note.readiness == "held"
    assert [(problem.kind, problem.line) for problem in note.problems] == [(kind, line)]
    assert note.problems[0].advice


def test_limits_hold_a_note():
    assert parse(b"x" * 11, max_bytes=10).problems[0].kind == "too-large"
    many = "a: [" + ", ".join("1" for _ in range(6000)) + "]\n"
    assert parse(f"---\n{many}---\n".encode()).readiness == "held"
    assert parse(("---\na: " + "[" * 11 + "]" * 11 + "\n---\n").encode()).readiness == "ready"
    assert parse(("---\na: " + "[" * 12 + "]" * 12 + "\n---\n").encode()).readiness == "held"
    deep_json = '{"a": ' + "[" * 5000 + "]" * 5000 + "}"
    assert parse(f"---\n{deep_json}\n---\n".encode()).readiness == "held"
    assert parse(b"---\na: caf\xe9\n---\n").problems[0].line == 2


def test_flags_name_the_line_and_leave_the_note_ready():
    note = parse("---\na: 1\ntags: #x\nup: [[Home]]\nmore:\n  - [[A]]\n---\ntext\n\u202eb\0\n".encode())
    assert note.readiness == "ready"
    assert {(problem.kind, problem.line) for problem in note.problems} == {
        ("hash-tags", 3),
        ("unquoted-wikilink", 4),
        ("unquoted-wikilink", 5),
        ("bidi-characters", 9),
        ("nul-byte", 9),
    }
    assert parse("---\na: 🏴\U000e0067\U000e0062\U000e007f 👩‍👩‍👧\n---\n".encode()).problems == ()
    assert parse(b"---\ntype: x\nno end\n").problems[0].kind == "unfinished-properties"


def test_a_malformed_property_falls_to_its_default_and_the_text_is_still_a_memory():
    text = (
        "---\nid: a/b\nversion: -3\ncreated: yesterday\nimportance: high\n"
        "status: approved\nexpires: 2024-02-30\n---\nx\n"
    )
    fields, problems = read_fields(parse(text.encode()))
    assert {(problem.field, problem.line) for problem in problems} == {
        ("id", 2),
        ("version", 3),
        ("created", 4),
        ("importance", 5),
        ("status", 6),
        ("expires", 7),
    }
    assert (fields.id, fields.version, fields.created, fields.importance, fields.status) == (
        None,
        None,
        None,
        0.5,
        "active",
    )


def test_good_properties_are_typed():
    text = (
        "---\nimportance: 0.80\nconfidence: 1\ncreated: 2026-11-30\nupdated: 2026-11-30T12:00:00+02:00\n"
        "version: 4\nvisibility: agent-only\nvalid_from: 2026\nsupersedes: mem_a\ntags: '#A/b, c'\n---\nsee #a/B #d\n"
    )
    fields, problems = read_fields(parse(text.encode()))
    assert not problems
    assert (fields.importance, fields.confidence, fields.version, fields.visibility) == (0.8, 1.0, 4, "agent-only")
    assert fields.created is not None
    assert fields.created.isoformat() == "2026-11-30T00:00:00+00:00"
    assert fields.updated is not None
    assert fields.updated.isoformat() == "2026-11-30T10:00:00+00:00"
    assert (fields.valid_from, fields.supersedes, fields.tags) == ("2026", ("mem_a",), ("A/b", "c", "d"))


def test_tags_are_read_in_every_shape_people_write():
    assert tags_of(["memory/fact", "#Home", 2024]) == ("memory/fact", "Home", "2024")
    assert tags_of("memory/fact, Home home") == ("memory/fact", "Home")
    assert tags_of(None) == ()
    assert read_fields(parse(hostile("23-tags-shapes.md")))[0].tags == ("memory/fact", "Home")


def test_tags_in_the_body_are_those_obsidian_sees():
    note = parse(hostile("45-tags-everywhere.md"))
    assert body_tags(note.body) == ("real/tag", "paren", "y1984", "日本/茶")
    assert read_fields(note)[0].tags == ("memory/fact", "real/tag", "paren", "y1984", "日本/茶")
    assert body_tags("#a/ #🌲x, **#bold** [[N#h]] #标签。 $5 #cost $6 # no\n%%\n#hidden\n%%\n#end") == (
        "a",
        "🌲x",
        "bold",
        "标签",
        "cost",
        "end",
    )


def test_links_in_the_body_are_those_obsidian_sees():
    links = links_in(parse(hostile("46-links-everywhere.md")).body)
    seen = [(link.kind, link.target, link.heading, link.block, link.alias) for link in links]
    assert seen == [
        ("wiki", "A", None, None, None),
        ("wiki", "A", None, None, "b"),
        ("wiki", "A", "h", None, None),
        ("wiki", "A", None, "blk", None),
        ("wiki", "", None, "own", None),
        ("embed", "img.png", None, None, "100"),
        ("wiki", "dir/A.md", None, None, None),
        ("wiki", "N", None, None, "alias"),
        ("markdown", "A b.md", "h", None, "md"),
        ("markdown", "A b.md", None, None, "ang"),
        ("wiki", "A", None, None, None),
    ]
    assert links[7].line == 5
    assert links_in("[x](https://example.invalid) [y](mailto:a@b)") == ()


def test_a_code_span_ends_in_its_paragraph_at_an_equally_long_run():
    assert body_tags("``a ` #code`` #yes") == ("yes",)
    assert body_tags("one ` tick\n\n #yes and ` #no`") == ("yes",)
    assert body_tags("\\` #yes `#no`") == ("yes",)
    runs = " ".join("`" * length for length in range(1, 1200))
    assert body_tags(f"{runs} #yes") == ("yes",)


def test_title_and_summary_come_from_the_text():
    note = parse(b"---\na: 1\n---\n```\n# code\n```\n# Tea order #\n\nGreen tea.\n")
    assert title_of(note, "a/File.md") == "Tea order"
    assert title_of(parse(b"text"), "a/File name.md") == "File name"
    assert summary_of(parse(b"# T\n\nGreen tea.\nMore\n")) == "Green tea."
    assert summary_of(parse(b"---\nsummary: Given\n---\nx\n")) == "Given"
    assert len(summary_of(parse(b"word " * 100))) <= 200


def test_the_line_of_a_key_counts_from_the_top_of_the_file():
    assert locate_key_line("---\n# c\na: |\n  b: no\nb: 1\n---\n", "b") == 5
    assert locate_key_line("---\n# c\n---\n", "b") is None
    assert locate_key_line("---\na: b: c\n---\n", "a") is None
    assert parse(b"---\na: 1\n---\nbody\n").body_start_line == 4


FRAGMENTS = st.sampled_from(
    [
        "---\n",
        "---",
        "\r\n",
        "\n",
        "\ufeff",
        "a: ",
        "- ",
        "[",
        "{",
        "&x ",
        "*x",
        "!t ",
        "|\n",
        ">+\n ",
        "'",
        '"',
        "# ",
        "? ",
        "<<<<<<< a\n",
        "=======\n",
        ">>>>>>> b\n",
        "```\n",
        "%%",
        "$",
        "[[",
        "]]",
        "#tag ",
        "\0",
        "\u2028",
        "\x85",
        "\t",
        "<!--",
    ]
)


@given(st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=40).map(lambda parts: "".join(parts).encode())))
@settings(max_examples=500, deadline=None)
def test_reading_never_raises(data: bytes):
    for start in (b"", b"---\n"):
        note = parse(start + data)
        read_fields(note)
        links_in(note.body)
        title_of(note, "x.md")
        summary_of(note)
        if note.readiness == "ready":
            assert note.text.endswith(note.body)
            assert note.body_start_line == note.text[: len(note.text) - len(note.body)].count("\n") + 1


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
def test_a_patch_of_anything_keeps_the_body_or_refuses(text: str):
    data = ("---\n" + text).encode()
    try:
        result = set_properties(data, {"id": "mem_a"})
    except CannotPatch:
        return
    assert parse(result).body == parse(data).body
    assert parse(result).properties["id"] == "mem_a"

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BadNote
from gateway.notes.fields import MemoryFields, read_fields
from gateway.notes.namespace import Namespace, locate, note_path
from gateway.notes.note import parse
from gateway.notes.properties import same
from gateway.notes.template import PROPERTY_ORDER, properties_of, render_memory
from gateway.notes.text import (
    content_hash,
    derived_memory_id,
    etag_of,
    file_name_for,
    is_memory_id,
    new_memory_id,
    normalise,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
VALUES = st.one_of(
    TEXT.filter(bool),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(0, 1).filter(lambda number: number == 0 or number > 1e-9),
    st.lists(TEXT, min_size=1, max_size=4),
    st.sampled_from(["no", "1e3", "0123", "2026-11-30", "2026-11-30T10:00:00Z", "[[A|b]]", "x: y", "- x", "# y", "~"]),
)


@given(st.dictionaries(st.sampled_from(PROPERTY_ORDER), VALUES, max_size=8), TEXT)
@settings(max_examples=300, deadline=None)
def test_a_new_note_reads_back_as_the_same_values_and_text(properties: dict[str, object], body: str):
    try:
        data = render_memory(properties, body)  # type: ignore[arg-type]
    except BadNote:
        assert not properties or parse(b"---\na: 1\n---\n" + body.encode()).readiness != "ready"
        return
    note = parse(data)
    assert list(note.properties) == [key for key in PROPERTY_ORDER if key in properties]
    assert all(same(note.properties[key], value) for key, value in properties.items())  # type: ignore[arg-type]
    assert note.body.rstrip("\n") == body.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    assert b"\r" not in data


def test_a_new_note_looks_as_a_person_would_write_it():
    fields = MemoryFields(
        id="mem_a",
        type="preference",
        summary="Green tea: no sugar",
        tags=("memory/preference", "茶"),
        importance=0.8,
        source="manual",
        created=datetime(2026, 11, 30, 10, tzinfo=UTC),
        version=1,
    )
    data = render_memory(properties_of(fields), "Likes green tea.\r\n")
    assert data.decode() == (
        '---\nid: mem_a\ntype: preference\nsummary: "Green tea: no sugar"\ntags:\n  - memory/preference\n  - 茶\n'
        "importance: 0.8\nconfidence: 1.0\nstatus: active\nsource: manual\ncreated: 2026-11-30T10:00:00Z\nversion: 1\n"
        "---\nLikes green tea.\n"
    )
    assert read_fields(parse(data)) == (fields, ())


def test_a_text_that_would_be_held_back_is_refused():
    with pytest.raises(BadNote):
        render_memory({"id": "mem_a"}, "<<<<<<< a\n=======\n>>>>>>> b\n")
    with pytest.raises(BadNote):
        render_memory({"id": "mem_a"}, "\ud800")
    with pytest.raises(BadNote):
        render_memory({}, "---\na: 1\n---\n")


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_a_file_name_is_acceptable_everywhere_and_found_again(text: str):
    name = file_name_for(text, new_memory_id())
    assert len(name.encode()) <= 120 + 1 + 6 + 3
    assert not re.search(r'[\\/:*?"<>|#^\[\]]', name)
    assert name[0] not in ".- "
    path = note_path(Namespace("user", "tom", "long_term"), name, owner="")
    place = locate(path, owner="")
    assert place is not None
    assert str(place.namespace) == "user/tom/long_term"


def test_file_names_stay_readable_in_every_script():
    assert file_name_for("# 用户偏好中文输出。\nmore", "mem_abc123") == "用户偏好中文输出。 abc123.md"
    assert file_name_for("- [ ] Tea: green/black?", "mem_abc123") == "Tea green black abc123.md"
    assert file_name_for("CON", "mem_abc123") == "Memory CON abc123.md"
    assert file_name_for("\n \n", "mem_abc123") == "Memory abc123.md"
    assert file_name_for("word " * 60, "mem_abc123").startswith("word word")


def test_ids_sort_by_time_and_derived_ones_depend_on_the_path_only():
    assert new_memory_id(1) < new_memory_id(2) < new_memory_id(2**41)
    assert len({new_memory_id(5) for _ in range(500)}) == 500
    assert derived_memory_id("a/é.md") == derived_memory_id("a/e\u0301.md") != derived_memory_id("a/e.md")
    assert is_memory_id(new_memory_id())
    assert is_memory_id(derived_memory_id("x"))
    assert not is_memory_id("mem_x")
    assert not is_memory_id("01JTEST")


def test_hashes_see_bytes_or_meaning():
    assert etag_of(b"a") != etag_of(b"a\n")
    assert content_hash("Green  TEA\n") == content_hash("green tea") != content_hash("green teas")
    assert normalise("ＡＢ\u3000ß") == "ab ss"

"""Structured memory in notes that people edit too: it reads back, and every other byte stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BadNote
from gateway.notes.note import parse
from gateway.notes.structured import HEADINGS, empty, plain, read_structured, write_structured
from gateway.notes.structured_content import UserMemoryContent, WorkProfileContent
from gateway.starter import templates

USER = (templates() / "UserMemory.md").read_bytes()
WORK = (templates() / "WorkMemory.md").read_bytes()
NOTES = [USER, USER.replace(b"\n", b"\r\n"), b"Words.\n", b"Words.\r\n## people\r\n"]
PEOPLE = b"""---
occupation: "smith"   # since 2019
mine: [1, 2]
interests:
  - tea # green
---
My own words.

## People

These are my friends.

```yaml
# family first
- name: Ann
  meta: {confidence: 0.5}
```

More words.

## Places
```yaml
- {name: Ghent, preference: like}
```
The end, without a line end."""

texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=30)
maybe = st.none() | texts
names = texts.filter(str.strip)
lists = st.lists(texts, max_size=3)
windows = st.lists(
    st.fixed_dictionaries(
        {
            "weekdays": st.lists(st.integers(1, 7) | st.sampled_from(["mon", "周一"]), max_size=2),
            "start": st.just("09:00"),
            "end": st.sampled_from(["10:30", "24:00"]),
        }
    ),
    max_size=2,
)
metas = st.fixed_dictionaries(
    {
        "source": maybe,
        "confidence": st.none() | st.floats(0, 1),
        "last_updated_at": st.none() | st.just("2026-11-30T10:00:00Z"),
    }
)
contents = st.builds(
    UserMemoryContent.model_validate,
    st.fixed_dictionaries(
        {
            "occupation": maybe,
            "timezone": maybe,
            "interests": lists,
            "custom_rules": lists,
            "people": st.lists(st.fixed_dictionaries({"name": names, "notes": maybe, "meta": metas}), max_size=3),
            "places": st.lists(
                st.fixed_dictionaries({"name": names, "commute_minutes": st.none() | st.integers(0, 99)}), max_size=2
            ),
            "preferences": st.fixed_dictionaries({"communication_style": maybe, "language_preference": lists}),
            "scheduling_preferences": st.fixed_dictionaries(
                {"productive_windows": windows, "preferred_meeting_duration_minutes": st.just([30, 60])}
            ),
            "recurring_routines": st.lists(st.fixed_dictionaries({"name": names, "time_windows": windows}), max_size=2),
        }
    ),
)
works = st.builds(
    WorkProfileContent.model_validate,
    st.fixed_dictionaries(
        {
            "expertise": lists,
            "team_context": maybe,
            "current_projects": st.lists(
                st.fixed_dictionaries(
                    {
                        "name": names,
                        "status": st.none() | st.sampled_from(["planned", "active", "paused", "completed"]),
                        "deadline": st.none() | st.dates().map(str),
                        "collaborators": lists,
                        "key_milestones": st.lists(
                            st.fixed_dictionaries({"name": names, "due_date": st.none() | st.dates().map(str)}),
                            max_size=2,
                        ),
                    }
                ),
                max_size=2,
            ),
            "work_habits": st.fixed_dictionaries({"available_hours": windows, "notes": maybe}),
        }
    ),
)


def read(data: bytes, model=UserMemoryContent):
    return read_structured(parse(data), model)


def test_the_templates_say_nothing_and_say_it_well():
    """Exactly the default structure of the seed."""
    assert read(USER) == (UserMemoryContent(), ())
    assert read(WORK, WorkProfileContent) == (WorkProfileContent(), ())
    assert empty("work_memory") == WorkProfileContent()
    assert plain(UserMemoryContent())["people"] == []


def test_every_field_that_is_no_value_has_a_heading_in_the_template():
    for data, model in ((USER, UserMemoryContent), (WORK, WorkProfileContent)):
        headed = [name for name in model.model_fields if name in HEADINGS]
        assert all(f"## {HEADINGS[name]}\n".encode() in data for name in headed)
        single = [name for name in model.model_fields if name not in HEADINGS]
        assert all(f"\n{name}:".encode() in data for name in single)


@settings(max_examples=120, deadline=None)
@given(
    contents, contents, st.sampled_from([USER, USER.replace(b"\n", b"\r\n"), b"Words.\n", b"Words.\r\n## people\r\n"])
)
def test_what_is_written_reads_back(first, second, note):
    one = write_structured(note, first)
    assert read(one) == (first, ())
    two = write_structured(one, second)
    assert read(two) == (second, ())
    assert write_structured(two, second) == two


@settings(max_examples=60, deadline=None)
@given(works)
def test_work_reads_back(content):
    assert read(write_structured(WORK, content), WorkProfileContent) == (content, ())


@settings(max_examples=80, deadline=None)
@given(contents, st.sampled_from([b"\n", b"\r\n"]))
def test_a_persons_own_text_stays(content, eol):
    """Text between the blocks, comments and properties of the person's own are where they were."""
    written = write_structured(PEOPLE.replace(b"\n", eol), content)
    for own in (b"mine: [1, 2]", b"My own words.", b"These are my friends.", b"More words.", b"\nThe end, without"):
        assert own in written
    assert written.count(b"\r\n") == (written.count(b"\n") if eol == b"\r\n" else 0)


def test_only_what_changes_is_written():
    content, _ = read(PEOPLE)
    same = write_structured(PEOPLE, content)
    assert same == PEOPLE
    moved = content.model_copy(update={"occupation": "baker"})
    assert write_structured(PEOPLE, moved) == PEOPLE.replace(b'"smith"', b"baker")
    ghent = content.places[0].model_copy(update={"category": "city"})
    there = write_structured(PEOPLE, content.model_copy(update={"places": (ghent,)}))
    old = b"- {name: Ghent, preference: like}\n"
    assert there == PEOPLE.replace(old, b"- name: Ghent\n  category: city\n  preference: like\n")


def test_a_missing_heading_is_appended_and_a_heading_without_block_gets_one():
    content = UserMemoryContent.model_validate({"people": [{"name": "Ann"}], "places": [{"name": "Ghent"}]})
    written = write_structured(b"## People\nI know nobody.\n", content)
    block = b"\n```yaml\n- name: %s\n```\n"
    assert written == b"## People\n" + block % b"Ann" + b"I know nobody.\n\n## Places\n" + block % b"Ghent"


@pytest.mark.parametrize(
    ("old", "new", "line", "path"),
    [
        (b"- name: Ann", b"- nom: Ann", 15, "people[0].name"),
        (b"confidence: 0.5", b"confidence: 5", 16, "people[0].meta.confidence"),
        (b"preference: like", b"preference: love", 23, "places[0].preference"),
        (b"  meta: {", b" meta: {", 16, "people"),
        (b"- name: Ann", b"- &a Ann", 15, "people"),
        (b'occupation: "smith"', b"occupation: true", 2, "occupation"),
        (b"\n## Places", b"\n## People", 21, "people"),
        (b"More words.", b"```yaml", 18, None),
    ],
)
def test_what_does_not_fit_is_named_by_line_and_path(old, new, line, path):
    content, problems = read(PEOPLE.replace(old, new))
    if path is None:  # another block of the same section is the person's own
        assert content is not None or problems
        return
    assert content is None
    assert (problems[0].kind, problems[0].line, problems[0].field) == ("bad-structure", line, path)


def test_a_note_with_a_problem_is_not_written_to():
    with pytest.raises(BadNote) as caught:
        write_structured(PEOPLE.replace(b"- name: Ann", b"- nom: Ann"), UserMemoryContent())
    assert caught.value.line == 15


def test_people_write_as_people_do():
    """A number where text is meant, one word for a list, an empty line in Obsidian's list, JSON in a block."""
    note = b"---\ninterests: tea\navoid_topics:\n  -\n  - 5\noccupation: 7\n---\n## PEOPLE\n~~~yml\n"
    note += b'[{"name": "Ann"}]\n~~~\n'
    content, problems = read(note)
    assert problems == ()
    assert (content.interests, content.avoid_topics, content.occupation) == (("tea",), ("5",), "7")
    assert content.people[0].name == "Ann"


def test_headings_in_code_are_no_headings():
    note = b"```md\n## People\n```\n\n```yaml\n- nobody: here\n```\n"
    assert read(note) == (UserMemoryContent(), ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"foo": 1},
        {"people": [{}]},
        {"people": [{"name": " "}]},
        {"people": [{"name": "x", "meta": {"confidence": 1.1}}]},
        {"places": [{"name": "x", "preference": "love"}]},
        {"recurring_routines": [{"name": "x", "time_windows": [{"weekdays": [9], "start": "09:00", "end": "10:00"}]}]},
        {"recurring_routines": [{"name": "x", "time_windows": [{"weekdays": [], "start": "9:00", "end": "10:00"}]}]},
        {"interests": ["a\0b"]},
    ],
)
def test_what_the_seed_does_not_have_is_refused(wrong):
    with pytest.raises(ValueError, match="validation error"):
        UserMemoryContent.model_validate(wrong)

"""Reads and writes structured memory in a note that people edit too: properties, and `yaml` blocks under headings.

Writing patches: only properties and blocks that change are written anew, every other byte stays. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from pydantic import ValidationError

from gateway.errors import BadNote, CannotPatch
from gateway.notes.fenced import Section, block_lines, sections_of, with_block
from gateway.notes.frontmatter import line_end_of, split
from gateway.notes.note import NoteProblem, ParsedNote, PropertyValue, parse
from gateway.notes.patch import Change, set_properties
from gateway.notes.properties import read_value
from gateway.notes.structured_content import Content, UserMemoryContent, WorkProfileContent

# Which room of a user holds which content.
MODELS: Final[Mapping[str, type[Content]]] = {"user_memory": UserMemoryContent, "work_memory": WorkProfileContent}
# The heading above the block of each field that is no single value and no list of words.
HEADINGS: Final[Mapping[str, str]] = {
    "people": "People",
    "places": "Places",
    "preferences": "Preferences",
    "scheduling_preferences": "Scheduling preferences",
    "recurring_routines": "Recurring routines",
    "current_projects": "Current projects",
    "work_habits": "Work habits",
    "team_members": "Team members",
}
KIND: Final = "bad-structure"
_ADVICE = "Mend it; until then what the note said before stays in force."
JsonPath = tuple[str | int, ...]


def read_structured(note: ParsedNote, model: type[Content]) -> tuple[Content | None, tuple[NoteProblem, ...]]:
    """What a note says, or what is wrong with it: each problem with its line in the file and its path as `field`.

    What is not there has its default: a note without any of the headings says nothing, and says it well.
    """
    if note.readiness != "ready":
        return None, note.problems
    found = _Reader(note, model)
    problems = found.read()
    if problems:
        return None, problems
    try:
        return model.model_validate(found.values), ()
    except ValidationError as error:
        return None, tuple(found.explained(one) for one in wrong_in(error))


def write_structured(data: bytes, content: Content) -> bytes:
    """The bytes of a note that says `content`; those it said already stay as they are.

    Raises:
        BadNote: the note has a problem that a person must mend first, with its line.
        CannotPatch: the change could not be proven to read back the same; nothing was changed.
    """
    model = type(content)
    note = parse(data)
    if note.readiness == "ready":
        present, problems = read_structured(note, model)
    else:
        present, problems = None, note.problems
    if present is None:
        first = problems[0]
        raise BadNote(f"A person must mend the note first. {first.message}", line=first.line, advice=first.advice)
    before, after = plain(present), plain(content)
    body = _changed_body(note, before, after)
    text = data.decode("utf-8")
    head = text[: len(text) - len(note.body)]
    changes: dict[str, Change] = {
        name: cast("PropertyValue", after[name])
        for name in model.model_fields
        if name not in HEADINGS and before[name] != after[name]
    }
    result = set_properties((head + body).encode("utf-8"), changes)
    again, _ = read_structured(parse(result), model)
    if again is None or plain(again) != after:
        raise CannotPatch("The change could not be written so that it reads back the same.")
    return result


def plain(content: Content) -> dict[str, Any]:
    """The content as JSON has it, every field named."""
    return content.model_dump(mode="json")


def path_text(path: Sequence[str | int]) -> str:
    """A JSON path as people write it: `people[1].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that does not fit the content: where, and why."""

    path: JsonPath
    message: str


def wrong_in(error: ValidationError) -> list[Wrong]:
    """What does not fit, with the paths of the JSON alone."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    wrongs: dict[JsonPath, Wrong] = {}
    for one in found:
        path = _json_path(one["loc"])
        message = str(one["msg"]).removeprefix("Value error, ").rstrip(".")
        if one["type"] == "string_pattern_mismatch" and path[-1] in ("start", "end"):
            message = "should be a time such as 09:30"
        wrongs.setdefault(path, Wrong(path, message))
    return list(wrongs.values())


class _Reader:
    """Collects the values of a note, and where each of them stands."""

    def __init__(self, note: ParsedNote, model: type[Content]) -> None:
        self._note = note
        self._fields = list(model.model_fields)
        self._lines: dict[JsonPath, int] = {}
        self.values: dict[str, Any] = {}

    def read(self) -> tuple[NoteProblem, ...]:
        problems: list[NoteProblem] = []
        listed = _lists(self._fields)
        for name in self._fields:
            if name not in HEADINGS and name in self._note.properties:
                self._property(name, listed=name in listed)
        sections = sections_of(self._note.body, [HEADINGS[name] for name in self._fields if name in HEADINGS])
        for name in self._fields:
            if name in HEADINGS and (section := sections.get(HEADINGS[name])) is not None:
                problems += self._block(name, section)
        return tuple(problems)

    def explained(self, wrong: Wrong) -> NoteProblem:
        path = wrong.path
        line = next((self._lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._lines), None)
        message = f"`{path_text(path)}`: {wrong.message}."
        return NoteProblem(KIND, message, line, _ADVICE, path_text(path))

    def _property(self, name: str, *, listed: bool) -> None:
        value = self._note.properties[name]
        line = self._note.key_lines.get(name)
        if line is not None:
            self._lines[(name,)] = line
        if listed:
            # An empty line of a list in Obsidian's panel is null, a single word is no list yet.
            items = value if isinstance(value, list) else [value]
            self.values[name] = [item for item in items if item is not None]
        else:
            self.values[name] = value

    def _block(self, name: str, section: Section) -> list[NoteProblem]:
        first = self._note.body_start_line + section.line
        if section.trouble is not None:
            return [NoteProblem(KIND, section.trouble, first, _ADVICE, name)]
        if section.block is None:
            return []
        start = self._note.body_start_line + section.block_line
        try:
            value, lines = read_value(section.block)
        except BadNote as error:
            message = _of_block(error.detail, section.title)
            return [NoteProblem(KIND, message, start + (error.line or 1) - 1, _ADVICE, name)]
        self._lines[(name,)] = start
        self._lines |= {(name, *path): start + line - 1 for path, line in lines.items() if path}
        if value is not None:
            self.values[name] = value
        return []


def _of_block(detail: str, title: str) -> str:
    """What is wrong with properties, said of a block."""
    for plural, single in (("are", "is"), ("hold", "holds"), ("use", "uses")):
        detail = detail.replace(f"The properties {plural} ", f"The block `{title}` {single} ")
    return detail


def _changed_body(note: ParsedNote, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    body = note.body
    eol = line_end_of(note.text)
    wanted = [name for name in after if name in HEADINGS]
    for name in wanted:
        if before[name] == after[name]:
            continue
        section = sections_of(body, [HEADINGS[one] for one in wanted]).get(HEADINGS[name])
        body = with_block(body, HEADINGS[name], section, block_lines(after[name], eol), eol)
    return body


@cache
def _list_adapters() -> dict[str, bool]:
    found: dict[str, bool] = {}
    for model in MODELS.values():
        for name, field in model.model_fields.items():
            found[name] = field.get_default(call_default_factory=True) == ()
    return found


def _lists(names: Sequence[str]) -> set[str]:
    return {name for name in names if _list_adapters()[name] and name not in HEADINGS}


def _json_path(loc: tuple[int | str, ...]) -> JsonPath:
    """Leave out the name of the kind of day that pydantic tried last."""
    return loc[: loc.index("weekdays") + 2] if "weekdays" in loc else loc


def empty(room: str) -> Content:
    """The content of a user who has said nothing yet."""
    return MODELS[room].model_validate({})


def texts_of(data: bytes) -> str:
    """The text below the properties as it stands, with the line ends of every other system."""
    return split(data.decode("utf-8", "replace")).body.replace("\r\n", "\n")

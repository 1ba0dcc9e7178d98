"""Structured memories (seed 001): one about the person and one about their work, kept in notes that people edit too.

While a person's edit cannot be read, what the note said before stays in force, and the problem is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.access.principal import Principal
from gateway.clock import now
from gateway.errors import BadNote, Invalid
from gateway.importer.parts import Parts
from gateway.ledger import structured
from gateway.notes.note import parse
from gateway.notes.structured import MODELS, Wrong, empty, path_text, plain, read_structured, write_structured, wrong_in
from gateway.notes.structured_content import Content, UserMemoryContent, WorkProfileContent
from gateway.notes.template import time_text
from gateway.services.fixed_notes import FixedNote, Rewriting, Whose, look, rewrite, seen, whose
from gateway.services.merging import dated, index_in, merged
from gateway.services.records import InReview
from gateway.services.requests import Precondition
from gateway.services.secrets import check_secrets

# What the routes call the two, and where each is kept.
ROOMS: Final = {"user": "user_memory", "work": "work_memory"}
# A change need not say what it is based on.
ANY: Final = Precondition()


class GivenContent(BaseModel):
    """The body of `PUT` and `PATCH /api/v1/memories/user|work`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose memory is to change, and on which version of its note that is based."""

    user_id: str | None = None
    precondition: Precondition = ANY


@dataclass(frozen=True, slots=True)
class Stored:
    """A structured memory in force, and the etag of its note. `content` is None where no version ever read well."""

    content: Content | None
    etag: str


@dataclass(frozen=True, slots=True)
class AllMemories:
    """Both structured memories of a user."""

    user_memory: UserMemoryContent | None
    work_memory: WorkProfileContent | None


def get(principal: Principal, parts: Parts, kind: str, *, user_id: str | None = None) -> Stored:
    """One structured memory of a user. Notes that a user does not have yet are made.

    Raises:
        NotFound: there is no such user, or it is another.
    """
    who = whose(principal, parts, user_id)
    note = look(parts, who, ROOMS[kind])
    seen(parts, who, note)
    return Stored(in_force(parts, note, ROOMS[kind]), note.read.etag)


def get_all(principal: Principal, parts: Parts, *, user_id: str | None = None) -> AllMemories:
    """Both structured memories of a user; what prompts are made of.

    Raises:
        NotFound: there is no such user, or it is another.
    """
    person = get(principal, parts, "user", user_id=user_id).content
    work = get(principal, parts, "work", user_id=user_id).content
    return AllMemories(
        person if isinstance(person, UserMemoryContent) else None,
        work if isinstance(work, WorkProfileContent) else None,
    )


def put(principal: Principal, parts: Parts, kind: str, given: GivenContent, asked: Asked) -> Stored | InReview:
    """Replace a structured memory as a whole.

    Raises:
        Invalid: the content does not fit; each wrong field with its JSON path.
        BadNote: the note has a problem that a person must mend first.
        ChangedElsewhere: the precondition does not hold.
    """
    content = _checked(ROOMS[kind], given.content, given.content)
    check_secrets(parts, content=given.content)
    return _changed(whose(principal, parts, asked.user_id), parts, ROOMS[kind], asked, lambda _before: content)


def patch(principal: Principal, parts: Parts, kind: str, given: GivenContent, asked: Asked) -> Stored | InReview:
    """Merge a partial content into a structured memory (RFC 7396; lists of named things by name).

    Raises:
        Invalid, BadNote, ChangedElsewhere: as for `put`.
    """

    check_secrets(parts, content=given.content)

    def composed(before: Content) -> Content:
        return _checked(ROOMS[kind], merged(plain(before), given.content), given.content)

    return _changed(whose(principal, parts, asked.user_id), parts, ROOMS[kind], asked, composed)


def in_force(parts: Parts, note: FixedNote, room: str) -> Content | None:
    """What a note says; while it cannot be read, what it said when it last could."""
    with parts.ledger.read() as tx:
        good = structured.last_good(tx, note.row.note_id)
    if good is not None and good.room == room:
        try:
            return MODELS[room].model_validate(good.content)
        except ValidationError:  # kept by an earlier version with other rules
            pass
    return read_structured(parse(note.read.data), MODELS[room])[0]


def _changed(
    who: Whose, parts: Parts, room: str, asked: Asked, composed: Callable[[Content], Content]
) -> Stored | InReview:
    kept: list[Content] = []

    def compose(note: FixedNote) -> bytes:
        before = in_force(parts, note, room) or empty(room)
        after = plain(composed(before))
        content = MODELS[room].model_validate(dated(after, plain(before), time_text(now())))
        kept.append(content)
        try:
            return write_structured(note.read.data, content)
        except BadNote as error:
            raise BadNote(error.detail, file=note.row.path, line=error.line, advice=error.advice) from None

    done = rewrite(parts, who, Rewriting(room, asked.precondition, compose))
    return done if isinstance(done, InReview) else Stored(kept[-1], done.etag)


def _checked(room: str, content: dict[str, Any], given: dict[str, Any]) -> Content:
    try:
        return MODELS[room].model_validate(content)
    except ValidationError as error:
        found = [
            {"field": path_text(("content", *_in_request(one, content, given))), "message": one.message}
            for one in wrong_in(error)
        ]
    first = found[0]
    raise Invalid(
        f"`{first['field']}`: {first['message']}.",
        field=first["field"],
        advice="See /schema for what the content holds.",
        errors=found,
    )


def _in_request(wrong: Wrong, content: dict[str, Any], given: dict[str, Any]) -> Sequence[str | int]:
    """The path in what the caller sent: a merged list counts its items differently."""
    path = wrong.path
    if given is content or len(path) < 2 or not isinstance(path[1], int):
        return path
    listed = content.get(str(path[0]))
    items = cast("list[Any]", listed) if isinstance(listed, list) else []
    at = index_in(given.get(str(path[0])), items[path[1]]) if path[1] < len(items) else None
    return path if at is None else (path[0], at, *path[2:])

"""The resident agent files of a user (seed 000): SOUL, USER and MEMORY, which agents have at hand in every turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from gateway.access.principal import Principal
from gateway.errors import BadNote, Invalid
from gateway.importer.parts import Parts
from gateway.notes.patch import replace_body
from gateway.notes.structured import texts_of
from gateway.services.fixed_notes import FixedNote, Rewriting, look, rewrite, seen, whose
from gateway.services.records import InReview
from gateway.services.requests import Precondition
from gateway.services.secrets import check_secrets


@dataclass(frozen=True, slots=True)
class FileKind:
    """One of the three files: what the API calls its type, and where it is kept."""

    file_type: str
    room: str


FILES: Final[Mapping[str, FileKind]] = {
    "user": FileKind("user_md", "user_file"),
    "soul": FileKind("soul_md", "soul"),
    "memory": FileKind("memory_md", "memory_file"),
}


class NewText(BaseModel):
    """The body of `PUT /api/config/agent-files/{name}`; `expected_version`: the version the text is based on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    expected_version: int | None = Field(None, ge=1)


@dataclass(frozen=True, slots=True)
class AgentFile:
    """An agent file: its text without properties, and the number of its version."""

    name: str
    file_type: str
    content: str
    version: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The answer to a write of an agent file."""

    name: str
    file_type: str
    version: int
    message: str = "ok"


def kind_of(name: str) -> FileKind:
    """Which of the three files is meant. AGENTS.md is none of them: it is the platform's.

    Raises:
        Invalid: none of them; worded as seed 000 has it.
    """
    found = FILES.get(name)
    if found is None:
        raise Invalid("无效的文件名", field="name", advice=f"One of {', '.join(FILES)}.")
    return found


def get(principal: Principal, parts: Parts, name: str, *, user_id: str | None = None) -> tuple[AgentFile, str]:
    """An agent file of a user, and the etag of its note. A file that is missing is made from its template.

    Raises:
        Invalid: there is no such file.
        NotFound: there is no such user, or it is another.
    """
    kind = kind_of(name)
    who = whose(principal, parts, user_id)
    note = look(parts, who, kind.room)
    seen(parts, who, note)
    return AgentFile(name, kind.file_type, texts_of(note.read.data), note.row.version), note.read.etag


def put(
    principal: Principal, parts: Parts, name: str, new: NewText, *, user_id: str | None, precondition: Precondition
) -> tuple[WrittenFile, str] | InReview:
    """Replace the text of an agent file; its properties stay. What an agent wants to write becomes a draft.

    Raises:
        Invalid: there is no such file, or no text.
        ChangedElsewhere: another version is the present one by now.
        BadNote: the text cannot stand in a note.
    """
    kind = kind_of(name)
    check_text(parts, new.content)
    who = whose(principal, parts, user_id)
    done = rewrite(parts, who, Rewriting(kind.room, precondition, lambda note: with_text(note, new.content)))
    return done if isinstance(done, InReview) else (WrittenFile(name, kind.file_type, done.version), done.etag)


def check_text(parts: Parts, text: str, *, field: str = "content") -> None:
    """Refuse a text that no agent file can hold.

    Raises:
        Invalid: it is empty, or holds a NUL or half a character.
        SecretFound: it holds a secret.
    """
    if not text.strip():
        raise Invalid(f"`{field}` must not be empty.", field=field)
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Invalid(f"`{field}` holds a NUL or half a character.", field=field)
    check_secrets(parts, **{field: text})


def with_text(note: FixedNote, text: str) -> bytes:
    """The bytes of a note with another text.

    Raises:
        BadNote: the text would be read as properties or as an unmerged conflict.
    """
    if texts_of(note.read.data) == text.replace("\r\n", "\n"):
        return note.read.data
    try:
        return replace_body(note.read.data, text, exact=True)
    except BadNote as error:
        raise BadNote(error.detail, field="content", file=note.row.path, line=error.line) from None

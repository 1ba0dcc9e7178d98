"""Turns a parsed note at a place into its registry row. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from gateway.importer.places import Place
from gateway.index.schema import IndexedNote
from gateway.ledger.registry import NoteRow
from gateway.notes.fields import VISIBILITY_WIDTH, MemoryFields, read_fields
from gateway.notes.note import NoteProblem, ParsedNote, summary_of, title_of
from gateway.notes.paths import path_key
from gateway.notes.temporal import read_validity
from gateway.notes.text import content_hash

DEFAULT_TYPE = "note"
HELD = "held"


def visibility_at(place: Place, claimed: str | None) -> tuple[str, NoteProblem | None]:
    """The visibility in force, and a problem where the note claims a wider one than its folder has."""
    given = place.namespace.default_visibility
    if claimed is None or claimed == given:
        return given, None
    if VISIBILITY_WIDTH[claimed] < VISIBILITY_WIDTH[given]:
        return claimed, None
    message = f"The note claims to be `{claimed}`, but its folder is `{given}`."
    return given, NoteProblem(
        "foreign-claim", message, None, "Move the note to another folder to share it.", "visibility"
    )


def note_row(
    note_id: str,
    place: Place,
    parsed: ParsedNote,
    *,
    etag: str,
    version: int,
    file_time: int,
    previous: NoteRow | None,
    changed_at: int,
) -> tuple[NoteRow, tuple[NoteProblem, ...]]:
    """The registry row of a readable note, and what is wrong with its properties.

    Args:
        file_time: the file's time in ms, for a note that does not say when it was made.
        previous: the row before, whose creation time and index state are kept.
        changed_at: when the change was seen, in ms.
    """
    fields, problems = read_fields(parsed)
    visibility, claim = visibility_at(place, fields.visibility)
    created = _ms(fields.created) or (previous.created_at if previous else file_time)
    updated = changed_at if previous else (_ms(fields.updated) or file_time)
    namespace = place.namespace
    written = fields.updated or fields.created or datetime.fromtimestamp(file_time / 1000, UTC)
    validity, malformed = read_validity(parsed.properties, written=written, lines=parsed.key_lines)
    row = NoteRow(
        note_id=note_id,
        path=place.path,
        path_key=path_key(place.path),
        namespace=str(namespace),
        user_id=namespace.user_id,
        agent_id=namespace.agent_id,
        workspace_id=namespace.workspace_id,
        session_id=previous.session_id if previous else None,
        memory_type=fields.type or _type_of(place),
        title=_title(parsed, place, note_id, fields.summary),
        summary=fields.summary or summary_of(parsed),
        tags=list(fields.tags),
        importance=fields.importance,
        confidence=fields.confidence,
        visibility=visibility,
        status="archived" if place.archived else fields.status,
        source=fields.source or "manual",
        source_ref=fields.source_ref,
        created_at=created,
        updated_at=updated,
        expires_at=_ms(fields.expires),
        version=version,
        etag=etag,
        content_hash=content_hash(parsed.body),
        read_only=place.read_only,
        fts_etag=previous.fts_etag if previous else None,
        vector_etag=previous.vector_etag if previous else None,
        temporal_kind=validity.kind,
        valid_from=validity.valid_from,
        valid_until=validity.valid_until,
        precision=validity.precision,
        timezone=validity.timezone,
        temporal_confidence=validity.confidence,
    )
    return row, (*problems, *malformed, *((claim,) if claim else ()))


def held_row(row: NoteRow, etag: str, changed_at: int) -> NoteRow:
    """The row of a known note whose file cannot be trusted right now: not recalled until it is mended."""
    # Its bytes may be the ones that the index knows: it must be told all the same.
    return replace(row, status=HELD, etag=etag, updated_at=changed_at, fts_etag=None, index_error=None)


def needs_indexing(before: NoteRow | None, after: NoteRow) -> NoteRow:
    """Mark a row for the index where anything the index holds has changed, though its bytes may be the same."""
    if before is None:
        return replace(after, fts_etag=None, vector_etag=None)
    seen = ("namespace", "visibility", "status", "memory_type", "title", "summary", "expires_at", "etag")
    changed = any(getattr(before, name) != getattr(after, name) for name in seen)
    return replace(after, fts_etag=None, index_error=None) if changed else after


def indexed_note(row: NoteRow, parsed: ParsedNote) -> IndexedNote:
    """What the index holds of a memory."""
    return IndexedNote(
        note_id=row.note_id,
        etag=row.etag,
        namespace=row.namespace,
        user_id=row.user_id or "",
        agent_id=row.agent_id,
        workspace_id=row.workspace_id,
        visibility=row.visibility,
        status=row.status,
        memory_type=row.memory_type,
        tags=tuple(row.tags),
        source=row.source,
        title=row.title,
        summary=row.summary,
        body=parsed.body,
        importance=row.importance,
        confidence=row.confidence,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        session_id=row.session_id,
    )


def claimed_fields(parsed: ParsedNote) -> MemoryFields:
    """What a note says of itself."""
    return read_fields(parsed)[0]


def _title(parsed: ParsedNote, place: Place, note_id: str, summary: str | None) -> str:
    """The note's heading or name; the mark that the gateway's own file names end with is no part of a title."""
    title = title_of(parsed, place.path)
    mark = f" {note_id[-6:]}"
    if place.path.endswith(f"{mark}.md") and title == PurePosixPath(place.path).stem:
        return summary or title.removesuffix(mark)
    return title


def _type_of(place: Place) -> str:
    room = place.namespace.room
    return {"profile": "profile", "preferences": "preference", "directives": "directive"}.get(room, DEFAULT_TYPE)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)

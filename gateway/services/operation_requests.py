"""What callers ask of the gateway as a whole, checked."""

from __future__ import annotations

from pydantic import Field

from gateway.services.requests import RequestBody


class SyncRequest(RequestBody):
    """The body of `POST /v1/sync`; `accept_rewrite`: the remote's history was rewritten, and that is right."""

    accept_rewrite: bool = False


class ConsolidationRequest(RequestBody):
    """The body of `POST /v1/consolidate`; `dry_run`: say what would be done, and write nothing."""

    dry_run: bool = False


class ImportedNote(RequestBody):
    """One note of an import: its path below the namespace's folder, and its text."""

    path: str = Field(min_length=1, max_length=1024)
    text: str


class ImportBatch(RequestBody):
    """The body of `POST /v1/import`."""

    namespace: str
    notes: tuple[ImportedNote, ...] = Field(min_length=1, max_length=200)

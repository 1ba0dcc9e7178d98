"""Taking in many notes at once, byte for byte, as a person would who copies them into the vault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import GatewayError, Invalid, NotAllowed, NotFound
from gateway.importer.parts import Parts
from gateway.importer.screening import screened
from gateway.importer.write import Order
from gateway.ledger import identities, registry
from gateway.ledger.journal import Actor
from gateway.notes.fields import read_fields
from gateway.notes.namespace import Namespace, folder_of, locate, parse_namespace
from gateway.notes.note import parse
from gateway.notes.paths import check_vault_path, conflict_copy_of, is_ignored
from gateway.notes.text import derived_memory_id, etag_of
from gateway.services.operation_requests import ImportBatch, ImportedNote


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What came of one note: `imported`, `unchanged` (it is there already) or `skipped`, and why."""

    path: str
    outcome: Literal["imported", "unchanged", "skipped"]
    id: str | None = None
    reason: str | None = None


def import_notes(principal: Principal, parts: Parts, batch: ImportBatch) -> list[ImportOutcome]:
    """Copy notes into the folder of a namespace. Nothing is overwritten; a repeated import changes nothing.

    Raises:
        Invalid: the namespace is unknown or holds one fixed note.
        NotAllowed: an agent's key, and the memory of others.
    """
    namespace = parse_namespace(batch.namespace)
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, namespace)
    missing = NotFound(f"There is no namespace {str(namespace)!r}.", field="namespace")
    decision = guard.check(parts.ledger, principal, "write", resource, missing)
    if principal.agent_id is not None and namespace.kind != "agent" and parts.settings.review.agents != "none":
        raise NotAllowed(
            "An agent imports into its own memory only: what it brings for others needs a person's decision.",
            field="namespace",
            advice="Write the memories one by one (POST /v1/memory), or import them with a user's key.",
        )
    if namespace.fixed_file is not None or namespace.kind == "session":
        raise Invalid(f"Notes cannot be imported into {namespace}.", field="namespace")
    folder = folder_of(namespace, owner=parts.settings.vault.owner)
    outcomes: dict[int, ImportOutcome] = {}
    orders: dict[int, Order] = {}
    entry = guard.entry(principal, "import", "memory", namespace=str(namespace), decision=decision)
    planned: set[str] = set()  # paths and ids that earlier notes of the batch take
    with parts.importer.lock:
        _register_owner(parts, namespace)
        for number, note in enumerate(batch.notes):
            judged = _judge(parts, folder, note, planned, by_agent=principal.agent_id is not None)
            if isinstance(judged, ImportOutcome):
                outcomes[number] = judged
            else:
                path, data = judged
                claimed = read_fields(parse(data))[0].id
                planned |= {path, claimed} if claimed else {path}
                actor = Actor("user", "Import", "import@memory.local", f"import:{principal.key_id}")
                orders[number] = Order("create", derived_memory_id(path), path, None, data, actor, entry, False)
        done = parts.writes.write_all(list(orders.values()))
    for number, outcome in zip(orders, done, strict=True):
        note = batch.notes[number]
        if outcome.row is not None:
            outcomes[number] = ImportOutcome(note.path, "imported", outcome.row.note_id)
        else:
            outcomes[number] = ImportOutcome(note.path, "skipped", None, _reason(parts, orders[number], outcome.error))
    parts.wake()
    return [outcomes[number] for number in range(len(batch.notes))]


def _judge(
    parts: Parts, folder: str, note: ImportedNote, planned: set[str], *, by_agent: bool
) -> ImportOutcome | tuple[str, bytes]:
    if is_ignored(note.path) or not note.path.endswith(".md"):
        return ImportOutcome(note.path, "skipped", None, "not a note (hidden, temporary or not .md)")
    if conflict_copy_of(note.path) is not None:
        return ImportOutcome(note.path, "skipped", None, "the conflict copy of a sync tool")
    path = f"{folder}/{note.path}"
    try:
        check_vault_path(path)
        data = note.text.encode("utf-8")
    except GatewayError as error:
        return ImportOutcome(note.path, "skipped", None, str(error))
    except UnicodeEncodeError:
        return ImportOutcome(note.path, "skipped", None, "the text holds half a character (a lone surrogate)")
    if locate(path, owner=parts.settings.vault.owner) is None:
        return ImportOutcome(note.path, "skipped", None, "not a note of a memory")
    parsed = parse(data, max_bytes=parts.settings.vault.max_note_bytes)
    if by_agent and "secrets" in parsed.properties:
        return ImportOutcome(note.path, "skipped", None, "only a person may set the property `secrets`")
    parsed = screened(parsed, parts.settings.secrets)
    if parsed.readiness != "ready":
        return ImportOutcome(note.path, "skipped", None, _problem(parsed.problems))
    return _against_present(parts, path, note, data, planned)


def _against_present(
    parts: Parts, path: str, note: ImportedNote, data: bytes, planned: set[str]
) -> ImportOutcome | tuple[str, bytes]:
    present = parts.files.read(path)
    if path in planned:
        return ImportOutcome(note.path, "skipped", None, "named twice in the import")
    if present is not None:
        if present.etag == etag_of(data):
            with parts.ledger.read() as tx:
                row = registry.notes_by_path(tx, [path]).get(path)
            return ImportOutcome(note.path, "unchanged", row.note_id if row else None)
        return ImportOutcome(note.path, "skipped", None, "another note of that name is there already")
    claimed = read_fields(parse(data))[0].id
    if claimed in planned:
        return ImportOutcome(note.path, "skipped", None, f"its id `{claimed}` is that of another note of the import")
    if claimed is not None:
        with parts.ledger.read() as tx:
            taken = registry.note(tx, claimed)
        if taken is not None:
            return ImportOutcome(note.path, "skipped", None, f"its id `{claimed}` is that of `{taken.path}`")
    return path, data


def _register_owner(parts: Parts, namespace: Namespace) -> None:
    if namespace.user_id is None:
        return
    with parts.ledger.write() as tx:
        if identities.user(tx, namespace.user_id) is None:
            identities.add_user(tx, namespace.user_id, namespace.user_id, {})


def _reason(parts: Parts, order: Order, error: GatewayError | None) -> str:
    from gateway.ledger import problems

    with parts.ledger.read() as tx:
        found = [row.message for row in problems.listed(tx) if row.path == order.path]
    return found[0] if found else str(error)


def _problem(problems: tuple[object, ...]) -> str:
    first = problems[0] if problems else None
    line = getattr(first, "line", None)
    return f"{getattr(first, 'message', 'not readable')}" + (f" (line {line})" if line else "")

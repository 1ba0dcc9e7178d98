"""Finding one memory for a principal: another's answers like one that does not exist, and costs the same."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import NOWHERE, Action, Decision
from gateway.errors import NotFound
from gateway.importer.parts import Parts
from gateway.ledger import registry
from gateway.ledger.registry import NoteRow


def find(principal: Principal, parts: Parts, note_id: str, action: Action) -> tuple[NoteRow, Decision]:
    """The registry row of a memory that the principal may read or write, and why.

    Raises:
        NotFound: there is none, or none for this principal.
        NotAllowed: the role may never do this.
    """
    with parts.ledger.read() as tx:
        row = registry.note(tx, note_id)
        resource = guard.resource_of(tx, row) if row is not None else NOWHERE
    decision = guard.check(parts.ledger, principal, action, resource, missing(note_id))
    if row is None:
        raise missing(note_id)
    return row, decision


def missing(note_id: str) -> NotFound:
    """The answer for a memory that does not exist, or is another's."""
    return NotFound(f"There is no memory {note_id!r}.", field="memory_id")

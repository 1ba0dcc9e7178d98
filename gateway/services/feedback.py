"""Feedback on memories: an incorrect one leaves default retrieval at once."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import NOWHERE
from gateway.errors import NotFound
from gateway.importer.parts import Parts
from gateway.ledger import audit, feedback, registry
from gateway.services.requests import Feedback


def give(principal: Principal, parts: Parts, note_id: str, given: Feedback) -> None:
    """Record a judgement of a memory that the principal may read.

    Raises:
        NotFound: there is no such memory, or none for this principal.
        NotAllowed: readers judge nothing.
    """
    asked = {"user_id": given.user_id, "agent_id": given.agent_id, "workspace_id": given.workspace_id}
    context = guard.identify(parts.ledger, principal, **asked)
    missing = NotFound(f"There is no memory {note_id!r}.", field="memory_id")
    with parts.ledger.read() as tx:
        row = registry.note(tx, note_id)
        resource = guard.resource_of(tx, row) if row is not None else NOWHERE
    action = "write" if principal.role == "reader" else "read"  # a judgement changes what others find
    decision = guard.check(parts.ledger, context.principal, action, resource, missing)
    if row is None:
        raise missing
    with parts.ledger.write() as tx:
        feedback.give(
            tx,
            row.note_id,
            row.content_hash,
            given.feedback,
            comment=given.comment,
            who=(context.user_id, context.agent_id),
        )
        entry = guard.entry(
            context.principal,
            f"feedback_{given.feedback}",
            "memory",
            target_id=row.note_id,
            namespace=row.namespace,
            decision=decision,
        )
        audit.write(tx, entry)

"""Feedback on memories: an incorrect one leaves default retrieval at once."""

from __future__ import annotations

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.importer.parts import Parts
from gateway.ledger import audit, dirty, feedback
from gateway.services.lookup import find
from gateway.services.requests import Feedback
from gateway.services.secrets import check_request


def give(principal: Principal, parts: Parts, note_id: str, given: Feedback) -> None:
    """Record a judgement of a memory that the principal may read.

    Raises:
        NotFound: there is no such memory, or none for this principal.
        NotAllowed: readers judge nothing.
        SecretFound: the comment holds a secret.
    """
    asked = {"user_id": given.user_id, "agent_id": given.agent_id, "workspace_id": given.workspace_id}
    context = guard.identify(parts.ledger, principal, **asked)
    action = "write" if principal.role == "reader" else "read"  # a judgement changes what others find
    row, decision = find(context.principal, parts, note_id, action)
    check_request(parts, given)
    with parts.ledger.write() as tx:
        feedback.give(
            tx,
            row.note_id,
            row.content_hash,
            given.feedback,
            comment=given.comment,
            who=(context.user_id, context.agent_id),
        )
        dirty.mark(tx, dirty.NOTE, row.note_id, row.namespace)
        entry = guard.entry(
            context.principal,
            f"feedback_{given.feedback}",
            "memory",
            target_id=row.note_id,
            namespace=row.namespace,
            decision=decision,
        )
        audit.write(tx, entry)

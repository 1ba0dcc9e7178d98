"""The audit, read: own entries for everybody, all of them for administrators."""

from __future__ import annotations

from dataclasses import replace

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.importer.parts import Parts
from gateway.ledger import audit
from gateway.ledger.audit import AuditFilter, StoredEntry
from gateway.services import paging


def page(
    principal: Principal, parts: Parts, wanted: AuditFilter, *, limit: int, before: int | None
) -> list[StoredEntry]:
    """Entries, newest first. What was buffered is written first, so that one's own last read is in it.

    Raises:
        Invalid: the limit is out of range.
        NotFound: another user's entries were asked for.
    """
    paging.check_limit(limit, parts.settings.policy.max_page)
    context = guard.identify(parts.ledger, principal, user_id=wanted.actor_user_id)
    if not principal.is_admin:
        wanted = replace(wanted, actor_user_id=context.user_id, actor_agent_id=principal.agent_id)
    parts.reads.flush()
    with parts.ledger.read() as tx:
        return audit.page(tx, wanted, limit=limit, before=before)


def verify(principal: Principal, parts: Parts) -> int | None:
    """The number of the first entry that does not fit the hash chain; None when all do.

    Raises:
        NotAllowed: the principal is no administrator.
    """
    guard.operate(parts.ledger, principal)
    with parts.ledger.read() as tx:
        return audit.verify(tx)

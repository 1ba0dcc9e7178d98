"""Users: whose memories are kept."""

from __future__ import annotations

from gateway.access.principal import Principal
from gateway.access.rules import require
from gateway.errors import NotFound
from gateway.ledger import audit, identities
from gateway.ledger.audit import AuditEntry
from gateway.ledger.identities import User
from gateway.notes.namespace import Namespace
from gateway.importer.parts import Parts
from gateway.services.requests import NewUser


def profile_namespace(user_id: str) -> str:
    """Where a user's profile stands."""
    return str(Namespace("user", user_id, "profile"))


def create(principal: Principal, parts: Parts, new: NewUser) -> User:
    """Register a user and make their folder.

    Raises:
        AlreadyExists: the id is taken, perhaps in another case.
    """
    decision = require(principal, "operate", None)
    with parts.importer.lock:
        with parts.ledger.write() as tx:
            user = identities.add_user(tx, new.user_id, new.display_name or new.user_id, dict(new.preferences))
            audit.write(
                tx,
                AuditEntry(
                    action="create_user",
                    target_type="user",
                    target_id=user.id,
                    namespace=profile_namespace(user.id),
                    decision="allow",
                    reason=decision.reason,
                    request_id=principal.request_id,
                    key_id=principal.key_id,
                    actor_user_id=principal.user_id,
                ),
            )
        (parts.files.root / "Users" / user.id / "LongTerm").mkdir(parents=True, exist_ok=True)
    return user


def get(principal: Principal, parts: Parts, user_id: str) -> User:
    """A user.

    Raises:
        NotFound: there is none of this id.
    """
    require(principal, "read", None)
    with parts.ledger.read() as tx:
        user = identities.user(tx, user_id)
    if user is None:
        raise NotFound(f"There is no user {user_id!r}.", field="user_id")
    return user

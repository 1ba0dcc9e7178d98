"""Users: whose memories are kept."""

from __future__ import annotations

from gateway import log
from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import GatewayError
from gateway.importer.parts import Parts
from gateway.ledger import audit, identities
from gateway.ledger.identities import User
from gateway.notes.namespace import Namespace
from gateway.services.agents import keeper
from gateway.services.fixed_notes import provision
from gateway.services.requests import NewUser, UserPatch
from gateway.services.secrets import check_request

_LOG = log.get("users")


def profile_namespace(user_id: str) -> str:
    """Where a user's profile stands."""
    return str(Namespace("user", user_id, "profile"))


def create(principal: Principal, parts: Parts, new: NewUser) -> User:
    """Register a user, make their folder and the notes that every user has.

    Raises:
        AlreadyExists: the id is taken, perhaps in another case.
        SecretFound: name or preferences hold a secret.
    """
    decision = guard.operate(parts.ledger, principal)
    check_request(parts, new)
    with parts.importer.lock:
        with parts.ledger.write() as tx:
            user = identities.add_user(tx, new.user_id, new.display_name or new.user_id, dict(new.preferences))
            audit.write(
                tx,
                guard.entry(principal, "create_user", "user", target_id=user.id, decision=decision),
            )
        (parts.files.root / "Users" / user.id / "LongTerm").mkdir(parents=True, exist_ok=True)
        try:
            provision(parts, user.id)
        except GatewayError as error:  # they are made when they are first asked for
            _LOG.warning("the user's notes are not made yet", user=user.id, reason=str(error))
    parts.wake()
    return user


def listed(principal: Principal, parts: Parts) -> list[User]:
    """Everybody for an administrator; oneself for everybody else."""
    with parts.ledger.read() as tx:
        return [one for one in identities.all_users(tx) if principal.is_admin or one.id == principal.user_id]


def change(principal: Principal, parts: Parts, user_id: str, patch: UserPatch) -> User:
    """Change a user's name or preferences: an administrator anybody's, a user their own.

    Raises:
        NotAllowed: agents and readers change no users.
        NotFound: there is no such user, or it is another.
        SecretFound: name or preferences hold a secret.
    """
    decision = keeper(principal)
    get(principal, parts, user_id)
    check_request(parts, patch)
    values = {name: value for name, value in patch.model_dump(exclude_unset=True).items() if value is not None}
    with parts.ledger.write() as tx:
        identities.change_user(tx, user_id, **values)
        audit.write(tx, guard.entry(principal, "change_user", "user", target_id=user_id, decision=decision))
    return get(principal, parts, user_id)


def get(principal: Principal, parts: Parts, user_id: str) -> User:
    """A user.

    Raises:
        NotFound: there is none of this id.
    """
    guard.identify(parts.ledger, principal, user_id=user_id)
    with parts.ledger.read() as tx:
        user = identities.user(tx, user_id)
    if user is None:
        raise guard.no_user(user_id)
    return user

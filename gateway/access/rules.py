"""One pure function decides who may do what (design section 9). Services call it before anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.access.principal import Principal
from gateway.errors import NotAllowed

Action = Literal["read", "write", "delete", "operate"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow or deny, and why."""

    allowed: bool
    reason: str


def decide(principal: Principal, action: Action, namespace: str | None) -> Decision:
    """Whether a principal may do something in a namespace (None: with the gateway itself).

    Administrators may do everything; no other role has been given rights yet, and no rule means no.
    """
    if principal.role == "admin":
        return Decision(True, "admin")
    return Decision(False, f"the role {principal.role} has no right to {action} {namespace or 'the gateway'}")


def require(principal: Principal, action: Action, namespace: str | None) -> Decision:
    """The decision, where it allows.

    Raises:
        NotAllowed: it does not.
    """
    decision = decide(principal, action, namespace)
    if not decision.allowed:
        raise NotAllowed("This key may not do that.", advice="Use a key with the right role.")
    return decision

"""The principal: the identity that a credential stands for; never what a request says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["admin", "user", "agent", "reader"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request.

    Attributes:
        key_id: which credential.
        workspace_ids: the only workspaces the key may be used in; empty: all that its user belongs to.
        request_id: ties the audit entries of one request together.
    """

    key_id: str
    role: Role
    user_id: str | None = None
    agent_id: str | None = None
    workspace_ids: tuple[str, ...] = ()
    request_id: str | None = None

    @property
    def is_admin(self) -> bool:
        """Whether this is an administrator."""
        return self.role == "admin"


# The command line acts for the person who can read the data directory.
LOCAL_OPERATOR = Principal(key_id="local", role="admin")

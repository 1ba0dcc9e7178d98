"""The principal: the identity that a credential stands for; never what a request says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["admin", "user", "agent", "reader"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request. `key_id` tells which credential; `request_id` ties its audit entries together."""

    key_id: str
    role: Role
    user_id: str | None = None
    agent_id: str | None = None
    request_id: str | None = None


# The command line acts for the person who can read the data directory.
LOCAL_OPERATOR = Principal(key_id="local", role="admin")

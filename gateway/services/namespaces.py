"""Namespaces: which rooms a request may look into."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import NotFound
from gateway.importer.parts import Parts
from gateway.ledger import sessions
from gateway.notes.namespace import Namespace, parse_namespace

# Directives are instructions, not memories: they are never recalled as data (design section 7).
RECALLED_ROOMS = (
    "long_term",
    "profile",
    "preferences",
    "user_memory",
    "work_memory",
    "soul",
    "user_file",
    "memory_file",
)
_AGENT_ROOMS = ("memory", "experience")


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """A namespace and who may see what stands in it."""

    namespace: str
    visibility: str


def readable_namespaces(context: Context) -> list[str]:
    """Those of the ids named in a request, and what everybody may read. A narrow one needs its id; never "all"."""
    found: list[str] = []
    if context.user_id is not None:
        found += [str(Namespace("user", context.user_id, room)) for room in RECALLED_ROOMS]
    if context.agent_id is not None:
        found += [str(Namespace("agent", context.agent_id, room)) for room in _AGENT_ROOMS]
    if context.workspace_id is not None:
        found.append(str(Namespace("workspace", context.workspace_id, "shared")))
    return [*found, str(Namespace("global", "", "public"))]


def listed(
    principal: Principal,
    parts: Parts,
    *,
    user_id: str | None,
    agent_id: str | None,
    workspace_id: str | None,
    session_id: str | None,
) -> list[NamespaceRecord]:
    """The namespaces of a context, as seed 004 section D lists them.

    Raises:
        NotFound: an id is unknown, or not the key's.
    """
    context = guard.identify(parts.ledger, principal, user_id=user_id, agent_id=agent_id, workspace_id=workspace_id)
    names = readable_namespaces(context)
    if context.user_id is not None:
        names.append(str(Namespace("user", context.user_id, "directives")))
    if session_id is not None:
        owner = context.user_id or parts.settings.vault.owner
        with parts.ledger.read() as tx:
            session = sessions.session(tx, owner, session_id, at=now_ms())
        if session is None or session.agent_id not in (None, context.agent_id):
            raise NotFound(f"There is no session {session_id!r}.", field="session_id")
        names.append(str(Namespace("session", session_id, "episodic")))
    return [NamespaceRecord(name, parse_namespace(name).default_visibility) for name in names]

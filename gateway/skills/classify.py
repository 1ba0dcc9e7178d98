"""classify: says of a candidate what kind of memory it is, whose, and who may see it. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.notes.namespace import Namespace
from gateway.skills.contract import Skill


@dataclass(frozen=True, slots=True)
class Unclassified:
    """A candidate and the session it comes from."""

    content: str
    memory_type: str
    user_id: str
    agent_id: str | None
    target_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """Kind, namespace and visibility."""

    memory_type: str
    namespace: str
    visibility: str


def classify(candidate: Unclassified) -> Classification:
    """Classify by rules: an agent's experience is the agent's own; everything else is its user's, and private.

    A narrow home is the safe one: nothing becomes shared without a person who says so.
    """
    if candidate.target_namespace is not None:
        where = candidate.target_namespace
    elif candidate.memory_type == "experience" and candidate.agent_id is not None:
        where = str(Namespace("agent", candidate.agent_id, "memory"))
    else:
        where = str(Namespace("user", candidate.user_id, "long_term"))
    visibility = "agent-only" if where.startswith("agent/") else "private"
    if where.startswith("workspace/"):
        visibility = "workspace-shared"
    return Classification(candidate.memory_type, where, visibility)


SKILL = Skill(
    name="classify",
    does="Says what kind of memory a candidate is, where it belongs and who may see it.",
    takes=Unclassified,
    gives=Classification,
    when="before a candidate is kept or written",
    writes_long_term=False,
)

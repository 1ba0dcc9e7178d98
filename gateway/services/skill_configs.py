"""Skills of a user, switched on and off (seed 000)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, field_validator

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Action, Decision
from gateway.errors import NotFound
from gateway.importer.parts import Parts
from gateway.ledger import audit, skill_configs
from gateway.notes.namespace import Namespace
from gateway.services.fixed_notes import Whose, whose
from gateway.skills import SKILLS


class SkillSwitch(BaseModel):
    """The body of `PUT /api/config/skills/{skill_name}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool

    @field_validator("enabled", mode="before")
    @classmethod
    def _true_or_false(cls, value: object) -> object:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value


@dataclass(frozen=True, slots=True)
class SkillState:
    """A skill, and whether it is on for the user."""

    name: str
    description: str
    category: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class SkillList:
    """All skills of a user."""

    skills: list[SkillState]


@dataclass(frozen=True, slots=True)
class Switched:
    """The answer to a switch."""

    skill_name: str
    enabled: bool
    message: str = "ok"


def listed(principal: Principal, parts: Parts, *, user_id: str | None = None) -> SkillList:
    """All skills, with what the user has switched.

    Raises:
        NotFound: there is no such user, or it is another.
    """
    who = whose(principal, parts, user_id)
    _allowed(parts, who, "read")
    with parts.ledger.read() as tx:
        states = skill_configs.states(tx, who.user_id)
    return SkillList([SkillState(one.name, one.does, "builtin", states.get(one.name, True)) for one in SKILLS])


def switch(
    principal: Principal, parts: Parts, skill_name: str, wanted: SkillSwitch, *, user_id: str | None = None
) -> Switched:
    """Switch a skill on or off for a user.

    Raises:
        NotAllowed: agents and readers switch nothing.
        NotFound: there is no such skill or user.
    """
    who = whose(principal, parts, user_id)
    decision = _allowed(parts, who, "write")
    if skill_name not in {one.name for one in SKILLS}:
        raise NotFound(f"There is no skill {skill_name!r}.", field="skill_name", advice="See GET /api/config/skills.")
    with parts.ledger.write() as tx:
        skill_configs.switch(tx, who.user_id, skill_name, enabled=wanted.enabled)
        action = "enable_skill" if wanted.enabled else "disable_skill"
        audit.write(tx, guard.entry(who.context.principal, action, "skill", target_id=skill_name, decision=decision))
    return Switched(skill_name, wanted.enabled)


def _allowed(parts: Parts, who: Whose, action: Action) -> Decision:
    # Switches belong to the user like the fixed notes: agents and readers may look.
    namespace = Namespace("user", who.user_id, "preferences")
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, namespace)
    return guard.check(parts.ledger, who.context.principal, action, resource, guard.no_user(who.user_id))

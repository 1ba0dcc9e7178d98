"""The skills, listed."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.access.principal import Principal
from gateway.skills import SKILLS


@dataclass(frozen=True, slots=True)
class SkillRecord:
    """A skill: what it does, takes and gives, and whether it writes long-term memory."""

    name: str
    description: str
    input: dict[str, str]
    output: dict[str, str]
    trigger: str
    writes_long_term: bool
    available: bool


def listed(principal: Principal) -> list[SkillRecord]:
    """All ten, in the order of seed 004 section E. Anybody with a key may know them."""
    del principal
    return [
        SkillRecord(
            skill.name,
            skill.does,
            skill.input_fields(),
            skill.output_fields(),
            skill.when,
            skill.writes_long_term,
            skill.available,
        )
        for skill in SKILLS
    ]

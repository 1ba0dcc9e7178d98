"""A skill that its user switched off is really off: services ask here before they call one for a user (seed 000)."""

from __future__ import annotations

from gateway.errors import SkillDisabled
from gateway.importer.parts import Parts
from gateway.ledger import skill_configs


def require(parts: Parts, user_id: str | None, *skills: str) -> None:
    """Make sure that skills are on for a user; for None, for the vault's owner.

    Raises:
        SkillDisabled: the first that is off.
    """
    with parts.ledger.read() as tx:
        states = skill_configs.states(tx, user_id or parts.settings.vault.owner)
    for name in skills:
        if not states.get(name, True):
            raise SkillDisabled(
                f"The skill `{name}` is switched off for this user.",
                advice=f"Its user can switch it on: PUT /api/config/skills/{name}.",
                skill=name,
            )

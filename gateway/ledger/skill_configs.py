"""Which skills are switched off for which user. Without a row a skill is on."""

from __future__ import annotations

import sqlalchemy as sa

from gateway.clock import now_ms
from gateway.ledger.database import Transaction, upsert
from gateway.ledger.schema_users import user_skill_configs as configs


def switch(tx: Transaction, user_id: str, skill_name: str, *, enabled: bool) -> None:
    """Switch a skill on or off for a user."""
    row = {"user_id": user_id, "skill_name": skill_name, "enabled": enabled, "updated_at": now_ms()}
    upsert(tx, configs, [row], keys=["user_id", "skill_name"])


def states(tx: Transaction, user_id: str) -> dict[str, bool]:
    """What the user has switched, by the skill's name."""
    query = sa.select(configs.c.skill_name, configs.c.enabled).where(configs.c.user_id == user_id)
    return {row[0]: bool(row[1]) for row in tx.execute(query)}

"""prune: archives or deletes expired, wrong or worn-out memories. Its contract; consolidation carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.skills.contract import Skill


@dataclass(frozen=True, slots=True)
class ToPrune:
    """Memories to judge, and below which importance they are archived."""

    memory_ids: tuple[str, ...]
    below_importance: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was archived and what was deleted."""

    archived_ids: list[str]
    deleted_ids: list[str]


SKILL = Skill(
    name="prune",
    does="Archives or deletes memories that are expired, wrong or worn out.",
    takes=ToPrune,
    gives=Pruned,
    when="during consolidation",
    writes_long_term=True,
    available=False,
)

"""merge: unites memories that say the same. Its contract; consolidation carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.skills.contract import Skill


@dataclass(frozen=True, slots=True)
class ToMerge:
    """Memories of one scope that say the same."""

    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The memory that remains, with the evidence of all."""

    memory_id: str
    merged_ids: list[str]


SKILL = Skill(
    name="merge",
    does="Unites memories of one scope that say the same; evidence of all is kept.",
    takes=ToMerge,
    gives=Merged,
    when="during consolidation",
    writes_long_term=True,
    available=False,
)

"""import_from_obsidian: takes a decided draft to its place in the vault. Its contract; review carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.skills.contract import Skill


@dataclass(frozen=True, slots=True)
class DecidedDraft:
    """A draft that a person accepted or rejected."""

    path: str
    decision: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The memory that an accepted draft became; None for a rejected one."""

    memory_id: str | None


SKILL = Skill(
    name="import_from_obsidian",
    does="Takes a draft that a person accepted to its place in the vault.",
    takes=DecidedDraft,
    gives=Decided,
    when="when a draft was decided",
    writes_long_term=True,
    available=False,
)

"""export_to_obsidian: puts a proposal into the review queue as a draft note. Its contract; review carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.skills.contract import Skill


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed (`create`, `update`, `merge`, `archive`, `conflict`, `directive`), and on what evidence."""

    proposal: str
    target_namespace: str
    text: str
    target_id: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft in `Reviews/Queue`."""

    review_id: str
    path: str


SKILL = Skill(
    name="export_to_obsidian",
    does="Puts a proposal into the review queue as a draft note.",
    takes=Proposal,
    gives=Draft,
    when="for high-value candidates and everything that needs a person",
    writes_long_term=False,
    available=False,
)

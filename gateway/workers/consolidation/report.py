"""What a pass did, or would do: ids, reasons and numbers, for whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.ledger.sessions import Candidate
from gateway.skills.scoring import Factors

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its score: `factors` as documented in docs/consolidation.md."""

    candidate_id: str
    session_id: str
    namespace: str
    memory_type: str
    content: str
    factors: dict[str, float]
    by: str


@dataclass(frozen=True, slots=True)
class Union:
    """Memories or candidates that say the same, and the one that stands for them. `how`: done, or proposed."""

    leader: str
    others: list[str]
    reason: str
    how: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A draft: what it proposes, of which memory (None: a new one), and why. `review_id` is None in a dry run."""

    proposal: str
    namespace: str
    target_id: str | None
    why: str
    review_id: str | None


@dataclass(frozen=True, slots=True)
class Archived:
    """A memory that went to the archive, and why."""

    id: str
    namespace: str
    reason: str


@dataclass(frozen=True, slots=True)
class Faded:
    """A memory whose importance fell; `written` only where it is an agent's own."""

    id: str
    before: float
    after: float
    written: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be done now, and why; it is tried again behind everything else."""

    kind: str
    key: str
    reason: str


@dataclass(slots=True)
class PassReport:
    """One pass. `skipped` was left alone on purpose; `waiting` is what is left to do."""

    dry_run: bool
    items: int = 0
    extracted: int = 0
    extracted_by: dict[str, int] = field(default_factory=dict[str, int])
    scored: list[Scored] = field(default_factory=list[Scored])
    merged: list[Union] = field(default_factory=list[Union])
    supported: list[Union] = field(default_factory=list[Union])
    promoted: list[str] = field(default_factory=list[str])
    proposed: list[Proposed] = field(default_factory=list[Proposed])
    archived: list[Archived] = field(default_factory=list[Archived])
    faded: list[Faded] = field(default_factory=list[Faded])
    failed: list[Failure] = field(default_factory=list[Failure])
    skipped: list[Failure] = field(default_factory=list[Failure])
    model_calls: int = 0
    seconds: float = 0.0
    waiting: int = 0

    def score(self, one: Candidate, factors: Factors, by: str) -> None:
        """Note a candidate's score."""
        self.scored.append(
            Scored(one.id, one.session_id, one.namespace, one.memory_type, one.content[:_SHOWN], factors.shown(), by)
        )

"""What happens to a hit after it was found: time, age, weight and likeness. Pure: hits and rows in, hits out.

    score = relevance × time × age × importance × feedback

Each factor is documented at its function and shown by `explain`; none of them is ever a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from gateway.index.search import Hit
from gateway.ledger.registry import NoteRow
from gateway.notes.human_dates import Precision
from gateway.notes.namespace import parse_namespace
from gateway.notes.temporal import TemporalKind, Validity, Verdict, judge
from gateway.skills.likeness import Print, print_of

HALF_LIFE_DAYS = 30.0
# However old, a memory keeps this share of its score: age orders what is equally relevant, it forgets nothing.
AGED_FLOOR = 0.8
IMPORTANCE_SPAN = 0.2
USEFUL, MOST_USEFUL = 1.03, 1.15
JUDGED = {"outdated": 0.7, "duplicate": 0.8}
_DAY_MS = 86_400_000
# Rooms that stand by for every turn do not fade (seed 000: resident files are exempt).
RESIDENT_ROOMS = frozenset(
    {"profile", "preferences", "user_memory", "work_memory", "soul", "user_file", "memory_file", "experience"}
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit with its final score and what made it so.

    Attributes:
        factors: by name: `relevance`, `time`, `age`, `importance`, `feedback`.
        qualification: what must be said along with the memory because of its time.
        like: ids of memories that say the same and were folded into this one.
    """

    hit: Hit
    row: NoteRow
    score: float
    factors: Mapping[str, float]
    qualification: str | None = None
    like: tuple[str, ...] = ()


def ranked(
    hits: Sequence[Hit],
    rows: Mapping[str, NoteRow],
    judged: Mapping[str, Sequence[str]],
    at: int,
    *,
    decay: bool = True,
) -> list[Ranked]:
    """Weigh hits, leave out what surely does not hold at a moment, and order them anew; equal scores by id.

    Args:
        judged: what people and agents said of the memories, by id, oldest first.
        at: the moment asked about, in ms since 1970 UTC.
        decay: whether age, importance and feedback count.
    """
    found: list[Ranked] = []
    for hit in hits:
        row = rows[hit.note_id]
        verdict = judge(validity_of(row), at)
        if verdict.recalled:
            found.append(_weighed(hit, row, verdict, judged.get(row.note_id, ()), at=at, decay=decay))
    return sorted(found, key=lambda one: (-one.score, one.row.note_id))


def validity_of(row: NoteRow) -> Validity:
    """When a registered memory holds."""
    return Validity(
        kind=cast("TemporalKind | None", row.temporal_kind),
        valid_from=row.valid_from,
        valid_until=row.valid_until,
        precision=cast("Precision | None", row.precision),
        timezone=row.timezone,
        confidence=row.temporal_confidence,
    )


def age_factor(row: NoteRow, at: int) -> float:
    """Exponential decay with a half-life of 30 days from the last change, down to a floor; residents do not age."""
    if parse_namespace(row.namespace).room in RESIDENT_ROOMS:
        return 1.0
    days = max(0.0, (at - row.updated_at) / _DAY_MS)
    return AGED_FLOOR + (1 - AGED_FLOOR) * 0.5 ** (days / HALF_LIFE_DAYS)


def importance_factor(row: NoteRow) -> float:
    """1 at the usual importance of 0.5; a tenth more or less at its ends."""
    return 1.0 + IMPORTANCE_SPAN * (row.importance - 0.5)


def feedback_factor(judgements: Sequence[str]) -> float:
    """Each `useful` adds three percent, at most fifteen; the newest `outdated` or `duplicate` takes some away."""
    useful = min(MOST_USEFUL, USEFUL ** sum(one == "useful" for one in judgements))
    newest = next((one for one in reversed(judgements) if one in JUDGED or one == "useful"), None)
    return useful * JUDGED.get(newest or "", 1.0)


def collapsed(found: Sequence[Ranked]) -> list[Ranked]:
    """Fold memories that say the same into the best of them. Another number, name or negation is not the same."""
    kept: list[Ranked] = []
    prints: list[Print] = []
    for one in found:
        mine = print_of(one.hit.text)
        same = next((number for number, other in enumerate(prints) if mine.same_as(other)), None)
        if same is None:
            kept.append(one)
            prints.append(mine)
        else:
            kept[same] = replace(kept[same], like=(*kept[same].like, one.row.note_id))
    return kept


def _weighed(hit: Hit, row: NoteRow, verdict: Verdict, judgements: Sequence[str], *, at: int, decay: bool) -> Ranked:
    factors = {"relevance": hit.score, "time": verdict.weight}
    if decay:
        factors |= {
            "age": age_factor(row, at),
            "importance": importance_factor(row),
            "feedback": feedback_factor(judgements),
        }
    score = 1.0
    for value in factors.values():
        score *= value
    return Ranked(hit, row, min(1.0, score), factors, verdict.qualification)

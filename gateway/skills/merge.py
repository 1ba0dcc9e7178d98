"""merge: unites memories of one namespace that say the same. One remains; the evidence of all is its evidence.

The surest leads, then a person's, then the oldest. Its text is left as it is; the others go to the archive. Lineage is
written in the transactions that move them (design section 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import ChangedElsewhere, Invalid
from gateway.importer.parts import Parts
from gateway.ledger import registry, reviews
from gateway.ledger.audit import AuditEntry
from gateway.ledger.journal import Actor
from gateway.ledger.registry import NoteRow
from gateway.skills.contract import Skill
from gateway.skills.prune import ToPrune, prune

MERGED, EVIDENCE = "merged", "evidence"


@dataclass(frozen=True, slots=True)
class ToMerge:
    """Memories of one namespace that say the same, by id and etag as they were compared; the first one leads."""

    etags: dict[str, str]


@dataclass(frozen=True, slots=True)
class Merged:
    """The memory that remains, those that it took in, and what it rests on now."""

    memory_id: str
    merged_ids: list[str]
    evidence: list[str]


def in_order(rows: Sequence[NoteRow], persons: Mapping[str, bool]) -> list[NoteRow]:
    """Who leads first: the surest, then a person's, then the oldest."""
    return sorted(rows, key=lambda row: (-row.confidence, not persons[row.note_id], row.created_at, row.note_id))


def evidence_of(tx: registry.Transaction, memory_ids: Sequence[str]) -> list[str]:
    """What memories rest on: episodes, sessions and drafts, in the order in which it was learned."""
    found = [edge for one in memory_ids for edge in reviews.edges_of(tx, one) if edge.child == one]
    return list(dict.fromkeys(edge.parent for edge in found if edge.relation == EVIDENCE))


def merge(parts: Parts, wanted: ToMerge, actor: Actor, entry: AuditEntry) -> Merged:
    """Unite memories. Call it with the importer's lock held.

    Raises:
        Invalid: there are fewer than two, or they are of several namespaces.
        ChangedElsewhere: one of them changed since it was compared; nothing was done.
    """
    ids = list(wanted.etags)
    with parts.ledger.read() as tx:
        rows = registry.notes_by_id(tx, ids)
        evidence = {one: evidence_of(tx, [one]) for one in ids}
    if len(ids) < 2 or len({row.namespace for row in rows.values()}) > 1:
        raise Invalid("Two or more memories of one namespace can be merged.", field="memory_ids")
    for note_id, etag in wanted.etags.items():
        row = rows.get(note_id)
        if row is None or row.etag != etag or row.status != "active" or row.read_only:
            raise ChangedElsewhere("A memory changed since it was compared; nothing was merged.", field="memory_ids")
    leader, others = ids[0], ids[1:]
    edges = {one: ((leader, one, MERGED), *((leader, each, EVIDENCE) for each in evidence[one])) for one in others}
    done = prune(parts, ToPrune({one: wanted.etags[one] for one in others}, edges), actor, entry)
    return Merged(leader, done.archived_ids, list(dict.fromkeys(one for each in evidence.values() for one in each)))


SKILL = Skill(
    name="merge",
    does="Unites memories of one namespace that say the same; evidence of all is kept.",
    takes=ToMerge,
    gives=Merged,
    when="during consolidation",
    writes_long_term=True,
)

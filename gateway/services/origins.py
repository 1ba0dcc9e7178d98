"""Lineage of a memory, both ways: what it came from, and what came of it. Only what the principal may read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.access.rules import Resource, decide
from gateway.clock import now_ms
from gateway.errors import Invalid
from gateway.importer.parts import Parts
from gateway.ledger import Transaction, fences, journal, origins, registry, reviews, sessions, usage
from gateway.ledger.reviews import Edge, Review
from gateway.ledger.sessions import Session
from gateway.notes.namespace import Namespace, parse_namespace
from gateway.services.lookup import find
from gateway.services.records import text_time
from gateway.services.reviews import may_see

MEMORY, DRAFT, CANDIDATE, EPISODE, SESSION = "memory", "draft", "candidate", "episode", "session"
GONE = "gone"
DEEPEST = 10
_MOST_NODES = 500
_MOST_EDGES = 2_000
_SESSION_PREFIX = "session/"
_KINDS = {"rev_": DRAFT, "cand_": CANDIDATE, "epi_": EPISODE, _SESSION_PREFIX: SESSION}


@dataclass(frozen=True, slots=True)
class LineageNode:
    """One thing: `kind` is memory, draft, candidate, episode or session; `state` its status, or `gone`."""

    id: str
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class LineageEdge:
    """`child` came from `parent`: `accepted` (of a draft), `evidence`, `merged`, `supersedes`, `derived_from`, …"""

    child: str
    parent: str
    relation: str
    at: str


@dataclass(frozen=True, slots=True)
class Use:
    """In how many turns the memory was shown, and when last."""

    hits: int
    last_hit_at: str | None


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a memory came from and what came of it, up to a depth; `truncated`: there is more than is shown."""

    id: str
    depth: int
    nodes: list[LineageNode]
    edges: list[LineageEdge]
    truncated: bool
    use: Use


@dataclass(slots=True)
class _Graph:
    """What is found so far. `own` are nodes that belong to the principal's user: what hangs on them may be theirs."""

    nodes: dict[str, LineageNode] = field(default_factory=dict[str, LineageNode])
    own: set[str] = field(default_factory=set[str])
    edges: dict[tuple[str, str, str], Edge] = field(default_factory=dict[tuple[str, str, str], Edge])
    truncated: bool = False


def graph(principal: Principal, parts: Parts, memory_id: str, depth: int) -> Lineage:
    """The lineage of a memory.

    Raises:
        Invalid: the depth is out of range.
        NotFound: there is no such memory, or it is another's.
    """
    if not 1 <= depth <= DEEPEST:
        raise Invalid(f"`depth` lies between 1 and {DEEPEST}.", field="depth")
    row, decision = find(principal, parts, memory_id, "read")
    parts.reads.add(
        guard.entry(principal, "read", "lineage", target_id=row.note_id, namespace=row.namespace, decision=decision)
    )
    with parts.ledger.read() as tx:
        found = _Graph()
        looker = _Looker(tx, parts, principal)
        looker.look(found, [memory_id], own=True)
        _follow(tx, looker, found, memory_id, depth, up=True)
        _follow(tx, looker, found, memory_id, depth, up=False)
        counted = usage.of(tx, [memory_id]).get(memory_id)
    shown = sorted(found.edges.values(), key=lambda one: (one.created_at, one.child, one.parent, one.relation))
    edges = [LineageEdge(one.child, one.parent, one.relation, text_time(one.created_at) or "") for one in shown]
    use = Use(counted.hits, text_time(counted.last_hit_at)) if counted else Use(0, None)
    return Lineage(memory_id, depth, list(found.nodes.values()), edges, found.truncated, use)


def _follow(tx: Transaction, looker: _Looker, found: _Graph, start: str, depth: int, *, up: bool) -> None:
    """Breadth first, in one direction: what shares a parent with a memory is no relative of it."""
    border = [start]
    reached = {start}
    for _ in range(depth):
        ask = origins.parents_of if up else origins.children_of
        edges = [*ask(tx, border, _MOST_EDGES), *(looker.implied(border) if up else ())]
        found.truncated |= len(edges) >= _MOST_EDGES
        ends = {edge: (edge.parent, edge.child) if up else (edge.child, edge.parent) for edge in edges}
        new = list(dict.fromkeys(end for end, _ in ends.values() if end not in reached))
        found.truncated |= len(found.nodes) + len(new) > _MOST_NODES
        new = new[: max(0, _MOST_NODES - len(found.nodes))]
        mine = {end for end, begin in ends.values() if begin in found.own}
        looker.look(found, [one for one in new if one in mine], own=True)
        looker.look(found, [one for one in new if one not in mine], own=False)
        reached.update(new)
        border = [one for one in new if one in found.nodes]
        for edge, (end, begin) in ends.items():
            if end in found.nodes and begin in found.nodes:
                found.edges[edge.child, edge.parent, edge.relation] = edge
        if not border:
            return


class _Looker:
    """Finds out what ids are, and leaves out what the principal may not read."""

    def __init__(self, tx: Transaction, parts: Parts, principal: Principal) -> None:
        self._tx = tx
        self._parts = parts
        self._principal = principal
        self._closed = fences.active(tx)
        self._drafts: dict[str, Review] = {}

    def look(self, found: _Graph, identifiers: Iterable[str], *, own: bool) -> None:
        """Add those that may be read.

        Args:
            own: they were reached from what is the principal's own. Only then is a session theirs (its id alone does
                not say whose), and may something that is gone be named.
        """
        left = [one for one in identifiers if one not in found.nodes]
        self._memories(found, left)
        self._reviews(found, left)
        if own or self._principal.is_admin:
            self._spoken(found, left)

    def implied(self, identifiers: Iterable[str]) -> list[Edge]:
        """The edges that drafts and candidates hold themselves."""
        edges: list[Edge] = []
        drafts = [self._drafts[one] for one in identifiers if one in self._drafts]
        for draft in drafts:
            edges += [Edge(draft.id, one, "evidence", draft.created_at) for one in draft.evidence]
            if draft.candidate_id is not None:
                edges.append(Edge(draft.id, draft.candidate_id, "proposed", draft.created_at))
        for one in origins.candidates_by_id(self._tx, [one for one in identifiers if one.startswith("cand_")]).values():
            edges += [Edge(one.id, said, "evidence", one.created_at) for said in one.episode_ids]
            edges.append(Edge(one.id, _SESSION_PREFIX + one.session_id, "evidence", one.created_at))
        return edges

    def _memories(self, found: _Graph, identifiers: list[str]) -> None:
        for row in registry.notes_by_id(self._tx, identifiers).values():
            resource = guard.resource_of(self._tx, row)
            if decide(self._principal, "read", resource).allowed and not self._closed.covers(row.namespace):
                self._add(found, LineageNode(row.note_id, MEMORY, row.status), resource)

    def _reviews(self, found: _Graph, identifiers: list[str]) -> None:
        for review in reviews.by_id(self._tx, identifiers).values():
            resource = guard.resource_at(self._tx, parse_namespace(review.namespace))
            hidden = review.status == reviews.FORGOTTEN or self._closed.covers(review.namespace)
            if not hidden and may_see(self._principal, review, resource):
                self._drafts[review.id] = review
                self._add(found, LineageNode(review.id, DRAFT, review.status), resource)

    def _spoken(self, found: _Graph, identifiers: list[str]) -> None:
        """Candidates, episodes and sessions; and what is gone, of which only the id is left."""
        said = origins.episodes_by_id(self._tx, identifiers)
        noted = origins.candidates_by_id(self._tx, identifiers)
        memories = registry.notes_by_id(self._tx, identifiers)
        drafts = reviews.by_id(self._tx, identifiers)
        for one in identifiers:
            if one in memories or one in drafts:
                continue
            held = said.get(one) or noted.get(one)
            session = self._session(held.user_id, held.session_id) if held else self._session_named(one)
            if session is None and held is None:
                if self._may_name(one):
                    found.nodes[one] = LineageNode(one, _kind(one), GONE)
                    found.own.add(one)
            elif session is not None and self._may_read(session):
                state = session.status if held is None else noted[one].status if one in noted else "kept"
                found.nodes[one] = LineageNode(one, _kind(one), state)
                found.own.add(one)

    def _may_name(self, identifier: str) -> bool:
        """Whether something that is gone may be named. Notes name what they like: an id that can be guessed (from a
        path, from a text) must answer alike whether it is another's or nobody's."""
        if self._principal.is_admin:
            return True
        kind = _kind(identifier)
        if kind != MEMORY:
            return kind in (EPISODE, SESSION)
        known = journal.history(self._tx, identifier)
        place = self._parts.importer.places.place_of(known[0].path) if known else None
        if place is None or self._closed.covers(str(place.namespace)):
            return False
        return decide(self._principal, "read", guard.resource_at(self._tx, place.namespace)).allowed

    def _session_named(self, identifier: str) -> Session | None:
        if not identifier.startswith(_SESSION_PREFIX):
            return None
        name = identifier.removeprefix(_SESSION_PREFIX)
        if self._principal.is_admin:
            return next(iter(sessions.sessions_named(self._tx, name, at=now_ms())), None)
        return self._session(self._principal.user_id or "", name)

    def _session(self, user_id: str, session_id: str) -> Session | None:
        return sessions.session(self._tx, user_id, session_id, at=now_ms())

    def _may_read(self, session: Session) -> bool:
        where = Namespace("session", session.id, "episodic")
        closed = self._closed.covers_session(session.user_id, session.id, session.agent_id)
        resource = Resource(where, None, session.user_id, session.agent_id)
        return not closed and decide(self._principal, "read", resource).allowed

    def _add(self, found: _Graph, node: LineageNode, resource: Resource) -> None:
        found.nodes[node.id] = node
        theirs = resource.owner_user_id is not None and resource.owner_user_id == self._principal.user_id
        if theirs or self._principal.is_admin:
            found.own.add(node.id)


def _kind(identifier: str) -> str:
    return next((kind for prefix, kind in _KINDS.items() if identifier.startswith(prefix)), MEMORY)

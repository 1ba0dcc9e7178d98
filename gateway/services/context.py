"""Context: what an agent puts before a turn. Memory in a fence, directives apart from it, and how it was chosen."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.clock import now_ms
from gateway.errors import GatewayError, Invalid
from gateway.importer.parts import Parts
from gateway.ledger import feedback, registry, sessions
from gateway.ledger.registry import NoteRow
from gateway.notes.fence import fenced, neutralised
from gateway.notes.namespace import Namespace
from gateway.notes.temporal import judge
from gateway.notes.token_count import count_tokens, cut_to_tokens
from gateway.services.context_requests import ContextRequest
from gateway.services.namespaces import readable_namespaces
from gateway.services.records import content_of, text_time
from gateway.services.requests import Search
from gateway.services.search import context_of, retrieve, text_now, turn_key
from gateway.services.sessions import owned
from gateway.services.suppression import SUPPRESS, active_directives, kind_of, suppressed_topics
from gateway.skills.allocation import allocate, parts_of
from gateway.skills.query_vectors import QueryVectors
from gateway.skills.ranking import Ranked, validity_of
from gateway.skills.retrieve_context import Retrieved

RECALLED = 20
# A hit with less than this share of the best one's score is left out: scores compare within one answer.
WEAK_SHARE = 0.3
CARRIED_IMPORTANCE = 0.7
_CARRIED = 10
_EPISODES = 12
_PROFILE_ROOMS = ("profile", "preferences")
_KEPT_TURNS = 1_000
_TURN_SECONDS = 3_600.0
_HEADINGS = {"profile": "## Who the user is", "working": "## Working Memory", "recall": "## Remembered"}
_FRAME_TOKENS = 8


@dataclass(frozen=True, slots=True)
class DirectiveItem:
    """One active directive of the user, to be followed."""

    id: str
    kind: str
    content: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """One item that went into the context: from which part, how many tokens, and why."""

    id: str
    part: str
    tokens: int
    reason: str
    score: float | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """One item that did not: `no_room`, `suppressed`, …; `id` is None where only a number is known."""

    reason: str
    part: str
    id: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """How a context was made.

    Attributes:
        token_budget: the hard ceiling; `tokens` is what was used of it, by part and in all.
        allocated: what each part might use.
        reused: the same turn was asked before; nothing was retrieved or counted again.
    """

    token_budget: int
    tokens: dict[str, int]
    allocated: dict[str, int]
    chosen: list[Chosen]
    dropped: list[Dropped]
    degraded: list[str]
    turn_id: str | None = None
    reused: bool = False


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """What an agent puts before a turn: `memory` is data in one fence, `directives` are to be followed."""

    memory: str
    directives: list[DirectiveItem]
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class _Item:
    id: str
    text: str
    reason: str
    score: float | None = None
    etag: str | None = None


class Turns:
    """The contexts of recent turns: the same turn does not retrieve or count twice. Bounded in number and time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str | None, ...], tuple[float, ContextAnswer, dict[str, str]]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, parts: Parts, key: tuple[str | None, ...]) -> ContextAnswer | None:
        """The context of a turn, if all that stands in it is still as it was."""
        with self._lock:
            found = self._kept.get(key)
        if found is None or time.monotonic() - found[0] > _TURN_SECONDS:
            return None
        _, answer, etags = found
        with parts.ledger.read() as tx:
            rows = registry.notes_by_id(tx, list(etags))
        same = all(note_id in rows and rows[note_id].etag == etag for note_id, etag in etags.items())
        return replace(answer, manifest=replace(answer.manifest, reused=True)) if same else None

    def forget(self, note_ids: Collection[str] | None) -> None:
        """Drop the contexts in which these memories stand; all of them for None."""
        with self._lock:
            if note_ids is None:
                self._kept.clear()
                return
            gone = set(note_ids)
            for key in [key for key, (_, _, etags) in self._kept.items() if not gone.isdisjoint(etags)]:
                del self._kept[key]

    def keep(self, key: tuple[str | None, ...], answer: ContextAnswer, etags: dict[str, str]) -> None:
        """Remember the context of a turn."""
        with self._lock:
            self._kept[key] = (time.monotonic(), answer, etags)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT_TURNS:
                self._kept.popitem(last=False)


def context(
    principal: Principal, parts: Parts, vectors: QueryVectors, turns: Turns, wanted: ContextRequest
) -> ContextAnswer:
    """Put together what an agent should know before a turn.

    Raises:
        Invalid: a wrong field.
        NotFound: an id is unknown, or not the key's; the session is unknown or another's.
    """
    if len(wanted.query) > parts.settings.policy.max_query_chars:
        raise Invalid(f"A query may have {parts.settings.policy.max_query_chars:,} characters.", field="query")
    who = context_of(principal, parts, _search(wanted, "nothing"))
    search = _search(wanted, wanted.query) if wanted.query.strip() else None
    key = (principal.key_id, who.user_id, who.agent_id, wanted.workspace_id, wanted.session_id, wanted.turn_id)
    known = turns.recall(parts, key) if wanted.turn_id is not None else None
    if known is not None:
        return known
    answer, etags = _made(who, parts, vectors, wanted, search)
    shown = [one.id for one in answer.manifest.chosen if one.id in etags]
    parts.uses.shown(turn_key(who, wanted.session_id, wanted.turn_id), shown)
    if wanted.turn_id is not None:
        turns.keep(key, answer, etags)
    return answer


def _search(wanted: ContextRequest, query: str) -> Search:
    asked: dict[str, Any] = {
        "query": query,
        "user_id": wanted.user_id,
        "agent_id": wanted.agent_id,
        "workspace_id": wanted.workspace_id,
        "limit": RECALLED,
        "as_of": wanted.as_of,
    }
    return Search.model_validate(asked)


def _made(
    who: Context, parts: Parts, vectors: QueryVectors, wanted: ContextRequest, search: Search | None
) -> tuple[ContextAnswer, dict[str, str]]:
    said = _said(who, parts, wanted)
    profile = _profile(who, parts)
    resident = {item.id for item in profile}
    directives = _directives(who, parts)
    got = _retrieved(who, parts, vectors, search)
    strong, weak = _without_weak(got.hits)
    recalled = [item for one in strong if (item := _recalled(parts, one)) is not None and item.id not in resident]
    working = [*said, *_projection(who, parts, wanted, {*resident, *(item.id for item in recalled)})]
    items = {
        "directives": [_Item(one.id, one.content, f"active {one.kind}") for one in directives],
        "profile": profile,
        "working": working,
        "recall": recalled,
    }
    memory, packed, allocated = _within(wanted.token_budget, items)
    kept = {one.id for one in packed["directives"].chosen}
    shown = [one for one in directives if one.id in kept]
    tokens = {name: one.tokens for name, one in packed.items()}
    tokens["total"] = _total(memory, shown)
    left_out = [Dropped(reason, "recall", count=number) for reason, number in got.dropped.items()]
    left_out += [Dropped("weak", "recall", one.row.note_id) for one in weak]
    manifest = Manifest(
        token_budget=wanted.token_budget,
        tokens=tokens,
        allocated=allocated,
        chosen=[one for found in packed.values() for one in found.chosen],
        dropped=[*(one for found in packed.values() for one in found.dropped), *left_out],
        degraded=got.degraded,
        turn_id=wanted.turn_id,
    )
    etags = {item.id: item.etag for found in items.values() for item in found if item.etag is not None}
    return ContextAnswer(memory, shown, manifest), etags


def _within(budget: int, items: dict[str, list[_Item]]) -> tuple[str, dict[str, _Packed], dict[str, int]]:
    """The fenced memory, the packed parts and what each might use. Joined texts may have a token more or less than
    their pieces: what is too much in the end is taken from the room, so that the ceiling holds."""
    demands = {name: _demand(name, found) for name, found in items.items()}
    room = max(0, budget - count_tokens(fenced("")) - _FRAME_TOKENS)
    while True:
        allocated = allocate(room, parts_of(room, demands))
        packed = {name: _packed(name, found, allocated[name]) for name, found in items.items()}
        memory = fenced(
            "\n\n".join(f"{_HEADINGS[name]}\n{packed[name].text}" for name in _HEADINGS if packed[name].text)
        )
        over = count_tokens(memory) + packed["directives"].tokens - budget
        if over <= 0 or room == 0:
            return memory, packed, allocated
        room = max(0, room - over)


def _total(memory: str, directives: Sequence[DirectiveItem]) -> int:
    return count_tokens(memory) + sum(count_tokens(one.content) for one in directives)


@dataclass(frozen=True, slots=True)
class _Packed:
    text: str
    tokens: int
    chosen: list[Chosen]
    dropped: list[Dropped]


def _packed(name: str, items: Sequence[_Item], room: int) -> _Packed:
    """As many items as there is room for, in order; the first that does not fit is cut if half of it does."""
    lines: list[str] = []
    chosen: list[Chosen] = []
    dropped: list[Dropped] = []
    left = room - (count_tokens(_HEADINGS[name]) + 2 if name in _HEADINGS and items else 0)
    for item in items:
        size = count_tokens(item.text) + 1
        if size <= left:
            lines.append(item.text)
            chosen.append(Chosen(item.id, name, size, item.reason, item.score))
            left -= size
        elif name != "directives" and left >= max(16, size // 2):
            cut = cut_to_tokens(item.text, left - 2).rstrip() + " …"
            lines.append(cut)
            chosen.append(Chosen(item.id, name, count_tokens(cut), item.reason, item.score, cut=True))
            left = 0
        else:
            dropped.append(Dropped("no_room", name, item.id))
    if name == "working":
        lines.reverse()  # the newest was packed first, and is read last
    return _Packed("\n".join(lines), room - left if chosen else 0, chosen, dropped)


def _demand(name: str, items: Sequence[_Item]) -> int:
    heading = count_tokens(_HEADINGS[name]) + 2 if name in _HEADINGS and items else 0
    return heading + sum(count_tokens(item.text) + 1 for item in items)


def _profile(who: Context, parts: Parts) -> list[_Item]:
    """The user's profile and preferences, as they stand in the vault."""
    if who.user_id is None:
        return []
    names = [str(Namespace("user", who.user_id, room)) for room in _PROFILE_ROOMS]
    with parts.ledger.read() as tx:
        rows = [row for name in names for row in registry.active_in(tx, name)]
    found: list[_Item] = []
    for row in rows:
        text = text_now(parts, row)
        if text is not None and text.strip():
            found.append(_Item(row.note_id, neutralised(text.strip()), f"{row.memory_type} of the user", etag=row.etag))
    return found


def _said(who: Context, parts: Parts, wanted: ContextRequest) -> list[_Item]:
    """What was said last in the session, newest first.

    Raises:
        NotFound: the session is unknown or another's.
    """
    if wanted.session_id is None:
        return []
    session = owned(who, parts, wanted.session_id)
    with parts.ledger.read() as tx:
        said = sessions.episodes_of(tx, session.user_id, session.id, limit=_EPISODES, newest=True)
    ordered = sorted(said, key=lambda one: -one.seq)
    return [_Item(one.id, _line(one.content), "said in this session") for one in ordered]


def _projection(who: Context, parts: Parts, wanted: ContextRequest, known: set[str]) -> list[_Item]:
    """What the user's most important memories are, whatever is asked: they are carried forward from turn to turn."""
    if who.user_id is None:
        return []
    at = now_ms() if wanted.as_of is None else int(wanted.as_of.timestamp() * 1000)
    topics = suppressed_topics(parts, who.user_id)
    namespace = str(Namespace("user", who.user_id, "long_term"))
    with parts.ledger.read() as tx:
        rows = registry.most_important(tx, namespace, least=CARRIED_IMPORTANCE, limit=_CARRIED * 3, at=at)
        judged = feedback.of_texts(tx, [(row.note_id, row.content_hash) for row in rows])
    found: list[_Item] = []
    for row in rows:
        verdict = judge(validity_of(row), at)
        text = text_now(parts, row) if verdict.recalled and row.note_id not in known else None
        if text is None or feedback.hides(judged.get(row.note_id, ())):
            continue
        if any(topic.covers(f"{row.title}\n{row.summary}\n{text}", row.tags) for topic in topics):
            continue
        told = f"({verdict.qualification}) {text}" if verdict.qualification else text
        found.append(_Item(row.note_id, _line(told), f"importance {row.importance:g}", etag=row.etag))
    return found[:_CARRIED]


def _retrieved(who: Context, parts: Parts, vectors: QueryVectors, search: Search | None) -> Retrieved:
    if search is None:
        return Retrieved([], [], False, False, {})
    return retrieve(who, parts, vectors, search, namespaces=tuple(readable_namespaces(who)))


def _without_weak(hits: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
    """Hits that say something, and those so far behind the best one that they are about something else."""
    if not hits:
        return [], []
    least = WEAK_SHARE * hits[0].score
    return [one for one in hits if one.score >= least], [one for one in hits if one.score < least]


def _recalled(parts: Parts, one: Ranked) -> _Item | None:
    text = text_now(parts, one.row)
    if text is None:
        return None
    row = one.row
    said = f"({one.qualification}) {text}" if one.qualification else text
    mark = f"[{row.memory_type}, {(text_time(row.updated_at) or '')[:10]}]"
    return _Item(row.note_id, f"{_line(said)} {mark}", _reason(one), round(one.score, 4), row.etag)


def _reason(one: Ranked) -> str:
    ranks = {"keywords": one.hit.fts_rank, "meaning": one.hit.vector_rank}
    by = " and ".join(f"{name} rank {rank}" for name, rank in ranks.items() if rank is not None)
    return f"recalled by {by}" if by else "recalled"


def _line(text: str) -> str:
    """A text as an item of a list, its further lines set in."""
    return "- " + neutralised(text.strip()).replace("\r\n", "\n").replace("\n", "\n  ")


def _directives(who: Context, parts: Parts) -> list[DirectiveItem]:
    """The user's active directives that the principal may read, last changed first."""
    if who.user_id is None:
        return []
    with parts.ledger.read() as tx:
        resource = guard.resource_at(tx, Namespace("user", who.user_id, "directives"))
    guard.check(parts.ledger, who.principal, "read", resource, guard.no_user(who.user_id))
    found: list[DirectiveItem] = []
    for row in active_directives(parts, who.user_id):
        item = _directive(parts, row)
        if item is not None:
            found.append(item)
    return found


def _directive(parts: Parts, row: NoteRow) -> DirectiveItem | None:
    try:
        read = parts.files.read(row.path)
    except GatewayError:
        return None
    if read is None or read.etag != row.etag:
        return None
    kind = kind_of(read.data)
    content = content_of(read.data).strip()
    return DirectiveItem(row.note_id, kind, f"Do not bring up: {content}" if kind == SUPPRESS else content)

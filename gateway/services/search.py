"""Search: whose memories a request may see, the `retrieve_context` skill, and an answer within its limits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.access import guard
from gateway.access.guard import Context
from gateway.access.principal import Principal
from gateway.access.rules import Decision
from gateway.clock import now_ms
from gateway.errors import GatewayError, Invalid
from gateway.importer.parts import Parts
from gateway.ledger import usage
from gateway.ledger.registry import NoteRow
from gateway.notes.namespace import parse_namespace
from gateway.notes.token_count import count_tokens, cut_to_tokens
from gateway.services import paging, recall
from gateway.services.namespaces import readable_namespaces
from gateway.services.records import Found, SearchAnswer, content_of, record
from gateway.services.requests import Search
from gateway.services.skills_enabled import require
from gateway.services.suppression import suppressed_topics
from gateway.skills.query_vectors import QueryVectors
from gateway.skills.ranking import Ranked
from gateway.skills.retrieve_context import Retrieved, ToRetrieve, retrieve_context

_NOTHING = Retrieved([], [], False, False, {})


def search(principal: Principal, parts: Parts, vectors: QueryVectors, wanted: Search) -> SearchAnswer:
    """Find memories; with a session, also what was said in it.

    Raises:
        Invalid: a wrong field; a namespace outside the given ids; a cursor of another search.
        NotFound: an id is unknown, or not the key's.
    """
    _check(parts, wanted)
    context = context_of(principal, parts, wanted)
    namespaces, with_session = _namespaces(context, wanted)
    offset = _offset(wanted)
    said = recall.episodes(context, parts, wanted) if with_session and not offset else []
    got = retrieve(context, parts, vectors, wanted, namespaces=namespaces, offset=offset)
    found, shown, truncated = _within(parts, wanted, got.hits)
    both = sorted([*found, *said], key=lambda one: (-one.score, one.memory.id))[: wanted.limit]
    more = got.more or shown < len(got.hits)
    following = _cursor(wanted, offset + shown) if more and shown else None
    kept = {one.memory.id for one in both}
    turn = turn_key(context, wanted.session_id, wanted.turn_id)
    parts.uses.shown(turn, [one.memory.id for one in found if one.memory.id in kept])
    return SearchAnswer(both, len(both), got.degraded, truncated, got.candidate_budget_exhausted, following)


def retrieve(
    context: Context,
    parts: Parts,
    vectors: QueryVectors,
    wanted: Search,
    *,
    namespaces: tuple[str, ...],
    offset: int = 0,
) -> Retrieved:
    """Run the pipeline for a checked context, and audit what was shown of which namespace."""
    require(parts, context.user_id, "retrieve_context")
    if not namespaces:
        return _NOTHING
    at = now_ms() if wanted.as_of is None else int(wanted.as_of.timestamp() * 1000)
    asked = ToRetrieve(
        query=wanted.query,
        namespaces=namespaces,
        user_id=context.user_id,
        agent_id=context.agent_id,
        at=at,
        limit=wanted.limit,
        offset=offset,
        mode=wanted.mode,
        kinds=wanted.kinds,
        tags=wanted.tags,
        min_confidence=wanted.min_confidence,
        suppressed=suppressed_topics(parts, context.user_id),
    )
    got = retrieve_context(parts, vectors, asked)
    _audit(context, parts, got, namespaces)
    return got


def context_of(principal: Principal, parts: Parts, wanted: Search) -> Context:
    """The context of a search; an administrator who names nobody searches for the vault's owner. Never "all".

    Raises:
        NotFound: an id is unknown, or not the key's.
    """
    user_id = wanted.user_id
    named = (user_id, wanted.namespaces, wanted.agent_id, wanted.workspace_id)
    if principal.is_admin and all(value is None for value in named):
        user_id = parts.settings.vault.owner
    asked = {"user_id": user_id, "agent_id": wanted.agent_id, "workspace_id": wanted.workspace_id}
    return guard.identify(parts.ledger, principal, **asked)


def turn_key(context: Context, session_id: str | None, turn_id: str | None) -> str | None:
    """What tells one turn of a user (or of a key without one) and agent from all others; None for an unnamed one."""
    if turn_id is None:
        return None
    return usage.turn_of(context.user_id or context.principal.key_id, context.agent_id, session_id, turn_id)


def text_now(parts: Parts, row: NoteRow) -> str | None:
    """The text of a memory as it is in the vault; a stale row can never show text that the file no longer has."""
    try:
        read = parts.files.read(row.path)
    except GatewayError:
        return None
    return content_of(read.data) if read is not None else None


def _check(parts: Parts, wanted: Search) -> None:
    policy = parts.settings.policy
    paging.check_limit(wanted.limit, policy.max_page)
    if len(wanted.query) > policy.max_query_chars:
        raise Invalid(f"A query may have {policy.max_query_chars:,} characters.", field="query")


def _audit(context: Context, parts: Parts, got: Retrieved, namespaces: tuple[str, ...]) -> None:
    """One entry for each namespace that something was shown from; one in all where nothing was."""
    decision = Decision(True, "admin" if context.principal.is_admin else "namespaces of the key")
    shown = {one.row.namespace for one in got.hits} or set(namespaces[:1])
    parts.reads.add(
        *(
            guard.entry(context.principal, "search", "namespace", namespace=name, decision=decision)
            for name in sorted(shown)
        )
    )


def _namespaces(context: Context, wanted: Search) -> tuple[tuple[str, ...], bool]:
    """The namespaces a search covers: those of the given ids, narrowed to those asked for; and if the session is."""
    readable = readable_namespaces(context)
    if wanted.namespaces is None:
        return tuple(readable), wanted.session_id is not None
    session = f"session/{wanted.session_id}/episodic"
    with_session = wanted.session_id is not None and session in wanted.namespaces
    names = [str(parse_namespace(name)) for name in wanted.namespaces if name != session or not with_session]
    free = context.principal.is_admin and context.user_id is None
    outside = [name for name in names if not free and name not in readable]
    if outside:
        raise Invalid(
            f"The namespace {outside[0]} does not belong to the given ids.",
            field="namespaces",
            advice="Name its agent or workspace too, or leave the namespace out.",
        )
    return tuple(names), with_session


@dataclass(slots=True)
class _Room:
    """What an answer may still hold."""

    octets: int
    tokens: int | None

    def take(self, content: str, snippet: str) -> tuple[str, bool]:
        """As much of a text as there is room for, and whether that is less than all of it."""
        data = content.encode("utf-8", "replace")
        cut = content
        if len(data) > self.octets:
            cut = data[: max(0, self.octets)].decode("utf-8", "ignore")
        if self.tokens is not None:
            cut = cut_to_tokens(cut, self.tokens)
            self.tokens -= count_tokens(cut)
        self.octets -= len(cut.encode("utf-8", "replace")) + len(snippet.encode("utf-8", "replace"))
        return cut, len(cut) < len(content)

    @property
    def full(self) -> bool:
        return self.octets <= 0 or (self.tokens is not None and self.tokens <= 0)


def _within(parts: Parts, wanted: Search, hits: Sequence[Ranked]) -> tuple[list[Found], int, bool]:
    """Results with their text as it is in the vault now, within the limits, the first included; how many hits were
    used up for them; and whether anything was cut or left out."""
    most = parts.settings.policy.max_answer_bytes
    room = _Room(min(most, wanted.max_bytes or most), wanted.max_tokens)
    found: list[Found] = []
    for number, hit in enumerate(hits):
        content = text_now(parts, hit.row)
        if content is None:
            continue
        if room.full and found:
            return found, number, True
        cut, is_cut = room.take(content, hit.hit.text)
        found.append(_found(hit, cut, explain=wanted.explain))
        if is_cut:
            return found, number + 1, True
    return found, len(hits), False


def _found(one: Ranked, content: str, *, explain: bool) -> Found:
    hit = one.hit
    found = Found(
        record(one.row, content),
        round(one.score, 6),
        hit.heading,
        hit.text[:500],
        qualification=one.qualification,
        folded=list(one.like),
    )
    if not explain:
        return found
    ranks: dict[str, float | int | None] = {
        "fts_rank": hit.fts_rank,
        "fts_score": hit.fts_score,
        "vector_rank": hit.vector_rank,
        "vector_distance": hit.vector_distance,
    }
    return replace(found, explain=ranks | {name: round(value, 6) for name, value in one.factors.items()})


def _key(wanted: Search) -> int:
    """What ties a cursor to its search."""
    asked = wanted.model_dump_json(
        exclude={"cursor", "turn_id", "offset", "limit", "explain", "max_bytes", "max_tokens"}
    )
    return int.from_bytes(hashlib.sha256(asked.encode("utf-8", "replace")).digest()[:6], "big")


def _cursor(wanted: Search, offset: int) -> str:
    return paging.encoded(_key(wanted), str(offset))


def _offset(wanted: Search) -> int:
    found = paging.cursor(wanted.cursor)
    if found is None:
        return wanted.offset
    key, offset = found
    if key != _key(wanted) or not offset.isdigit() or int(offset) > 10_000:
        raise Invalid("The cursor belongs to another search.", field="cursor", advice="Begin the search anew.")
    return int(offset)

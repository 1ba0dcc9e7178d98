"""The three prompts of the seeds: router, worker and system. What comes from memory stands in a fence and is data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from gateway.access.principal import Principal
from gateway.errors import Invalid
from gateway.importer.parts import Parts
from gateway.notes.fence import fenced, neutralised
from gateway.notes.structured import plain
from gateway.notes.token_count import count_tokens
from gateway.services import agent_files, context, structured
from gateway.services.context import Turns
from gateway.services.context_requests import ContextRequest
from gateway.skills.query_vectors import QueryVectors
from gateway.starter import templates

KINDS = ("router", "worker", "system")
SHARE = 0.15
MIN_LIMIT, MAX_LIMIT = 512, 2_000_000
_HEADINGS = {"router": "## User memory", "worker": "## Work memory"}
_MIN_RECALL = 64


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of a prompt: how many tokens it has, and whether it was cut or left out to fit."""

    name: str
    tokens: int
    cut: bool = False
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, ready to be sent.

    Attributes:
        tokens: of the whole prompt; never more than `budget`.
        budget: what of the token limit it may use.
        parts: in the order of the prompt.
        degraded: what did not take part in recall.
    """

    kind: str
    user_id: str
    prompt: str
    tokens: int
    budget: int
    parts: list[PromptPart]
    degraded: list[str]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part on its way into a prompt.

    Attributes:
        rank: the higher it is, the sooner it is cut.
        data: it comes from memory and stands in the fence.
    """

    name: str
    text: str
    rank: int
    data: bool = False


def router(principal: Principal, parts: Parts, *, user_id: str | None, token_limit: int) -> Prompt:
    """Who the user is, for whoever understands and distributes their requests (seed 001).

    Raises:
        Invalid: a token limit that is out of range.
        NotFound: there is no such user, or it is another.
    """
    return _structured(principal, parts, "router", user_id=user_id, token_limit=token_limit)


def worker(principal: Principal, parts: Parts, *, user_id: str | None, token_limit: int) -> Prompt:
    """What the user works on, for whoever carries out their requests (seed 001).

    Raises:
        Invalid, NotFound: as for `router`.
    """
    return _structured(principal, parts, "worker", user_id=user_id, token_limit=token_limit)


def system(
    principal: Principal, parts: Parts, vectors: QueryVectors, *, user_id: str | None, token_limit: int, query: str
) -> Prompt:
    """AGENTS, SOUL, directives, USER, MEMORY and what is recalled, in 15 % of the token limit (seed 000).

    Raises:
        Invalid, NotFound: as for `router`.
    """
    budget = _budget(token_limit)
    files = {name: agent_files.get(principal, parts, name, user_id=user_id)[0].content for name in agent_files.FILES}
    asked = {"query": query, "user_id": user_id, "token_budget": max(_MIN_RECALL, budget // 3)}
    recalled = context.context(principal, parts, vectors, Turns(), ContextRequest.model_validate(asked))
    directives = "\n".join(f"- {one.content}" for one in recalled.directives)
    pieces = [
        Piece("intro", _template("system"), 0),
        Piece("agents", (templates() / "AGENTS.md").read_text("utf-8").strip(), 1),
        Piece("soul", neutralised(files["soul"].strip()), 2),
        Piece("directives", f"# Standing instructions of the user\n\n{directives}" if directives else "", 1),
        Piece("user", files["user"].strip(), 3, data=True),
        Piece("memory", files["memory"].strip(), 4, data=True),
        Piece("recall", _inside(recalled.memory), 5, data=True),
    ]
    made = _assembled(pieces, budget)
    return Prompt("system", _user_of(principal, parts, user_id), *made, recalled.manifest.degraded)


def _structured(principal: Principal, parts: Parts, kind: str, *, user_id: str | None, token_limit: int) -> Prompt:
    budget = _budget(token_limit)
    known = structured.get_all(principal, parts, user_id=user_id)
    content = known.user_memory if kind == "router" else known.work_memory
    said: dict[str, Any] = _without_empty(plain(content)) if content is not None else {}
    text = yaml.safe_dump(said, allow_unicode=True, sort_keys=False, width=1_000) if said else ""
    pieces = [Piece("intro", _template(kind), 0)]
    if text:
        pieces.append(Piece("memory", f"{_HEADINGS[kind]}\n\n{text.strip()}", 1, data=True))
    made = _assembled(pieces, budget)
    return Prompt(kind, _user_of(principal, parts, user_id), *made, [])


def _inside(memory: str) -> str:
    """The data of a fenced context without its fence, to be fenced again together with the rest."""
    lines = memory.splitlines()[1:-1]
    return "\n".join(lines[2:]).strip()


def _assembled(pieces: Sequence[Piece], budget: int) -> tuple[str, int, int, list[PromptPart]]:
    """Put the pieces together; what is least important is cut first, by binary search, until the whole fits."""
    kept = {piece.name: piece.text for piece in pieces}
    for piece in sorted(pieces, key=lambda one: -one.rank):
        if count_tokens(_joined(pieces, kept)) <= budget:
            break

        def fits(length: int, piece: Piece = piece) -> bool:
            return count_tokens(_joined(pieces, kept | {piece.name: _cut(piece.text, length)})) <= budget

        kept[piece.name] = _cut(piece.text, _longest(len(piece.text), fits))
    prompt = _joined(pieces, kept)
    told = [
        PromptPart(
            one.name,
            count_tokens(kept[one.name]),
            cut=bool(kept[one.name]) and kept[one.name] != one.text,
            left_out=bool(one.text) and not kept[one.name],
        )
        for one in pieces
    ]
    return prompt, count_tokens(prompt), budget, told


def _joined(pieces: Sequence[Piece], kept: dict[str, str]) -> str:
    plain_text = [kept[one.name] for one in pieces if not one.data and kept[one.name]]
    data = [kept[one.name] for one in pieces if one.data and kept[one.name]]
    return "\n\n".join([*plain_text, *([fenced("\n\n".join(data))] if data else [])])


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest length that fits, by binary search; 0 where nothing does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _cut(text: str, length: int) -> str:
    return text if length >= len(text) else f"{text[:length].rstrip()} …" if length > 0 else ""


def _budget(token_limit: int) -> int:
    if not MIN_LIMIT <= token_limit <= MAX_LIMIT:
        raise Invalid(f"`token_limit` lies between {MIN_LIMIT} and {MAX_LIMIT:,}.", field="token_limit")
    return int(token_limit * SHARE)


def _user_of(principal: Principal, parts: Parts, user_id: str | None) -> str:
    return user_id or principal.user_id or parts.settings.vault.owner


def _without_empty(value: Any) -> Any:
    """What says something: no nulls, no empty lists, no empty objects."""
    if isinstance(value, dict):
        found = {name: _without_empty(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return {name: one for name, one in found.items() if one not in (None, "", [], {})}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [kept for one in value if (kept := _without_empty(one)) not in (None, "", [], {})]  # pyright: ignore[reportUnknownVariableType]
    return value


@cache
def _template(name: str) -> str:
    return (templates() / "prompts" / f"{name}.md").read_text("utf-8").strip()

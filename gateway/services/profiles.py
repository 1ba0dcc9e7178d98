"""Profiles: what is stable about a user, read from `Profile.md` and `Preferences.md`, which people edit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.errors import GatewayError
from gateway.importer.parts import Parts
from gateway.importer.rows import HELD
from gateway.ledger import identities, registry, reviews
from gateway.notes.namespace import Namespace, note_path
from gateway.notes.text import is_memory_id
from gateway.services.records import content_of

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$")
_ITEM = re.compile(r"^\s*[-*+]\s+(.+?)\s*$")
_PAIR = re.compile(r"^\**([^:：*]{1,60}?)\**\s*[:：]\**\s*(.+)$")
_WORKING_STYLE = ("working style", "工作风格", "工作方式")
_PREFERENCES = ("preference", "偏好")


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """A profile as seed 004 section B has it. `version` is that of `Profile.md`; 0 where there is none yet."""

    id: str
    user_id: str
    namespace: str
    display_name: str
    stable_facts: list[str]
    preferences: dict[str, Any]
    working_style: list[str]
    updated_from_memory_ids: list[str]
    version: int


def get(principal: Principal, parts: Parts, user_id: str | None) -> ProfileRecord:
    """The profile of a user.

    Raises:
        NotFound: there is no such user, or it is another.
    """
    context = guard.identify(parts.ledger, principal, user_id=user_id)
    owner = context.user_id or parts.settings.vault.owner
    with parts.ledger.read() as tx:
        user = identities.user(tx, owner)
        resource = guard.resource_at(tx, Namespace("user", owner, "profile"))
    decision = guard.check(parts.ledger, context.principal, "read", resource, guard.no_user(owner))
    if user is None:
        raise guard.no_user(owner)
    profile, version = _note(parts, owner, "profile")
    preferences, _ = _note(parts, owner, "preferences")
    found = _sections(profile)
    parts.reads.add(guard.entry(context.principal, "read_profile", "profile", target_id=owner, decision=decision))
    return ProfileRecord(
        id=f"profile_{owner}",
        user_id=owner,
        namespace=str(Namespace("user", owner, "profile")),
        display_name=user.display_name,
        stable_facts=_items(found, _is_fact),
        preferences=user.preferences | _pairs(found) | _pairs(_sections(preferences), everything=True),
        working_style=_items(found, _is_style),
        updated_from_memory_ids=_sources(parts, owner),
        version=version,
    )


def _note(parts: Parts, owner: str, room: str) -> tuple[str, int]:
    path = note_path(Namespace("user", owner, room), "", owner=parts.settings.vault.owner)
    with parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, [path]).get(path)
    if row is None or row.status == HELD:
        return "", 0
    try:
        read = parts.files.read(path)
    except GatewayError:
        return "", 0
    return (content_of(read.data), row.version) if read else ("", 0)


def _sources(parts: Parts, owner: str) -> list[str]:
    """The memories that the profile was made from, as the drafts that were accepted for it say."""
    path = note_path(Namespace("user", owner, "profile"), "", owner=parts.settings.vault.owner)
    with parts.ledger.read() as tx:
        row = registry.notes_by_path(tx, [path]).get(path)
        edges = reviews.edges_of(tx, row.note_id) if row is not None else []
    parents = [edge.parent for edge in edges if row is not None and edge.child == row.note_id]
    return [one for one in dict.fromkeys(parents) if is_memory_id(one)]


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """Headings and the list items below each."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        if heading := _HEADING.match(line):
            found.append((heading.group(1).casefold(), []))
        elif item := _ITEM.match(line):
            found[-1][1].append(item.group(1))
    return found


def _items(found: list[tuple[str, list[str]]], wanted: Callable[[str], bool]) -> list[str]:
    return [item for title, items in found if wanted(title) for item in items]


def _pairs(found: list[tuple[str, list[str]]], *, everything: bool = False) -> dict[str, str]:
    items = _items(found, _is_anything if everything else _is_preference)
    pairs = [_PAIR.match(item) for item in items]
    return {
        (pair.group(1).strip() if pair else f"{number}"): (pair.group(2).strip() if pair else item)
        for number, (pair, item) in enumerate(zip(pairs, items, strict=True), start=1)
    }


def _is_style(title: str) -> bool:
    return any(word in title for word in _WORKING_STYLE)


def _is_preference(title: str) -> bool:
    return any(word in title for word in _PREFERENCES)


def _is_fact(title: str) -> bool:
    return not _is_style(title) and not _is_preference(title)


def _is_anything(_title: str) -> bool:
    return True

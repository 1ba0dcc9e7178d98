"""Merges a partial structured content into a whole one (RFC 7396, lists of named things by name); dates items. Pure.

Lists: seed 001. Names are compared without regard to case and composition.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, cast

# Lists of things with a name; an item changes the one of its name, or is added.
NAMED_LISTS: Final = frozenset(
    {"people", "places", "recurring_routines", "current_projects", "team_members", "key_milestones"}
)
Json = dict[str, Any]


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Json:
    """The target with the patch applied: null takes a value away, objects merge, other lists are replaced."""
    result: Json = deepcopy(dict(target))
    for name, value in patch.items():
        present = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = cast("Json", present) if isinstance(present, dict) else {}
            result[name] = merged(inner, cast("Json", value))
        elif name in NAMED_LISTS and isinstance(value, list):
            result[name] = _by_name(cast("list[Any]", present or []), cast("list[Any]", value))
        else:
            result[name] = value
    return result


def index_in(patch: object, item: object) -> int | None:
    """Where in a patch's list the item of this name stands."""
    key = _key(item)
    items = cast("list[Any]", patch) if isinstance(patch, list) else []
    return next((number for number, one in enumerate(items) if key is not None and _key(one) == key), None)


def dated(content: Json, before: Mapping[str, Any], at: str) -> Json:
    """The content with `meta.last_updated_at` set in items that are new or say something else than before.

    A time that the caller gives is kept, and so is that of an item which did not change.
    """
    result = dict(content)
    for name, value in content.items():
        if name in NAMED_LISTS and isinstance(value, list):
            known = {_key(one): one for one in reversed(cast("list[Json]", before.get(name) or []))}
            result[name] = [_dated(one, known.get(_key(one)), at) for one in cast("list[Json]", value)]
    return result


def _dated(item: Json, before: Json | None, at: str) -> Json:
    if "meta" not in item:
        return item
    meta = cast("Json", item["meta"])
    earlier = cast("Json", before["meta"]).get("last_updated_at") if before is not None else None
    given = meta.get("last_updated_at")
    if given is not None and given != earlier:
        return item
    same = before is not None and _undated(item) == _undated(before)
    return item | {"meta": meta | {"last_updated_at": earlier if same else at}}


def _undated(item: Json) -> Json:
    return item | {"meta": cast("Json", item["meta"]) | {"last_updated_at": None}}


def _by_name(present: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    result = list(present)
    for item in patch:
        key = _key(item)
        at = next((number for number, one in enumerate(result) if key is not None and _key(one) == key), None)
        if at is None:
            result.append(merged({}, cast("Json", item)) if isinstance(item, dict) else item)
        else:
            result[at] = merged(cast("Json", result[at]), cast("Json", item))
    return result


def _key(item: object) -> str | None:
    name = cast("Json", item).get("name") if isinstance(item, dict) else None
    return unicodedata.normalize("NFC", name).casefold().strip() if isinstance(name, str) else None

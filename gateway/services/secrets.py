"""Keeps secrets out of what is stored: one check for texts that are to last, one mask for what is short-lived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from gateway.access.principal import Principal
from gateway.errors import SecretFound
from gateway.importer.parts import Parts
from gateway.notes.note import parse
from gateway.notes.secrets import MARK, FoundSecret, allows_secrets, find_secrets, mask

_ADVICE = "Take it out, or keep it in a secret store and name only its place there."


def check_secrets(parts: Parts, **fields: object) -> None:
    """Refuse texts that hold a secret, as far as the settings ask for it.

    Args:
        fields: texts by the name of their field; lists and dictionaries are looked through.

    Raises:
        SecretFound: names the field, the kind and the place in it; the text itself is nowhere in the error.
    """
    if parts.settings.secrets.refuse == "none":
        return
    for field, value in fields.items():
        personal = _counts_personal(parts) and not field.endswith(("_id", "_ids"))  # an id may well be a number
        for text in _texts(value):
            found = find_secrets(text, personal=personal)
            if found:
                raise _error(field, found[0])


def check_request(parts: Parts, request: BaseModel) -> None:
    """Refuse a request of which any text holds a secret.

    Raises:
        SecretFound: as for `check_secrets`.
    """
    check_secrets(parts, **{name: getattr(request, name) for name in request.model_fields_set})


def check_candidate(parts: Parts, content: str) -> None:
    """Refuse to let a text out of a session that holds a secret, or held one that was masked.

    Raises:
        SecretFound: as for `check_secrets`.
    """
    check_secrets(parts, content=content)
    if MARK in content:
        raise SecretFound("A secret was removed from this candidate; it does not become a memory.", field="content")


def masked(parts: Parts, value: Any) -> Any:
    """A text, or a structure of texts, with each secret replaced by `[secret removed: <kind>]`.

    A value is judged together with its key, so that `{"password": "…"}` is masked too.
    """
    if parts.settings.secrets.refuse == "none":
        return value
    return _masked(value, "", personal=_counts_personal(parts))


def _counts_personal(parts: Parts) -> bool:
    return parts.settings.secrets.personal_data == "refuse"


def _error(field: str, found: FoundSecret) -> SecretFound:
    what = "personal data" if found.personal else "a secret"
    return SecretFound(
        f"`{field}` holds {what} ({found.kind}) at line {found.line}, column {found.column}; nothing was stored.",
        advice=_ADVICE,
        field=field,
        line=found.line,
        kind=found.kind,
        column=found.column,
    )


def _texts(value: object, name: str = "") -> Iterator[str]:
    """All texts of a structure; those of a dictionary as `key: value`."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield str(key)
            yield from _texts(item, f"{key}: ")
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _texts(item, name)
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        yield f"{name}{value}"


def _masked(value: Any, name: str, *, personal: bool) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {
            _masked(key, "", personal=personal): _masked(item, f"{key}: ", personal=personal) for key, item in items
        }
    if isinstance(value, list | tuple):
        return [_masked(item, name, personal=personal) for item in cast("list[Any]", value)]
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        text = f"{name}{value}"
        safe = mask(text, personal=personal)
        if safe != text:
            return safe[len(name) :] if safe.startswith(name) else mask(str(value), personal=personal)
    return value


def check_patch(principal: Principal, parts: Parts, patch: BaseModel, before: bytes) -> None:
    """Refuse a change that brings a secret in; a user may do so in a note that a person marked `secrets: allowed`.

    Raises:
        SecretFound: as for `check_secrets`.
    """
    if principal.agent_id is not None or not allows_secrets(parse(before)):
        check_request(parts, patch)


def check_note(parts: Parts, data: bytes) -> None:
    """Refuse bytes that the importer would hold back for a secret.

    Raises:
        SecretFound: the place is that in the file.
    """
    note = parse(data)
    if not allows_secrets(note):
        check_secrets(parts, content=note.text)

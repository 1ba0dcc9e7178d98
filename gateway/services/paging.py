"""Cursors of lists: opaque to the caller, a time and an id to us."""

from __future__ import annotations

import base64
import binascii
import json

from gateway.errors import Invalid


def check_limit(limit: int, most: int) -> None:
    """Make sure that a page is of an acceptable size.

    Raises:
        Invalid: it is not.
    """
    if not 1 <= limit <= most:
        raise Invalid(f"`limit` lies between 1 and {most}.", field="limit")


def encoded(at: int, identifier: str) -> str:
    """The cursor that continues after a row."""
    return base64.urlsafe_b64encode(json.dumps([at, identifier]).encode("ascii")).decode("ascii")


def cursor(text: str | None) -> tuple[int, str] | None:
    """The (time, id) that a cursor stands for.

    Raises:
        Invalid: it is not one of ours.
    """
    if text is None:
        return None
    try:
        at, identifier = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        return int(at), str(identifier)
    except (ValueError, TypeError, binascii.Error, UnicodeError):
        raise Invalid("The cursor is not one of ours.", field="cursor", advice="Use `next_cursor` of a page.") from None

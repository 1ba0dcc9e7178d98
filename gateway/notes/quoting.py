"""Writes one value as YAML that Obsidian, YAML 1.1 and YAML 1.2 readers all understand the same way."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from gateway.errors import CannotPatch
from gateway.notes.properties import PropertyValue, type_plain

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")
# A letter, sign or picture first (no digit: ULIDs, times and octal numbers); nothing that YAML gives a meaning.
_PLAIN = re.compile(r"[^\W\d_][^:#\[\]{}&*!|>%@`\"\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]*")
_FLOW_SIGNS = frozenset(",'")
# YAML 1.1 readers (older Obsidian plugins, PyYAML) see booleans and numbers in these.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "none"))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_MUST_ESCAPE = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]')


def quote(text: str, *, flow: bool = False) -> str:
    """Write text on one line: plain where no reader can mistake it, in double quotes otherwise.

    Letters of every script and emoji stay as they are; dates and date-times stay plain, for Obsidian's date fields.
    """
    if _DATE.fullmatch(text):
        return text
    if _PLAIN.fullmatch(text) and _is_safe_plain(text) and not (flow and _FLOW_SIGNS.intersection(text)):
        return text
    return '"' + _MUST_ESCAPE.sub(lambda match: _escape(match.group()), text) + '"'


def inline(value: PropertyValue, *, flow: bool = False) -> str:
    """Write any value on one line; an empty value is nothing at all, as in Obsidian, except inside a list.

    Raises:
        CannotPatch: a number that has no exact decimal form here (NaN, infinity).
    """
    if value is None:
        return "null" if flow else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, str):
        return quote(value, flow=flow)
    if isinstance(value, list):
        return "[" + ", ".join(inline(item, flow=True) for item in value) + "]"
    return "{" + ", ".join(f"{_flow_key(key)}: {inline(item, flow=True)}" for key, item in value.items()) + "}"


def property_lines(key: str, value: PropertyValue, *, indent: str = "", eol: str = "\n") -> str:
    """Write a whole property: `key: value`, or the key and a block list below it."""
    head = f"{indent}{quote(key)}:"
    if isinstance(value, list) and value:
        return head + eol + list_lines(value, indent + "  ", eol)
    written = inline(value)
    return f"{head} {written}{eol}" if written else head + eol


def list_lines(value: list[PropertyValue], indent: str, eol: str) -> str:
    """Write the items of a block list, one a line."""
    return "".join(f"{indent}- {'null' if item is None else inline(item)}{eol}" for item in value)


def _flow_key(key: str) -> str:
    return quote(key, flow=True)


def _is_safe_plain(text: str) -> bool:
    if text.casefold() in _WORDS or text[-1] in " \t" or "  " in text:
        return False
    return type_plain(text) == text and not text.startswith(("---", "..."))


def _decimal(value: float) -> str:
    if not math.isfinite(value):
        raise CannotPatch("A number must be finite.")
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else digits + ".0"


def _escape(char: str) -> str:
    code = ord(char)
    return _ESCAPES.get(char) or (f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}")

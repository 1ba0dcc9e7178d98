"""Finds passwords, keys, tokens and personal numbers in text. Pure; a found value is never kept, only its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.notes import secret_kinds as kinds
from gateway.notes.note import NoteProblem, ParsedNote

__all__ = ["ALLOWED", "MARK", "FoundSecret", "allows_secrets", "find_secrets", "held_for_secret", "mask"]

ALLOWED: Final = "allowed"
MARK: Final = "[secret removed: "


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """Where a secret stands; never what it is.

    Attributes:
        kind: stable name: `password`, `api-key`, `token`, `private-key`, `github-token`, `phone-number`, …
        line: 1-based line of the text.
        column: 1-based column of its first character.
        end: 1-based column after its last character on that line.
    """

    kind: str
    line: int
    column: int
    end: int

    @property
    def personal(self) -> bool:
        """Whether it is personal data, which the settings may allow, rather than a secret."""
        return self.kind in kinds.PERSONAL_KINDS


def find_secrets(text: str, *, personal: bool = True) -> tuple[FoundSecret, ...]:
    """Find secrets, in the order in which they stand.

    Args:
        personal: also find identity, phone and bank card numbers.
    """
    return tuple(_placed(text, _spans(text, personal=personal)))


def mask(text: str, *, personal: bool = True) -> str:
    """The text with `[secret removed: <kind>]` in place of each secret; masking twice changes nothing more."""
    kept, at = "", 0
    for span in _spans(text, personal=personal):
        kept += f"{text[at : span.start]}{MARK}{span.kind}]"
        at = span.stop
    return kept + text[at:]


def allows_secrets(note: ParsedNote) -> bool:
    """Whether a person said of this note that what looks like a secret may stay: the property `secrets: allowed`."""
    value = note.properties.get("secrets")
    return isinstance(value, str) and value.strip().casefold() == ALLOWED


def held_for_secret(note: ParsedNote, *, personal: bool = True) -> ParsedNote:
    """The note, or where it holds a secret that nobody allowed, the same note held back for it."""
    if note.readiness != "ready" or allows_secrets(note):
        return note
    found = find_secrets(note.text, personal=personal)
    if not found:
        return note
    first, more = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    what = "personal data" if first.personal else "a secret"
    message = f"The note holds {what} ({first.kind}){more}; it is neither remembered nor committed."
    advice = "Take it out, or set the property `secrets: allowed` in the note."
    problem = NoteProblem("secret", message, first.line, advice)
    return ParsedNote({}, note.body, note.text, note.body_start_line, "held", (problem,))


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    stop: int
    kind: str


def _spans(text: str, *, personal: bool) -> list[_Span]:
    if _WIDE.search(text):
        text = text.translate(_NARROW)  # one sign for one sign: places stay
    found = [*_shaped(text), *_announced(text)]
    if _NUMBER.search(text):
        found += _free(text, kinds.known_shapes().telegram, "telegram-token")
        found += _personal(text) if personal else ()
    found.sort(key=lambda span: (span.start, -span.stop))
    apart: list[_Span] = []
    for span in found:
        if not apart or span.start >= apart[-1].stop:
            apart.append(span)
    return apart


def _placed(text: str, spans: list[_Span]) -> Iterator[FoundSecret]:
    line, counted = 1, 0
    for span in spans:
        line += text.count("\n", counted, span.start)
        counted = span.start
        begin = text.rfind("\n", 0, span.start) + 1
        line_end = text.find("\n", span.start, span.stop)
        stop = line_end if line_end >= 0 else span.stop
        yield FoundSecret(span.kind, line, span.start - begin + 1, stop - begin + 1)


_NUMBER = re.compile("[0-9]{3}")
_WIDE = re.compile("[０-９Ａ-Ｚａ-ｚ：＝]")
_NARROW = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1B), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
_NARROW[0xFF1D] = 0x3D


def _shaped(text: str) -> Iterator[_Span]:
    """Keys whose own shape tells what they are."""
    if "PRIVATE KEY" in text or "PuTTY-User-Key" in text:
        yield from (
            _Span(match.start(), _key_end(text, match.end()), "private-key")
            for match in kinds.PRIVATE_KEY.finditer(text)
        )
    known = kinds.known_shapes()
    for sign, kind, pattern in kinds.OWN_SHAPES:
        if sign in text:
            yield from (_Span(*match.span(), kind) for match in _at_sign(text, sign, pattern))
    for shape in known.signed:
        if shape.sign in text:
            yield from _known(text, shape)
    if "eyJ" in text:
        for match in _at_sign(text, "eyJ", kinds.JWT):
            if known.is_token(match.group()):
                yield _Span(*match.span(), "json-web-token")
    yield from _free(text, known.discord, "discord-token")


def _free(text: str, pattern: re.Pattern[str], kind: str) -> Iterator[_Span]:
    """A shape without a sign, standing alone."""
    return (_Span(*match.span(), kind) for match in pattern.finditer(text) if _alone(text, *match.span()))


def _known(text: str, shape: kinds.Shape) -> Iterator[_Span]:
    for match in _at_sign(text, shape.sign, shape.pattern, back=shape.back):
        start, stop = match.span(shape.group)
        if shape.group and _stands_in(match.group(shape.group)):
            continue
        if shape.group or _alone(text, start, stop):
            yield _Span(start, stop, shape.kind)


def _at_sign(text: str, sign: str, pattern: re.Pattern[str], *, back: int = 0) -> Iterator[re.Match[str]]:
    """Matches where the sign begins a word; each place is tried once, so that no text takes long."""
    at = text.find(sign)
    while at >= 0:
        begin = at - back
        free = begin >= 0 and (not sign[0].isalnum() or begin == 0 or text[begin - 1] not in _OF_WORDS)
        match = pattern.match(text, begin) if free else None
        if match is not None:
            yield match
        at = text.find(sign, max(at + 1, match.end() if match else 0))


def _alone(text: str, start: int, stop: int) -> bool:
    before, after = text[start - 1 : start], text[stop : stop + 1]
    return (not before or before not in _OF_WORDS) and (not after or after not in _OF_WORDS)


def _key_end(text: str, begun: int) -> int:
    end = kinds.PRIVATE_KEY_END.search(text, begun, begun + _LONGEST_KEY)
    if end is not None:
        return end.end()
    while (line := kinds.PRIVATE_KEY_LINE.match(text, begun)) is not None:
        begun = line.end()
    return begun


_OF_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST_KEY = 20_000

_CLOSERS = r"""[\]"'`*)]{0,4}"""
_ASIDE = r"(?:\([^()\n]{0,24}\)|（[^（）\n]{0,24}）)?"
# A value in quotes, or a run of visible ASCII signs.
_VALUE = (
    r"""[*_]{0,2}(?:(?P<mark>["'`])(?P<quoted>[^"'`\n]{3,200})(?P=mark)"""
    r"""|[“‘「](?P<curly>[^”’」\n]{3,200})[”’」]|(?P<bare>[!-~]{3,400}+))"""
)
_SUFFIX = (
    r"(?:_(?!hash|policy|file|path|reset|length|min|max|manager|field|id|url|expir|count|name)[A-Za-z0-9]{1,16}"
    r"|\d{1,2})?"
)
_BESIDE = rf"{_SUFFIX}{_CLOSERS}[ \t]*{_ASIDE}[ \t]*(?P<sep>:=|=>|={{1,3}}|:(?!:)|is(?=[ \t]))[ \t]*{_VALUE}"
_ANNOUNCED = {
    "password": re.compile(rf"(?:pass(?:word|wd|phrase|code)|pwd|db_pass|contraseña){_BESIDE}", re.IGNORECASE),
    "api-key": re.compile(rf"(?:secret|key){_BESIDE}", re.IGNORECASE),
    "token": re.compile(rf"token{_BESIDE}", re.IGNORECASE),
    "bearer": re.compile(rf"bearer(?P<sep>[ \t]+){_VALUE}", re.IGNORECASE),
}
_EAST = re.compile(
    rf"[^\s:=]{{2,6}}?{_CLOSERS}[ \t]*{_ASIDE}[ \t]*(?P<sep>:|={{1,2}}|是|为|為|は|[ \t])[ \t]*[:=]?[ \t]*"
    rf"{_VALUE}(?![位个個字天次分秒%])"
)
_SIGNS: tuple[tuple[str, str], ...] = (
    *((word, "password") for word in kinds.PASSWORD_WORDS),
    *(("secret", "api-key"), ("key", "api-key"), ("token", "token"), ("bearer", "bearer")),
)
_SIGNS_EAST: tuple[tuple[str, str], ...] = (
    *((word, "password") for word in kinds.PASSWORD_WORDS_EAST),
    *((word, "api-key") for word in kinds.KEY_WORDS_EAST),
    *((word, "verification-code") for word in kinds.CODE_WORDS_EAST),
)


def _announced(text: str) -> Iterator[_Span]:
    """Values that a word before them calls a password, key, token or code."""
    lower = _lower(text)
    for word, kind in _SIGNS:
        if word in lower:
            yield from _after(text, lower, word, kind)
    if not text.isascii():
        for word, kind in _SIGNS_EAST:
            if word in lower:
                yield from _after(text, lower, word, kind)


def _lower(text: str) -> str:
    """The text in lower case, each sign in its place; a few letters would become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _after(text: str, lower: str, word: str, kind: str) -> Iterator[_Span]:
    at = lower.find(word)
    while at >= 0:
        stop = at + 1
        if word != "key" or kinds.KEY_OWNERS.search(text, max(0, at - 14), at):
            pattern = _ANNOUNCED[kind] if word.isascii() or word == "contraseña" else _EAST
            span = _value(pattern.match(text, at), "token" if kind == "bearer" else kind)
            if span is not None:
                yield span
                stop = span.stop
        at = lower.find(word, stop)


def _value(match: re.Match[str] | None, kind: str) -> _Span | None:
    if match is None:
        return None
    group = next(name for name in ("quoted", "curly", "bare") if match.group(name) is not None)
    value = match.group(group)
    if group == "bare":
        value = value.rstrip(".,;:)]}>\"'`*|\\")
    if not value or _stands_in(value):
        return None
    sure = _is_secret(value, kind, match.group("sep").strip().lower(), quoted=group != "bare")
    return _Span(match.start(group), match.start(group) + len(value), kind) if sure else None


# Rules, in the order in which they are asked: what refers to a value, is a place, a range, a date, or a mark.
_REFERENCE = re.compile(
    r"[\[<{(#|\\/~]|\.{1,3}/|[$%]\w|[$%][{(]|!!|&\w+$|[\w.]+[(\[]|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|"
    r"(?:env|file|vault|ref|secret|pass):|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|\d{4}-\d\d-\d\d|\d{1,3}[-~+]\d{0,3}$"
)


def _stands_in(value: str) -> bool:
    """Whether a value only stands in the place of a secret, or tells where it is."""
    lower = value.lower()
    if lower in kinds.HARMLESS or "://" in value or _REFERENCE.match(value):
        return True
    if re.split(r"[-_./ ]", lower, maxsplit=1)[0] in kinds.METHODS:
        return True
    return len(set(lower)) == 1 and not lower.isdigit()


def _is_secret(value: str, kind: str, sep: str, *, quoted: bool) -> bool:
    digit, letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if " " in value or not value.isascii():
        return False
    spoken = sep in ("is", "是", "为", "為", "は", "")
    if kind == "verification-code":
        return digit and 4 <= len(value) <= 8 and value.isalnum() and sep != ""
    if kind == "password":
        return _is_password(value, digit=digit, letter=letter, sep=sep, quoted=quoted)
    if digit and letter:
        return len(value) >= (16 if spoken else 8)
    return len(value) >= 24 and not spoken and (quoted or value.isalnum())


def _is_password(value: str, *, digit: bool, letter: bool, sep: str, quoted: bool) -> bool:
    if sep == "":
        return digit and letter and len(value) >= 8
    if digit:
        return len(value) >= (6 if sep in ("is", "は") else 4)
    if sep == "is":
        return False
    marked = any(not sign.isalnum() and sign not in "-_'." for sign in value.rstrip("!?"))
    return len(value) >= 6 and (quoted or marked or len(value) >= 16 or sep == "=")


_PHONE = re.compile(r"(?<![A-Za-z0-9_./#-])(?:\+?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?![A-Za-z0-9_-]|\.\d)")
_IDENTITY = re.compile(
    r"(?<![0-9A-Za-z_])[1-9]\d{5}(?:18|19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![0-9A-Za-z_])"
)
_CARD = re.compile(r"[^\d\n]{0,16}(?P<number>\d(?:[ -]?\d){11,18})(?!\d)")
_IN_ADDRESS = re.compile(r"://\S*\Z")


def _personal(text: str) -> Iterator[_Span]:
    """Numbers that are personal data: identity cards with a right check digit, mobile phones, bank cards."""
    for match in _IDENTITY.finditer(text):
        if _identity_checks(match.group()):
            yield _Span(*match.span(), kinds.IDENTITY_NUMBER)
    for match in _PHONE.finditer(text):
        if not _IN_ADDRESS.search(text, max(0, match.start() - 300), match.start()):
            yield _Span(*match.span(), kinds.PHONE_NUMBER)
    lower = _lower(text)
    for word in kinds.CARD_WORDS:
        at = lower.find(word)
        while at >= 0:
            card = _CARD.match(text, at + len(word))
            if card is not None and _luhn_checks(card.group("number")):
                yield _Span(*card.span("number"), kinds.BANK_CARD)
            at = lower.find(word, at + 1)


def _identity_checks(number: str) -> bool:
    """GB 11643-1999: a sum weighted by powers of two, modulo 11."""
    weighted = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(number[:17]))
    return "10X98765432"[weighted % 11] == number[17].upper()


def _luhn_checks(number: str) -> bool:
    """ISO/IEC 7812-1 annex B."""
    digits = [int(sign) for sign in reversed(number) if sign.isdigit()]
    doubled = (2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[1::2])
    return 12 <= len(digits) <= 19 and (sum(digits[::2]) + sum(doubled)) % 10 == 0

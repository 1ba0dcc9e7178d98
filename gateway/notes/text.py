"""Hashes, ids and file names that are derived from text."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from typing import Final

from gateway.clock import now_ms
from gateway.notes.paths import is_reserved_name

ID_PREFIX: Final = "mem_"
MAX_TITLE_BYTES: Final = 120

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID = re.compile(rf"{ID_PREFIX}[{_DIGITS}]{{26}}")
# Obsidian's links break on # ^ [ ] |, Windows refuses the others, and % begins a comment when doubled.
_NOT_IN_NAMES = re.compile(
    r"[\\/:*?\"<>|#^\[\]%`]|[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]"
)
_LEADING_MARKUP = re.compile(r"^(?:[#>*+\-\s]|\d+[.)]\s|\[[ xX]\])+")


def etag_of(data: bytes) -> str:
    """Return the SHA-256 of a file's raw bytes in hexadecimal, the version that preconditions name."""
    return hashlib.sha256(data).hexdigest()


def normalise(text: str) -> str:
    """Return text as it is compared for "says the same": NFKC, case folded, blanks collapsed."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def content_hash(text: str) -> str:
    """Return the SHA-256 of the normalised text in hexadecimal."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()


def cleaned(text: str) -> str:
    """Return text for an index: NUL and lone surrogates, at which tokenizers stop or fail, are replaced."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\0", " "))


def new_memory_id(at_ms: int | None = None) -> str:
    """Return a new id: `mem_`, 10 characters of milliseconds since 1970 and 16 random ones; ids sort by time."""
    moment = now_ms() if at_ms is None else at_ms
    return ID_PREFIX + _base32((moment << 80) | secrets.randbits(80))


def derived_memory_id(path: str) -> str:
    """Return the id of a note that has none of its own: always the same for a path."""
    digest = hashlib.sha256(b"memory-path\0" + unicodedata.normalize("NFC", path).encode("utf-8", "surrogatepass"))
    return ID_PREFIX + _base32(int.from_bytes(digest.digest()[:16], "big"))


def is_memory_id(text: str) -> bool:
    """Say whether an id has the form that the gateway gives."""
    return bool(_ID.fullmatch(text))


def file_name_for(summary_or_content: str, memory_id: str) -> str:
    """Return a file name that a person can read and every system can store: the first line and the end of the id.

    Every script stays as it is; at most 120 bytes of title, no character or name that Obsidian or Windows refuses.
    """
    title = _shortened(_title(summary_or_content)).strip(" .-~")
    if not title or is_reserved_name(title):
        title = f"Memory {title}".strip()
    mark = re.sub(r"[^0-9A-Za-z]", "", memory_id)[-6:]
    return f"{title} {mark}.md" if mark else f"{title}.md"


def _title(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    named = _NOT_IN_NAMES.sub(" ", _LEADING_MARKUP.sub("", first))
    kept = "".join(char for char in named if unicodedata.category(char) not in ("Cs", "Co", "Cn"))
    return " ".join(unicodedata.normalize("NFC", kept).split())


def _shortened(title: str) -> str:
    data = title.encode("utf-8")
    if len(data) <= MAX_TITLE_BYTES:
        return title
    cut = data[:MAX_TITLE_BYTES].decode("utf-8", "ignore")
    word = cut.rpartition(" ")[0]
    if len(word) * 2 > len(cut):
        return word
    # Do not leave half an emoji sequence.
    return cut.rstrip("\u200d\ufe0f")


def _base32(number: int) -> str:
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))

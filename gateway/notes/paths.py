"""Which ids and paths are acceptable in a vault, and which files of a vault are no notes. Text only, no disk."""

from __future__ import annotations

import re
import unicodedata

from gateway.errors import BadPath, Invalid

MAX_ID_CHARS = 64
# A part of a path has at most 255 bytes; the ending and a copy mark must fit behind an id.
MAX_ID_BYTES = 200
MAX_PART_BYTES = 255
MAX_PATH_BYTES = 1024

_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])", re.IGNORECASE)
_TEMPORARY = re.compile(
    r"~\$.*|\.syncthing\..*|~syncthing~.*|.*\.(?:tmp|temp|crswap|icloud|swp|swx|part)|.*~", re.IGNORECASE
)
_SYNCTHING = re.compile(r"(?P<name>.*)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?", re.IGNORECASE)
_CONFLICTED = re.compile(
    r"(?P<name>.*?) ?\((?:[^()]{1,60}['\u2019]s? )?conflicted copy"
    r"(?: [^()]*\d{4}[^()]*| [0-9a-f]{7}(?: \d+)?)?(?: ?\(\d+\))?\)(?: \d+)?",
    re.IGNORECASE,
)


def check_id(value: str, field: str) -> str:
    """Return a user, agent, workspace or session id that is safe as a folder name on every system.

    Letters, marks and digits of any script plus `_ . - @`, 1 to 64 characters in Unicode form NFC, no leading dot or
    dash, no trailing dot, no name that Windows reserves.

    Raises:
        Invalid: with the field.
    """
    reason = _id_trouble(value)
    if reason:
        raise Invalid(f"The id {reason}.", field=field, advice="Use letters, digits and _ . - @, at most 64.")
    return value


def check_vault_path(path: str) -> str:
    """Return a path relative to the vault that stays in it and can travel to every system.

    Raises:
        BadPath: absolute, `..`, a backslash, control characters, an empty part, a name that Windows reserves, a part
            that ends in a dot or blank, a dot name, a part over 255 bytes or the whole over 1,024.
    """
    reason = _path_trouble(path)
    if reason:
        raise BadPath(f"The path {reason}.", field="path")
    return path


def leaves_vault(path: str) -> bool:
    """Say whether a path is not one below the vault's folder: absolute, or with `.` or `..` in it."""
    return path.startswith("/") or any(part in (".", "..") for part in path.split("/"))


def path_key(path: str) -> str:
    """Return the form in which two paths are compared: case and composed letters make no difference.

    macOS hands out decomposed names, and on macOS and Windows `Note.md` and `note.md` are one file.
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_reserved_name(name: str) -> bool:
    """Say whether Windows reserves this name, with whatever ending."""
    return bool(_RESERVED.fullmatch(name.partition(".")[0].rstrip(" ")))


def is_ignored(path: str) -> bool:
    """Say whether a file of the vault is not for people: dot names (`.obsidian`, `.trash`, `.git`) and temp files."""
    return any(part.startswith(".") or _TEMPORARY.fullmatch(part) for part in path.split("/") if part)


def conflict_copy_of(path: str) -> str | None:
    """Return the path of which this file is a sync tool's conflict copy, None if its name does not say so.

    Knows the names of Syncthing, Dropbox, Obsidian Sync and the gateway's own sync. A name is a hint; the same id in
    two files is proof.
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if not dot:
        return None
    match = _SYNCTHING.fullmatch(stem) or _CONFLICTED.fullmatch(stem)
    if match is None or not match["name"].strip():
        return None
    return f"{folder}{slash}{match['name']}.{ending}"


def _id_trouble(value: str) -> str | None:
    if not 1 <= len(value) <= MAX_ID_CHARS or len(value.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        return "is empty or too long"
    if any(char not in "_.-@" and unicodedata.category(char)[0] not in "LMN" for char in value):
        return "holds a character that is not allowed"
    if unicodedata.normalize("NFC", value) != value:
        return "is not in Unicode form NFC"
    if value[0] in ".-" or value[-1] == ".":
        return "begins with a dot or dash, or ends with a dot"
    if is_reserved_name(value):
        return "is a name that Windows reserves"
    return None


def _path_trouble(path: str) -> str | None:
    if not path:
        return "is empty"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "is absolute"
    if "\\" in path:
        return "holds a backslash"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path):
        return "holds a control character"
    if len(path.encode("utf-8")) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_part_trouble, path.split("/"))), None)


def _part_trouble(part: str) -> str | None:
    if not part:
        return "holds an empty part"
    if part == "..":
        return "leaves the vault"
    if part.startswith("."):
        return "holds a name that begins with a dot"
    if part[-1] in ". ":
        return "holds a name that ends in a dot or blank"
    if is_reserved_name(part):
        return "holds a name that Windows reserves"
    if len(part.encode("utf-8")) > MAX_PART_BYTES:
        return f"holds a name longer than {MAX_PART_BYTES} bytes"
    return None

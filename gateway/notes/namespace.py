"""The one place that maps path to namespace to OpenViking URI, and back. Whom a note belongs to is decided here.

It knows names only; who may read a namespace is decided elsewhere.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args
from urllib.parse import quote, unquote

from gateway.errors import BadPath, Invalid
from gateway.notes.paths import check_id, check_vault_path, is_ignored

Kind: TypeAlias = Literal["user", "agent", "workspace", "session", "global"]
Visibility: TypeAlias = Literal["private", "agent-only", "workspace-shared", "global"]

URI_PREFIX: Final = "viking://memory/"
GLOBAL_ROOM: Final = "public"

_USER_FILES: Final = {
    "profile": "Profile.md",
    "preferences": "Preferences.md",
    "user_memory": "UserMemory.md",
    "work_memory": "WorkMemory.md",
    "soul": "SOUL.md",
    "user_file": "USER.md",
    "memory_file": "MEMORY.md",
}
_USER_FOLDERS: Final = {"long_term": "LongTerm", "directives": "Directives"}
_ROOMS: Final[dict[str, frozenset[str]]] = {
    "user": frozenset((*_USER_FILES, *_USER_FOLDERS)),
    "agent": frozenset(("memory", "experience")),
    "workspace": frozenset(("shared",)),
    "session": frozenset(("episodic",)),
    "global": frozenset((GLOBAL_ROOM,)),
}
_VISIBILITY: Final[dict[str, Visibility]] = {
    "user": "private",
    "agent": "agent-only",
    "workspace": "workspace-shared",
    "session": "private",
    "global": "global",
}
_OWNER_FOLDER: Final = "Memories/LongTerm"
_ARCHIVE: Final = "Memories/Archived"

# Empty folders do not survive git, so a new vault gets these made.
STARTER_FOLDERS: Final = (
    "Users",
    "Agents",
    "Workspaces",
    "Global",
    "Memories/LongTerm",
    "Memories/Archived",
    "Profiles",
    "Reviews/Queue",
    "Reviews/Accepted",
    "Reviews/Rejected",
    "Exports",
    "Templates",
)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A room of memories with one owner; `str()` gives `user/tom/long_term`. `global/public` has no owner ("").

    Raises:
        Invalid: an unknown kind or room, or an owner that is no acceptable id.
    """

    kind: Kind
    owner: str
    room: str

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.room not in _ROOMS[self.kind]:
            raise Invalid("There is no such namespace.", field="namespace")
        if self.kind == "global":
            if self.owner:
                raise Invalid("The global namespace has no owner.", field="namespace")
        else:
            check_id(self.owner, "namespace")

    def __str__(self) -> str:
        return f"global/{self.room}" if self.kind == "global" else f"{self.kind}/{self.owner}/{self.room}"

    @property
    def default_visibility(self) -> Visibility:
        """Who may see a memory here when it does not say."""
        return _VISIBILITY[self.kind]

    @property
    def user_id(self) -> str | None:
        """The user whose memories these are, for a `user/...` namespace."""
        return self.owner if self.kind == "user" else None

    @property
    def agent_id(self) -> str | None:
        """The agent whose memories these are, for an `agent/...` namespace."""
        return self.owner if self.kind == "agent" else None

    @property
    def workspace_id(self) -> str | None:
        """The workspace whose memories these are, for a `workspace/...` namespace."""
        return self.owner if self.kind == "workspace" else None

    @property
    def session_id(self) -> str | None:
        """The session whose episodes these are, for a `session/...` namespace."""
        return self.owner if self.kind == "session" else None

    @property
    def fixed_file(self) -> str | None:
        """The name of the only file, for the rooms that are one file of a user or agent."""
        return "Experience.md" if self.room == "experience" else _USER_FILES.get(self.room)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a note of the vault belongs.

    Attributes:
        resident: one of a user's fixed files (Profile, SOUL, ...), which stand by for every turn and do not fade.
        archived: kept, never recalled.
        canonical: new notes of this namespace go to this folder, under this spelling.
    """

    namespace: Namespace
    path: str
    resident: bool
    archived: bool
    canonical: bool


def locate(path: str, *, owner: str) -> Location | None:
    """Say to which namespace a vault file belongs; None when it is no place for a memory.

    Args:
        path: relative to the vault, with `/`, as on disk.
        owner: the user id of a one-person vault, whose memories `Memories/` holds; "" when there is none.
    """
    if not path.endswith(".md") or path.endswith(".excalidraw.md") or is_ignored(path):
        return None
    parts = unicodedata.normalize("NFC", path).split("/")
    if not all(parts) or ".." in parts:
        return None
    try:
        if parts[:2] == ["Memories", "Archived"] and len(parts) > 2:
            namespace = _archived_namespace(parts[2:], owner)
        else:
            namespace = _namespace_of(parts, owner)
    except Invalid:
        return None
    if namespace is None:
        return None
    archived = parts[:2] == ["Memories", "Archived"]
    canonical = not archived and _is_canonical(path, namespace, owner)
    return Location(namespace, path, namespace.room in _USER_FILES, archived, canonical)


def folder_of(namespace: Namespace, *, owner: str) -> str:
    """Return the folder into which new notes of a namespace go.

    The owner of a one-person vault has `Memories/LongTerm`; everyone else's folder carries their id.

    Raises:
        BadPath: episodes have no place in the vault.
    """
    who, room = namespace.owner, namespace.room
    match namespace.kind:
        case "user" if room == "long_term" and owner and who == owner:
            return _OWNER_FOLDER
        case "user":
            return f"Users/{who}/{_USER_FOLDERS[room]}" if room in _USER_FOLDERS else f"Users/{who}"
        case "agent":
            return f"Agents/{who}/Memory" if room == "memory" else f"Agents/{who}"
        case "workspace":
            return f"Workspaces/{who}/Shared"
        case "global":
            return "Global"
        case "session":
            raise BadPath("Episodes of a session have no place in the vault.", field="namespace")


def note_path(namespace: Namespace, file_name: str, *, owner: str) -> str:
    """Return the path of a note; rooms that are one fixed file ignore the name.

    Raises:
        BadPath: the name is not acceptable, holds a folder, or lacks `.md`.
    """
    name = namespace.fixed_file or file_name
    if "/" in name or not name.endswith(".md") or name.endswith(".excalidraw.md"):
        raise BadPath("A note's file name ends in .md and holds no folder.", field="path")
    return check_vault_path(f"{folder_of(namespace, owner=owner)}/{name}")


def archive_path(path: str) -> str:
    """Return where a note goes when it is archived, so that `locate` still finds whose it is."""
    return f"{_ARCHIVE}/{path.removeprefix(_OWNER_FOLDER + '/')}"


def restored_path(path: str) -> str | None:
    """Return where an archived note stood; None where a path is not in the archive."""
    if not path.startswith(f"{_ARCHIVE}/"):
        return None
    rest = path.removeprefix(f"{_ARCHIVE}/")
    return rest if rest.partition("/")[0] in ("Users", "Agents", "Workspaces", "Global") else f"{_OWNER_FOLDER}/{rest}"


def uri_of(namespace: Namespace, memory_id: str) -> str:
    """Return the OpenViking URI of a memory: `viking://memory/user/tom/long_term/{id}`.

    Raises:
        Invalid: the id is not acceptable.
    """
    return URI_PREFIX + quote(f"{namespace}/{check_id(memory_id, 'id')}", safe="/@")


def parse_uri(uri: str) -> tuple[Namespace, str]:
    """Return namespace and memory id of a URI made by `uri_of`.

    Raises:
        Invalid: it is no such URI.
    """
    text, slash, memory_id = uri.removeprefix(URI_PREFIX).rpartition("/")
    if not uri.startswith(URI_PREFIX) or not slash:
        raise Invalid("This is not a memory URI.", field="uri")
    return parse_namespace(unquote(text)), check_id(unquote(memory_id), "uri")


def parse_namespace(text: str) -> Namespace:
    """Read `user/tom/long_term`, `global/public` and the like.

    Raises:
        Invalid: there is no such namespace.
    """
    parts = text.split("/")
    if len(parts) == 2 and parts[0] == "global":
        return Namespace("global", "", parts[1])
    if len(parts) != 3 or parts[0] not in get_args(Kind) or parts[0] == "global":
        raise Invalid("There is no such namespace.", field="namespace", advice="For example: user/tom/long_term.")
    return Namespace(cast("Kind", parts[0]), parts[1], parts[2])


def _namespace_of(parts: list[str], owner: str) -> Namespace | None:
    match parts:
        case ["Users", who, file] if file in _FILE_ROOMS:
            return Namespace("user", who, _FILE_ROOMS[file])
        case ["Users", who, folder, _, *_] if folder in _FOLDER_ROOMS:
            return Namespace("user", who, _FOLDER_ROOMS[folder])
        case ["Agents", who, "Experience.md"]:
            return Namespace("agent", who, "experience")
        case ["Agents", who, "Memory", _, *_]:
            return Namespace("agent", who, "memory")
        case ["Workspaces", who, "Shared.md"] | ["Workspaces", who, "Shared", _, *_]:
            return Namespace("workspace", who, "shared")
        case ["Global", _, *_]:
            return Namespace("global", "", GLOBAL_ROOM)
        case ["Memories", "LongTerm", _, *_] if owner:
            return Namespace("user", owner, "long_term")
        case _:
            return None


def _archived_namespace(rest: list[str], owner: str) -> Namespace | None:
    """An archived note keeps the path it had below the archive; without one it is the owner's."""
    try:
        found = _namespace_of(rest, owner)
    except Invalid:
        found = None
    if found is not None or not owner:
        return found
    return Namespace("user", owner, "long_term")


def _is_canonical(path: str, namespace: Namespace, owner: str) -> bool:
    folder = folder_of(namespace, owner=owner)
    if namespace.fixed_file:
        return path == f"{folder}/{namespace.fixed_file}"
    return path.startswith(folder + "/")


_FILE_ROOMS: Final = {file: room for room, file in _USER_FILES.items()}
_FOLDER_ROOMS: Final = {folder: room for room, folder in _USER_FOLDERS.items()}

"""What git's log tells of one memory: its commits under the present name and, through renames, under earlier ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import BadNote
from gateway.notes.frontmatter import read_block, split
from gateway.vault.git import Git, split_nul

_COMMITS_OF_A_NAME = 200
_MOST_NAMES = 20
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FORM = "%x01%H%x00%P%x00%an%x00%at%x00%B%x00"
_TRAILER = re.compile(r"^(Actor|Memory-Id|Memory-Version|Memory-Key): (.*)$", re.MULTILINE)
_BLOB = re.compile(rb"[0-9a-f]+ (\w+) (\d+)")


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """One commit of a memory.

    Attributes:
        status: git's letter: `A` added, `M` changed, `R` moved here, `D` removed.
        at: when it was written, in ms since 1970 UTC.
        actor: who the gateway says it was; None in a commit of somebody else's.
        version, key: what the gateway's ledger called it; None in a commit of somebody else's.
    """

    sha: str
    path: str
    status: str
    author: str
    at: int
    actor: str | None
    version: int | None
    key: str | None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A commit of a path; `versions` are the memories that the gateway names in it, with number and key."""

    seen: LoggedVersion
    parent: str | None
    versions: dict[str, tuple[int | None, str | None]]

    def is_of(self, note_id: str) -> bool:
        """Whether the gateway made it of this memory alone."""
        return list(self.versions) == [note_id]


def log_of_memory(git: Git, prefix: str, note_id: str, path: str, tip: str) -> list[LoggedVersion]:
    """Commits in which a path, and what it was called before, held this memory; newest first, bounded.

    Whatever else once stood at one of these paths is left out: a commit counts where the note's text claims the id, or
    claims none and follows without a gap.
    """
    found: list[LoggedVersion] = []
    for _ in range(_MOST_NAMES):
        entries = _entries(git, note_id, path, tip)
        own = _own(entries, _claims_at(git, prefix, note_id, entries), note_id)
        found += [one.seen for one in own]
        if not own or own[-1].seen.status != "A":
            break
        before = _name_before(git, prefix, note_id, own[-1])
        if before is None:
            break
        found[-1] = replace(found[-1], status="R")
        path, tip = before, own[-1].parent or tip
    return found


def texts(git: Git, prefix: str, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """The bytes of paths at commits (full ids), in order; None where there is no such file."""
    askable = [_SHA.fullmatch(sha) is not None and "\n" not in path for sha, path in wanted]
    lines = [f"{sha}:{prefix}{path}\n" for (sha, path), fits in zip(wanted, askable, strict=True) if fits]
    if not lines:
        return [None] * len(wanted)
    out = git.run("cat-file", "--batch", send="".join(lines).encode("utf-8", "surrogateescape"))
    found: list[bytes | None] = []
    at = 0
    for fits in askable:
        if not fits:
            found.append(None)
            continue
        end = out.index(b"\n", at)
        head = _BLOB.fullmatch(out[at:end])
        size = int(head[2]) if head else -1
        found.append(out[end + 1 : end + 1 + size] if head and head[1] == b"blob" else None)
        at = end + 1 + size + 1
    return found


def _entries(git: Git, note_id: str, path: str, tip: str) -> list[_Entry]:
    """The commits of a path, newest first."""
    answer = git.ask(
        "log",
        f"--max-count={_COMMITS_OF_A_NAME}",
        f"--format={_FORM}",
        "--no-renames",
        "--name-status",
        "--end-of-options",
        tip,
        "--",
        path,
    )
    if answer.code != 0:  # no commit yet, or none before this one
        return []
    found: list[_Entry] = []
    for record in answer.out.decode("utf-8", "replace").split("\x01"):
        fields = record.split("\0")
        if len(fields) == 6 and _SHA.fullmatch(fields[0]):
            found.append(_entry(fields, note_id, path))
    return found


def _entry(fields: Sequence[str], note_id: str, path: str) -> _Entry:
    sha, parents, author, at, message, changed = fields
    versions: dict[str, tuple[int | None, str | None]] = {}
    actor = current = None
    for name, value in _TRAILER.findall(message):
        if name == "Actor":
            actor = value
        elif name == "Memory-Id":
            current = value
            versions[value] = (None, None)
        elif name == "Memory-Key" and current is not None:
            versions[current] = (versions[current][0], value)
        elif current is not None and value.isascii() and value.isdigit():
            versions[current] = (int(value[:9]), None)
    status = changed.strip()[:1] or "M"  # a merge tells none
    own = actor if versions else None
    seen = LoggedVersion(sha, path, status, author, int(at) * 1000, own, *versions.get(note_id, (None, None)))
    return _Entry(seen, next(iter(parents.split()), None), versions)


def _own(entries: Sequence[_Entry], claims: Sequence[str | None], note_id: str) -> list[_Entry]:
    """Those of a path's commits, newest first, in which it held the memory."""
    found: list[_Entry] = []
    unbroken = True
    for entry, claim in zip(entries, claims, strict=True):
        named = note_id in entry.versions
        if entry.seen.status == "D":
            if entry.is_of(note_id):
                found.append(entry)
            unbroken = False
            continue
        if claim == note_id or (claim is None and (unbroken or named)):
            found.append(entry)
        elif unbroken:
            break
        if entry.seen.status == "A":
            unbroken = False
    return found


def _name_before(git: Git, prefix: str, note_id: str, first: _Entry) -> str | None:
    """What a memory was called before the commit that added its path; None where it began there."""
    added, parent = first.seen, first.parent
    if parent is None or (first.is_of(note_id) and added.version == 1):
        return None
    removed, renamed = _taken_away(git, added)
    name = added.path.rpartition("/")[2]
    asked = sorted(removed, key=lambda one: (one != renamed, one.rpartition("/")[2] != name))[:_COMMITS_OF_A_NAME]
    claims = _claims(texts(git, prefix, [(parent, one) for one in asked]))
    claiming = next((one for one, claim in zip(asked, claims, strict=True) if claim == note_id), None)
    if claiming is not None or renamed is None or claims[0] is not None:
        return claiming
    # Texts alike are no proof where the gateway names two memories: one was deleted, the other is new.
    return renamed if len(first.versions) <= 1 else None


def _taken_away(git: Git, added: LoggedVersion) -> tuple[list[str], str | None]:
    """The paths that a commit took away, and which of them git takes for the added one's earlier name."""
    options = ("-r", "-z", "-M70%", "-l1000", "--name-status", "--no-commit-id", "--relative")
    answer = git.ask("diff-tree", *options, added.sha)
    fields = iter([one.decode("utf-8", "surrogateescape") for one in split_nul(answer.out)])
    removed: list[str] = []
    renamed: str | None = None
    for status in fields:
        name = next(fields, "")
        if status.startswith("R"):
            removed.append(name)
            renamed = name if next(fields, "") == added.path else renamed
        elif status == "D":
            removed.append(name)
    return removed, renamed


def _claims_at(git: Git, prefix: str, note_id: str, entries: Sequence[_Entry]) -> list[str | None]:
    if all(entry.is_of(note_id) for entry in entries):
        return [note_id] * len(entries)
    return _claims(texts(git, prefix, [(entry.seen.sha, entry.seen.path) for entry in entries]))


def _claims(found: Sequence[bytes | None]) -> list[str | None]:
    return [None if data is None else _claim(data) for data in found]


def _claim(data: bytes) -> str | None:
    """The id that a note's text gives itself."""
    try:
        claimed = read_block(split(data.decode("utf-8", "replace"))).values.get("id")
    except BadNote:
        return None
    return str(claimed).strip() if isinstance(claimed, str | int | float) else None

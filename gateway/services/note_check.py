"""Checks the notes of a plain checkout, for pull requests: no data directory, no key, no ledger; reads only."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import BadNote, BadPath, GitTrouble, Invalid
from gateway.importer.places import Place, Places
from gateway.importer.rows import claimed_fields, visibility_at
from gateway.notes.drafts import ACCEPTED, QUEUE, REJECTED, folder_of_draft, read_draft
from gateway.notes.fields import read_fields
from gateway.notes.namespace import parse_namespace
from gateway.notes.note import NoteProblem, ParsedNote, parse
from gateway.notes.paths import check_vault_path, path_key
from gateway.notes.secrets import allows_secrets, find_secrets
from gateway.notes.structured import MODELS, read_structured
from gateway.vault.git import Git, last_line
from gateway.vault.scan import walk

_SAYS = {ACCEPTED: "accept", REJECTED: "reject"}


@dataclass(frozen=True, slots=True, order=True)
class NoteFinding:
    """One thing that is wrong with one file. `line` is 1-based; 0 where no line is to blame."""

    path: str
    line: int
    kind: str
    message: str
    advice: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class NotesReport:
    """How many files were looked at, and what is wrong, by path and line."""

    notes: int
    findings: list[NoteFinding]


def check_notes(root: Path, *, owner: str, since: str | None = None) -> NotesReport:
    """Look at every note of a vault, or at those that differ from a git revision.

    Args:
        owner: whose notes `Memories/` holds.
        since: the revision; what it and the checkout have in common is passed over.

    Raises:
        Unavailable: there is no such folder.
        GitTrouble: git does not know the revision.
    """
    seen = walk(root)
    everything = sorted({*seen.files, *seen.refused})
    chosen = set(everything) if since is None else set(everything) & _changed(root, since)
    vault = _Vault(root, Places(owner, ()), everything)
    found = [finding for path in sorted(chosen) for finding in vault.findings(path)]
    return NotesReport(len(chosen), sorted(found))


class _Vault:
    """The notes of one checkout, and which of them carries which id and name."""

    def __init__(self, root: Path, places: Places, paths: list[str]) -> None:
        self._root = root
        self._places = places
        self._parsed: dict[str, ParsedNote] = {}
        self._twins: dict[str, list[str]] = {}
        self._claims: dict[str, list[str]] = {}
        for path in paths:
            self._twins.setdefault(path_key(path), []).append(path)
            if (parsed := self._read(path)) is not None:
                self._parsed[path] = parsed
                if places.place_of(path) is not None and (claimed := claimed_fields(parsed).id) is not None:
                    self._claims.setdefault(claimed, []).append(path)

    def findings(self, path: str) -> Iterator[NoteFinding]:
        """What is wrong with one file."""
        yield from self._name(path)
        place, in_review = self._places.place_of(path), folder_of_draft(path) is not None
        if place is None and not in_review:
            return  # people's own notes are their own
        parsed = self._parsed.get(path)
        if parsed is None:
            yield _finding(path, "refused", "This is a symbolic link or no regular file.", "Put a regular note there.")
            return
        yield from (_of(path, problem) for problem in _problems(parsed))
        yield from _secrets(path, parsed)
        if place is not None:
            yield from self._ownership(path, parsed, place)
            yield from _structure(path, parsed, place)
        elif in_review:
            yield from _draft(path, parsed)

    def _read(self, path: str) -> ParsedNote | None:
        file = self._root / path
        if not stat.S_ISREG(file.lstat().st_mode):
            return None
        return parse(file.read_bytes())

    def _name(self, path: str) -> Iterator[NoteFinding]:
        try:
            check_vault_path(path)
        except BadPath as error:
            advice = "Rename it, so that every system can hold the file."
            yield _finding(path, "bad-name", error.detail, advice)
        twins = [other for other in self._twins[path_key(path)] if other != path]
        if twins:
            message = f"On macOS and Windows this is the same file as `{twins[0]}`."
            yield _finding(path, "bad-name", message, "Rename one of them.")
        original = self._places.conflict_copy(path)
        if original is not None:
            message = f"A sync kept two versions of `{original}`; this is the other one."
            yield _finding(path, "sync-conflict", message, "Merge what you need into the original, then delete this.")

    def _ownership(self, path: str, parsed: ParsedNote, place: Place) -> Iterator[NoteFinding]:
        if parsed.readiness != "ready":
            return
        fields, _ = read_fields(parsed)
        _, wider = visibility_at(place, fields.visibility)
        if wider is not None:
            yield _of(path, wider, parsed.key_lines.get("visibility"))
        others = [other for other in self._claims.get(fields.id or "", ()) if other != path]
        if others:
            message = f"The note carries the id `{fields.id}` of `{others[0]}`."
            line = parsed.key_lines.get("id", 0)
            advice = "Remove the `id` property in the copy, or delete the copy."
            yield _finding(path, "duplicate-id", message, advice, line=line, field="id")


def _problems(parsed: ParsedNote) -> tuple[NoteProblem, ...]:
    return parsed.problems if parsed.readiness != "ready" else (*parsed.problems, *read_fields(parsed)[1])


def _structure(path: str, parsed: ParsedNote, place: Place) -> Iterator[NoteFinding]:
    """What a structured memory says that does not fit."""
    model = None if place.archived else MODELS.get(place.namespace.room)
    if model is not None and parsed.readiness == "ready":
        yield from (_of(path, problem) for problem in read_structured(parsed, model)[1])


def _secrets(path: str, parsed: ParsedNote) -> Iterator[NoteFinding]:
    """Each secret by its kind and place; also in a note that is held back for something else."""
    if allows_secrets(parsed):
        return
    for found in find_secrets(parsed.text):
        what = "personal data" if found.personal else "a secret"
        message = f"The note holds {what} ({found.kind}) at column {found.column}."
        advice = "Take it out, also of the commits, or set the property `secrets: allowed` in the note."
        yield _finding(path, "secret", message, advice, line=found.line)


def _draft(path: str, parsed: ParsedNote) -> Iterator[NoteFinding]:
    if parsed.readiness != "ready":
        return  # said already
    folder = folder_of_draft(path) or ""
    if "review_id" not in parsed.properties:
        if folder == QUEUE:
            advice = "Move it to another folder; memories belong in `Memories/LongTerm`."
            yield _finding(path, "no-draft", "This note in the review queue is no draft of the gateway.", advice)
        return
    advice = "Correct it, or delete the draft."
    try:
        draft = read_draft(parsed)
    except BadNote as error:
        yield _finding(path, "broken-draft", error.detail, advice, line=error.line or 0, field=error.field)
        return
    lines: Mapping[str, int] = parsed.key_lines
    try:
        parse_namespace(draft.target_namespace)
    except Invalid as error:
        message = f"`target_namespace`: {error.detail}"
        yield _finding(
            path, "broken-draft", message, advice, line=lines.get("target_namespace", 0), field="target_namespace"
        )
    says = _SAYS.get(folder)
    if says is not None and draft.decision not in (None, says):
        message = f"The draft lies in `{folder}`, but its `decision` says `{draft.decision}`."
        advice = "Change `decision`, or move the draft."
        yield _finding(path, "contradictory-decision", message, advice, line=lines.get("decision", 0), field="decision")


def _of(path: str, problem: NoteProblem, line: int | None = None) -> NoteFinding:
    return NoteFinding(
        path, problem.line or line or 0, problem.kind, problem.message, problem.advice, problem.field or None
    )


def _finding(
    path: str, kind: str, message: str, advice: str, *, line: int = 0, field: str | None = None
) -> NoteFinding:
    return NoteFinding(path, line, kind, message, advice, field)


def _changed(root: Path, since: str) -> set[str]:
    """The files that differ from a revision: from where the checkout branched off it, if git knows that."""
    git = Git(root)
    commit = git.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    if commit is None:
        raise GitTrouble(
            f"Git knows no revision `{since}` here.",
            advice="In a pull request, fetch the target branch first; a shallow checkout does not have it.",
        )
    base = git.text("merge-base", commit, "HEAD") or commit
    asked = ("diff", "--name-only", "-z", "--relative", "--no-renames", "--diff-filter=d", base, "--", ".")
    answer = git.ask(*asked)
    if answer.code != 0:
        raise GitTrouble(f"Git cannot compare with `{since}`: {last_line(answer.error)}.")
    new = git.run("ls-files", "-z", "--others", "--exclude-standard", "--", ".")
    return {name.decode("utf-8", "surrogateescape") for name in (answer.out + new).split(b"\0") if name}

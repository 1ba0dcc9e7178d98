"""What a review draft is: a note that says what is proposed, for whom, by whom, why, and whose text is to be accepted.

Design section 5. The properties are flat, so that Obsidian's panel edits them; the text after the callout is what will
be kept. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from gateway.errors import BadNote
from gateway.notes.note import ParsedNote, PropertyValue, parse
from gateway.notes.patch import DELETE, Change, set_properties
from gateway.notes.quoting import property_lines

ProposalKind: TypeAlias = Literal["create", "update", "merge", "archive", "conflict", "directive"]
Decision: TypeAlias = Literal["accept", "reject"]

PROPOSALS: Final[tuple[str, ...]] = get_args(ProposalKind)
QUEUE: Final = "Reviews/Queue"
ACCEPTED: Final = "Reviews/Accepted"
REJECTED: Final = "Reviews/Rejected"
FOLDERS: Final = (QUEUE, ACCEPTED, REJECTED)
REVIEW_TAGS: Final = ("memory/review", "memory/conflict")

# Properties of the draft itself; everything else in it is a property of the memory that it becomes.
DRAFT_PROPERTIES: Final = (
    "review_id",
    "proposal",
    "target",
    "target_namespace",
    "target_etag",
    "proposed_by",
    "confidence",
    "decision",
    "decided_by",
    "decided",
    "decision_reason",
    "accepted_as",
    "merges",
    "removes",
    "evidence",
    "status",
    "created",
)
_MEMORY_PROPERTIES: Final = (
    "type",
    "kind",
    "summary",
    "tags",
    "importance",
    "visibility",
    "source",
    "source_ref",
    "expires",
    "valid_from",
    "valid_until",
    "precision",
    "timezone",
    "temporal_kind",
    "temporal_confidence",
    # Single values and lists of words of structured memories.
    "occupation",
    "primary_language",
    "interests",
    "avoid_topics",
    "custom_rules",
    "expertise",
    "preferred_tools",
    "team_context",
    "work_rules",
)
# What a person looks at first stands first.
_ORDER: Final = (*DRAFT_PROPERTIES[:4], *DRAFT_PROPERTIES[5:8], "summary", "type", "tags")
_CALLOUT: Final = "> [!review]"
_WORDS: Final[dict[str, Decision]] = {
    "accept": "accept",
    "accepted": "accept",
    "接受": "accept",
    "reject": "reject",
    "rejected": "reject",
    "拒绝": "reject",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the callout of a draft says.

    Attributes:
        evidence: links or names of what the proposal rests on, ready to be shown.
        diff: a unified diff against the note as it is; empty for a new memory.
    """

    headline: str
    why: str
    evidence: tuple[str, ...] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True)
class DraftNote:
    """A draft as it stands in the vault.

    Attributes:
        review_id: as the file says; what it is a draft of, the ledger knows.
        decision: what a person wrote into `decision`; None while it is empty.
        memory: the properties that the memory is to have.
        removes: properties of the target that are to be taken away.
        text: the text to be accepted, without the callout.
    """

    review_id: str
    proposal: str
    target: str | None
    target_namespace: str
    target_etag: str | None
    proposed_by: str
    evidence: tuple[str, ...]
    merges: tuple[str, ...]
    removes: tuple[str, ...]
    decision: Decision | None
    memory: Mapping[str, PropertyValue]
    text: str


def folder_of_draft(path: str) -> str | None:
    """The review folder that a file stands in, directly or below; None for any other file."""
    return next((folder for folder in FOLDERS if path.startswith(folder + "/") and path.endswith(".md")), None)


def render_draft(properties: Mapping[str, PropertyValue], explanation: Explanation, text: str) -> bytes:
    """The bytes of a new draft. `decision` stands there empty, to be filled in.

    Raises:
        BadNote: it would not read back as the same properties and text.
    """
    kept = {name: value for name, value in properties.items() if value not in (None, "", [])}
    names = [name for name in _ORDER if name in kept or name == "decision"]
    names += [name for name in kept if name not in names]
    lines = "".join("decision:\n" if name == "decision" else property_lines(name, kept[name]) for name in names)
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    data = f"---\n{lines}---\n{_callout(explanation)}\n\n{body}\n".encode("utf-8", "strict")
    note = read_draft(parse(data))
    if note.text != body:
        raise BadNote("The draft would not read back as it was given.")
    return data


def read_draft(parsed: ParsedNote) -> DraftNote:
    """Read a draft.

    Raises:
        BadNote: with the line: its properties cannot be read, or `review_id`, `proposal`, `decision` are none.
    """
    if parsed.readiness != "ready":
        first = parsed.problems[0] if parsed.problems else None
        raise BadNote(first.message if first else "The draft is empty.", line=first.line if first else None)
    given = parsed.properties
    review_id = given.get("review_id")
    if not isinstance(review_id, str) or not re.fullmatch(r"rev_[0-9a-z]{4,60}", review_id):
        raise _wrong(parsed, "review_id", "`review_id` names no draft of the gateway.")
    proposal = given.get("proposal")
    if proposal not in PROPOSALS:
        raise _wrong(parsed, "proposal", f"`proposal` is one of {', '.join(PROPOSALS)}.")
    return DraftNote(
        review_id=review_id,
        proposal=str(proposal),
        target=_text(given.get("target")),
        target_namespace=_text(given.get("target_namespace")) or "",
        target_etag=_text(given.get("target_etag")),
        proposed_by=_text(given.get("proposed_by")) or "",
        evidence=_texts(given.get("evidence")),
        merges=_texts(given.get("merges")),
        removes=_texts(given.get("removes")),
        decision=_decision(parsed),
        memory={name: given[name] for name in (*_MEMORY_PROPERTIES, "confidence") if name in given},
        text=_after_callout(parsed.body),
    )


def decided_draft(
    data: bytes, decision: Decision, *, by: str, at: str, accepted_as: str | None, reason: str | None
) -> bytes:
    """A draft after its decision: the decision is written into its properties and nothing else is touched.

    Raises:
        CannotPatch: its properties cannot be changed in place.
    """
    changes: dict[str, Change] = {
        "decision": decision,
        "status": "accepted" if decision == "accept" else "rejected",
        "decided_by": by,
        "decided": at,
        "decision_reason": reason if reason else DELETE,
        "accepted_as": accepted_as if accepted_as else DELETE,
    }
    present = parse(data).properties
    wanted = {name: value for name, value in changes.items() if (value is not DELETE or name in present)}
    if isinstance(present.get("decision"), str) and _WORDS.get(str(present["decision"]).strip().casefold()) == decision:
        wanted.pop("decision")  # what the person typed stays as they typed it
    return set_properties(data, wanted)


def with_text(data: bytes, text: str) -> bytes:
    """A draft with another text to be accepted; properties and callout stay."""
    note = parse(data)
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    kept = note.body[: len(note.body) - len(_tail(note.body))]
    head = data[: len(data) - len(note.body.encode("utf-8"))]
    return head + f"{kept}{body}\n".encode()


def memory_properties(draft: DraftNote) -> dict[str, PropertyValue]:
    """The properties of the memory that a draft becomes: those of the review itself are left behind."""
    found: dict[str, PropertyValue] = {
        name: value for name, value in draft.memory.items() if value not in (None, "", [])
    }
    tags = found.pop("tags", None)
    listed = re.split(r"[,\s]+", tags) if isinstance(tags, str) else tags if isinstance(tags, list) else []
    if kept := [tag for tag in listed if tag and tag not in REVIEW_TAGS]:
        found["tags"] = kept
    return found


def wikilink(path: str, title: str | None = None) -> str:
    """A link to a note as Obsidian reads it; the bare path where a name holds characters that no link may."""
    target = path.removesuffix(".md")
    if set(target) & set("[]|#^"):
        return f"`{path}`"
    shown = re.sub(r"[\[\]|\r\n]", " ", title or "").strip()
    return f"[[{target}|{shown}]]" if shown else f"[[{target}]]"


def _callout(explanation: Explanation) -> str:
    lines = [f"{_CALLOUT} {_inline(explanation.headline)}", f"**Why:** {_inline(explanation.why)}"]
    if explanation.evidence:
        lines.append(f"**Evidence:** {', '.join(_inline(one) for one in explanation.evidence)}")
    lines.append(
        "**To decide:** set `decision` to `accept` or `reject`, or move this note to `Reviews/Accepted` or "
        "`Reviews/Rejected`. The text below this box is what will be kept; change it as you like."
    )
    if explanation.diff:
        longest = max((len(run) for run in re.findall(r"`+", explanation.diff)), default=0)
        fence = "`" * max(3, longest + 1)
        lines += ["", f"{fence}diff", *explanation.diff.rstrip("\n").split("\n"), fence]
    return "\n".join(
        line if line.startswith(">") and number == 0 else f"> {line}".rstrip() for number, line in enumerate(lines)
    )


def _inline(text: str) -> str:
    return " ".join(text.split())


def _after_callout(body: str) -> str:
    return _tail(body).strip("\r\n")


def _tail(body: str) -> str:
    """What follows the callout; the whole body where somebody took the callout away."""
    start = len(body) - len(body.lstrip("\r\n"))
    if not body.startswith(_CALLOUT, start):
        return body[start:]
    at = start
    for line in body[start:].splitlines(keepends=True):
        if not line.startswith(">"):
            break
        at += len(line)
    while at < len(body) and body[at] in "\r\n":
        at += 1
    return body[at:]


def _decision(parsed: ParsedNote) -> Decision | None:
    value = parsed.properties.get("decision")
    if value is None or value in ("", []):
        return None
    word = _WORDS.get(str(value).strip().casefold())
    if word is None:
        raise _wrong(parsed, "decision", "`decision` is `accept` or `reject`.")
    return word


def _wrong(parsed: ParsedNote, field: str, detail: str) -> BadNote:
    return BadNote(detail, field=field, line=parsed.key_lines.get(field))


def _text(value: PropertyValue) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value) else None


def _texts(value: PropertyValue) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(one) for one in value if one not in (None, ""))
    return (str(value),) if isinstance(value, str) and value else ()

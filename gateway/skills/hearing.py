"""Decides which lines of a transcript are the user's own words, and cuts it into portions that a model can read.

Of text alone no decision is proof: what a tool fetched may have labels in it. So trust ends easily and returns rarely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.skills.extraction_rules import rule_for
from gateway.skills.sentences import pieces
from gateway.skills.speakers import Label, Line, Role

# No label is longer; that much of a portion is kept for the name of who spoke before it.
_LABEL_ROOM = 320
# How people begin a statement of their own: no speaker is called so.
_OWN_BEGINNING = re.compile(
    r"(?:my|our|i|we)\b.*|(?:please )?(?:remember|note)(?: (?:this|that))?|notes?|n\.?b\.?|p\.?s\.?|fyi|btw"
    r"|decisions?|decided|agreed|agreement|lessons?(?: learn(?:ed|t))?|preferences?|facts?|rules?|reminder|important"
    r"|keep in mind|(?:root )?cause|reason|(?:the )?fix|update|edit|correction|also|todo"
    r"|[我咱本].*|(?:请|帮我)?(?:记住|记下|牢记|注意)|注意事项|备忘|决定|约定|教训|经验|偏好|喜好|事实|重要|提醒|备注|补充|更正|另外|原因|根因"
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A line of a transcript.

    Attributes:
        text: the line as it stands.
        speaker: the label of the turn that it is in, as it stands; empty before the first.
        label: how many of its characters are a speaker's label.
        believed: whether the user says it.
    """

    text: str
    speaker: str
    label: int
    believed: bool


def hear(lines: Sequence[Line]) -> list[Heard]:
    """Say of each line whether the user says it.

    Without a speaker's label all of it is the user's. With one, only what stands behind a label of the user is, up to
    the next label, be its name known or not. What a tool put out may contain labels: once it has several lines, it ends
    at a label behind a blank line, not at one within its paragraph.
    """
    labelled = any(line.label is not None and line.label.role is not None for line in lines)
    turn: Role = "other" if labelled else "user"
    speaker = ""
    heard: list[Heard] = []
    put_out = 0
    for line in lines:
        label = line.label if labelled else None
        apart = line.apart or (turn == "tool" and put_out <= 1 and not line.inner)
        after = turn if label is None else _turn(turn, label, apart=apart)
        begins = label is not None and label.role is not None and (turn != "tool" or apart or label.role == "tool")
        put_out = 1 if begins and label is not None and label.role == "tool" else put_out + 1
        if label is not None and (begins or after != turn):
            speaker = line.text[: label.length].strip()
        turn = after
        heard.append(Heard(line.text, speaker, label.length if begins and label else 0, turn == "user"))
    return heard


def portions(heard: Sequence[Heard], limit: int) -> Iterator[list[Heard]]:
    """A transcript in portions that `written` makes texts of, each of at most so many characters."""
    room = limit - _LABEL_ROOM
    portion: list[Heard] = []
    length = 0
    for line in _short(heard, room):
        if portion and length + len(line.text) + 1 > room:
            yield portion
            portion, length = [], 0
        portion.append(line)
        length += len(line.text) + 1
    if portion:
        yield portion


def written(portion: Sequence[Heard]) -> str:
    """The text of a portion. One that begins within a turn is told whose."""
    first = portion[0]
    lines = [line.text for line in portion]
    return "\n".join(lines if first.label or not first.speaker else [first.speaker, *lines])


def _turn(turn: Role, label: Label, *, apart: bool) -> Role:
    if turn == "tool" and not apart:
        return "tool"
    if label.role is None:
        return "other" if turn == "user" and not _is_own(label.name) else turn
    return label.role


def _is_own(name: str) -> bool:
    return _OWN_BEGINNING.fullmatch(name) is not None or rule_for(f"{name}:") is not None


def _short(heard: Sequence[Heard], limit: int) -> Iterator[Heard]:
    for line in heard:
        if len(line.text) <= limit:
            yield line
            continue
        label = line.label
        for piece in pieces(line.text, limit):
            yield Heard(piece, line.speaker, label, line.believed)
            label = 0

"""What every skill declares of itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as `GET /v1/skills` lists it.

    Attributes:
        takes, gives: the types of input and output.
        when: when it is used.
        writes_long_term: whether it may change long-term memory.
        available: whether this version carries it out, or only lays down its contract.
    """

    name: str
    does: str
    takes: type[Any]
    gives: type[Any]
    when: str
    writes_long_term: bool
    available: bool = True

    def input_fields(self) -> dict[str, str]:
        """Field names and types of the input."""
        return _described(self.takes)

    def output_fields(self) -> dict[str, str]:
        """Field names and types of the output."""
        return _described(self.gives)


def _described(kind: type[Any]) -> dict[str, str]:
    return {field.name: str(field.type) for field in fields(kind)}

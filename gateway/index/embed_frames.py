"""The binary frames that the gateway and its embedding child process exchange over pipes.

A frame is a 4-byte big-endian length and that many bytes. Standard library only, both sides import it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Literal

Kind = Literal["query", "passage"]
LENGTH = struct.Struct(">I")
_ANSWER = struct.Struct(">IB")


@dataclass(frozen=True, slots=True)
class Request:
    """Texts to embed; `number` comes back with the answer, so that a late one is not taken for another."""

    number: int
    kind: Kind
    texts: list[str]

    def encode(self) -> bytes:
        """The frame, its length included."""
        payload = json.dumps([self.number, self.kind, self.texts]).encode("utf-8")
        return LENGTH.pack(len(payload)) + payload

    @classmethod
    def decode(cls, payload: bytes) -> Request:
        """A request from the payload of its frame."""
        number, kind, texts = json.loads(payload)
        return cls(number, kind, texts)


@dataclass(frozen=True, slots=True)
class Answer:
    """Vectors as float32 in machine order, row by row, or the name of what went wrong."""

    number: int
    ok: bool
    content: bytes

    def encode(self) -> bytes:
        """The frame, its length included."""
        payload = _ANSWER.pack(self.number, int(self.ok)) + self.content
        return LENGTH.pack(len(payload)) + payload

    @classmethod
    def decode(cls, payload: bytes) -> Answer:
        """An answer from the payload of its frame."""
        number, ok = _ANSWER.unpack_from(payload)
        return cls(number, bool(ok), payload[_ANSWER.size :])

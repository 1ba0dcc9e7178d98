"""One embedding child process: started when needed, restarted after a crash, never waited for without a deadline."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from gateway.errors import EmbeddingBusy, EmbeddingFailed
from gateway.index.embed_frames import LENGTH, Answer, Kind, Request

# A query's answer that is this late means the child hangs, not that the machine is busy.
_HANGS_AFTER_SECONDS = 30.0
_CHILD_MODULE = "gateway.index.embed_child"


class EmbeddingProcess:
    """A child process with the model in it. One request at a time; further callers wait within their deadline."""

    def __init__(self, *, dimension: int, threads: int, niceness: int, module: str = _CHILD_MODULE) -> None:
        self._dimension = dimension
        self._threads = threads
        self._niceness = niceness
        self._module = module
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._received = bytearray()
        self._number = 0
        self._unanswered_since: float | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Process id of the running child, if there is one."""
        return self._process.pid if self._process else None

    def embed(self, kind: Kind, texts: Sequence[str], timeout: float, *, patient: bool) -> npt.NDArray[np.float32]:
        """One row a text. A `patient` caller's time-out leaves the child at work (its late answer is dropped).

        Raises:
            EmbeddingFailed: crash, time-out, or an answer that is not the vectors asked for.
        """
        deadline = time.monotonic() + timeout
        if not self._lock.acquire(timeout=max(0.0, timeout)):
            raise EmbeddingBusy("The embedding process is busy.")
        try:
            return self._exchange(kind, texts, deadline, patient)
        finally:
            self._lock.release()

    def start(self) -> None:
        """Load the model ahead of the first request."""
        with self._lock:
            self._running()

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._closed = True
            self._stop()

    def _exchange(self, kind: Kind, texts: Sequence[str], deadline: float, patient: bool) -> npt.NDArray[np.float32]:
        try:
            process = self._running()
            self._number = (self._number + 1) % 2**32
            self._unanswered_since = self._unanswered_since or time.monotonic()
            self._send(process, Request(self._number, kind, list(texts)).encode(), deadline)
            answer = self._answer(process, self._number, deadline)
        except TimeoutError as error:
            self._after_timeout(patient)
            raise EmbeddingFailed("The embedding process did not answer in time.") from error
        except (OSError, EOFError) as error:
            self._stop()
            raise EmbeddingFailed("The embedding process ended unexpectedly.") from error
        self._unanswered_since = None
        return self._vectors(answer, len(texts))

    def _after_timeout(self, patient: bool) -> None:
        waited = time.monotonic() - (self._unanswered_since or 0.0)
        if not patient or waited > _HANGS_AFTER_SECONDS:
            self._stop()

    def _vectors(self, answer: Answer, rows: int) -> npt.NDArray[np.float32]:
        if not answer.ok:
            raise EmbeddingFailed(f"The embedding model failed: {answer.content.decode('ascii', 'replace')}.")
        vectors = np.frombuffer(answer.content, dtype=np.float32)
        if vectors.size != rows * self._dimension or not np.isfinite(vectors).all():
            raise EmbeddingFailed("The embedding model did not answer with vectors.")
        return vectors.reshape(rows, self._dimension)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EmbeddingFailed("The embedder is closed.")
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            self._process = self._spawn()
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        package_parent = str(Path(__file__).resolve().parents[2])
        search_path = os.pathsep.join(filter(None, [package_parent, os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", self._module, str(self._niceness)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={
                **os.environ,
                "PYTHONPATH": search_path,
                # Spinning threads cost 25 -> 275 ms a query on a busy machine (measured).
                "OMP_NUM_THREADS": str(self._threads),
                "OMP_WAIT_POLICY": "passive",
            },
        )
        os.set_blocking(_pipe(process.stdin), False)
        return process

    def _send(self, process: subprocess.Popen[bytes], frame: bytes, deadline: float) -> None:
        pipe = _pipe(process.stdin)
        left = memoryview(frame)
        while left:
            _, writable, _ = select.select([], [pipe], [], _remaining(deadline))
            if not writable:
                # Half a frame would garble every later one.
                self._stop()
                raise TimeoutError
            left = left[os.write(pipe, left) :]

    def _answer(self, process: subprocess.Popen[bytes], number: int, deadline: float) -> Answer:
        while True:
            answer = Answer.decode(self._frame(process, deadline))
            if answer.number == number:
                return answer

    def _frame(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        """The next whole frame; what has arrived of one stays for the next call when time runs out."""
        while True:
            if len(self._received) >= LENGTH.size:
                (length,) = LENGTH.unpack_from(self._received)
                end = LENGTH.size + length
                if len(self._received) >= end:
                    payload = bytes(self._received[LENGTH.size : end])
                    del self._received[:end]
                    return payload
            self._receive(process, deadline)

    def _receive(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        pipe = _pipe(process.stdout)
        readable, _, _ = select.select([pipe], [], [], _remaining(deadline))
        if not readable:
            raise TimeoutError
        data = os.read(pipe, 1 << 16)
        if not data:
            raise EOFError
        self._received += data

    def _stop(self) -> None:
        process, self._process = self._process, None
        self._received.clear()
        self._unanswered_since = None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _pipe(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise EOFError
    return stream.fileno()

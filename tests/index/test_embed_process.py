"""The embedding child: its crashes and delays cost one request, and it never outlives its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gateway.errors import EmbeddingFailed
from gateway.index.embed_process import EmbeddingProcess

CHILD = Path(__file__).with_name("poison_child.py")


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingProcess]:
    """A process whose child is the stand-in."""
    monkeypatch.setenv("PYTHONPATH", str(CHILD.parent))
    process = EmbeddingProcess(dimension=2, threads=1, niceness=0, module="poison_child")
    yield process
    process.close()


def ended(pid: int) -> bool:
    """Wait for a process to end."""
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text(encoding="utf-8").split(")")[-1].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_vectors_come_in_the_order_of_the_texts(process: EmbeddingProcess) -> None:
    """And what native code prints does not garble them."""
    vectors = process.embed("passage", ["a", "print", "ccc"], 20, patient=False)
    assert np.array_equal(vectors[:, 0], [1.0, 5.0, 3.0])


def test_a_frame_larger_than_a_pipe_arrives(process: EmbeddingProcess) -> None:
    """Pipes hold 64 kB."""
    texts = ["系" * 8_000] * 100
    assert process.embed("passage", texts, 30, patient=False).shape == (100, 2)


@pytest.mark.parametrize("poison", ["crash", "raise"])
def test_a_crash_costs_one_request_and_the_next_is_answered(process: EmbeddingProcess, poison: str) -> None:
    """The child is started again where it died."""
    with pytest.raises(EmbeddingFailed):
        process.embed("passage", [poison], 20, patient=False)
    assert process.embed("passage", ["a"], 20, patient=False)[0, 0] == 1.0


def test_a_batch_that_hangs_is_given_up_and_its_child_replaced(process: EmbeddingProcess) -> None:
    """The deadline holds."""
    process.start()
    first = process.pid
    with pytest.raises(EmbeddingFailed):
        process.embed("passage", ["hang"], 0.5, patient=False)
    assert process.embed("passage", ["a"], 20, patient=False)[0, 0] == 1.0
    assert process.pid != first


def test_a_late_answer_is_dropped_and_not_taken_for_the_next(process: EmbeddingProcess) -> None:
    """A patient caller's time-out leaves the loaded model running."""
    assert process.embed("query", ["warm"], 20, patient=True)[0, 0] == 4.0
    first = process.pid
    with pytest.raises(EmbeddingFailed):
        process.embed("query", ["slow"], 0.05, patient=True)
    assert process.embed("query", ["123456"], 20, patient=True)[0, 0] == 6.0
    assert process.pid == first


def test_the_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """kill -9 leaves no orphan."""
    script = (
        "import sys, time\n"
        "from gateway.index.embed_process import EmbeddingProcess\n"
        "process = EmbeddingProcess(dimension=2, threads=1, niceness=0, module='poison_child')\n"
        "process.embed('query', ['a'], 20, patient=True)\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, str(CHILD.parent)])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert ended(child)


def test_a_closed_process_answers_no_more(process: EmbeddingProcess) -> None:
    """Its child is gone."""
    process.start()
    pid = process.pid
    process.close()
    assert pid is not None
    assert ended(pid)
    with pytest.raises(EmbeddingFailed):
        process.embed("query", ["a"], 1, patient=True)

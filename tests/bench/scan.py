"""A scan in which nothing has changed against a bare walk: `python -m tests.bench.scan [notes] [rounds]`."""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gateway.bootstrap import open_gateway
from gateway.config import load_settings

FOLDER_NOTES = 500


def fill(root: Path, notes: int) -> None:
    """Notes in deep folders of about 500."""
    for number in range(notes):
        folder = root / "Global" / f"{number // (FOLDER_NOTES * 10)}" / "deep" / f"{number // FOLDER_NOTES}"
        if number % FOLDER_NOTES == 0:
            folder.mkdir(parents=True)
        (folder / f"note {number}.md").write_text(
            f"---\ntype: fact\n---\n# Note {number}\n\nThe words of note {number}.\n"
        )


def bare_walk(root: str) -> int:
    """What any scan has to do: list every folder and stat every file."""
    count, waiting = 0, [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name[0] == ".":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    notes = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    folder = Path(tempfile.mkdtemp(prefix="bench-scan-"))
    try:
        gateway = open_gateway(load_settings(data_dir=folder, embedding={"provider": "none"}))
        root = gateway.parts.files.root
        fill(root, notes)
        first = seconds(lambda: gateway.parts.importer.scan(settled=True))
        print(f"first import of {notes:,} notes (ledger only): {first:.1f} s, {notes / first:,.0f} notes/s")
        walks, scans = [], []
        for _ in range(rounds):  # in turn, so that the noise of the machine hits both
            walks.append(seconds(lambda: bare_walk(str(root))))
            scans.append(seconds(lambda: gateway.parts.importer.scan(settled=True)))
        walk, scan = statistics.median(walks), statistics.median(scans)
        print(f"bare walk {walk * 1000:.0f} ms, scan {scan * 1000:.0f} ms (medians of {rounds}): {scan / walk:.2f}x")
        gateway.close()
        reopened = seconds(lambda: open_gateway(load_settings(data_dir=folder, embedding={"provider": "none"})).close())
        print(f"opening and closing with {notes:,} notes: {reopened:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

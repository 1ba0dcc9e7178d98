"""Three-way merge of texts, by git's own `merge-file`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gateway.vault.git import Git


def merge_bytes(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """What both sides changed, together; None where they contradict each other or are no text."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for name, data in zip(names, (ours, base, theirs), strict=True):
            name.write_bytes(data)
        answer = Git(Path(folder)).ask("merge-file", "-p", "--quiet", *(name.name for name in names))
    return answer.out if answer.code == 0 else None


def merge_texts(ours: str, base: str, theirs: str) -> str | None:
    """`merge_bytes` for text."""
    merged = merge_bytes(ours.encode("utf-8"), base.encode("utf-8"), theirs.encode("utf-8"))
    return merged.decode("utf-8") if merged is not None else None

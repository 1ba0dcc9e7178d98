"""The difference between two versions of a note, as a unified diff. Pure."""

from __future__ import annotations

import difflib


def difference(old: bytes, new: bytes, *, old_name: str, new_name: str) -> str:
    """A unified diff of two versions of a note."""
    lines = [data.decode("utf-8", "replace").splitlines(keepends=True) for data in (old, new)]
    return "".join(
        line if line.endswith("\n") else line + "\n"
        for line in difflib.unified_diff(lines[0], lines[1], fromfile=old_name, tofile=new_name)
    )

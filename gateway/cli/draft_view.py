"""How drafts look in the terminal. Their text comes from agents: whatever could move the cursor is shown escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.cells import cell_len, set_cell_size

from gateway.cli.console import out, shown

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_GAP = "  "


def print_list(reviews: Sequence[dict[str, Any]]) -> None:
    """A table of drafts: age, id, kind, how sure, for whom, by whom, title."""
    if not reviews:
        out.print("no drafts")
        return
    head = ("age", "id", "kind", "sure", "for", "by", "title")
    rows = [head, *(_cells(one) for one in reviews)]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(head) - 1)]
    for number, row in enumerate(rows):
        padded = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=False)]
        out.print(_GAP.join([*padded, row[-1]]), markup=False, style="bold" if number == 0 else "")


def print_review(found: dict[str, Any]) -> None:
    """A draft: who, why, on what evidence, the text, and what accepting it would change."""
    review = found["review"]
    out.print(one_line(f"{review['title']}"), markup=False, style="bold")
    facts = {
        "id": f"{review['id']} ({review['status']})",
        "kind": f"{review['proposal']}, {float(review['confidence']):.0%} sure",
        "for": review["target_namespace"],
        "by": f"{review['proposed_by']}, {age(review['created_at'])} ago",
        "why": review["why"],
        "evidence": ", ".join(review["evidence"]),
        "changes": review["target"],
        "decided": _decision(review),
        "file": review["path"],
        "branch": review["branch"],
    }
    for name, value in facts.items():
        if value:
            out.print(f"{name:>9}  {one_line(str(value))}", markup=False)
    if found["problem"]:
        out.print(one_line(f"  problem  {found['problem']}"), markup=False, style="yellow")
    if found["stale"]:
        out.print("    stale  the memory changed since; deciding brings the draft up to date first", style="yellow")
    out.print()
    if found["diff"]:
        print_diff(found["diff"])
    elif review["proposal"] == "archive":
        out.print("to be retired:", style="red")
        out.print(shown(found["current"] or found["text"]), markup=False)
    else:
        out.print(shown(found["text"]), markup=False)
    out.print()


def print_diff(diff: str) -> None:
    """A unified diff in colours."""
    for line in diff.splitlines():
        heading = line.startswith(("+++ ", "--- "))
        out.print(shown(line), markup=False, style="bold" if heading else _STYLES.get(line[:1], ""))


def one_line(text: str) -> str:
    """Text as one line of a terminal."""
    return " ".join(shown(text).split())


def age(moment: str) -> str:
    """How long ago a time was, in one unit."""
    seconds = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _cells(review: dict[str, Any]) -> tuple[str, ...]:
    kind = review["proposal"] if review["status"] == "pending" else f"{review['proposal']} ({review['status']})"
    cells = (
        age(review["created_at"]),
        review["id"],
        kind,
        f"{float(review['confidence']):.2f}",
        review["target_namespace"],
        review["proposed_by"],
        review["title"],
    )
    return tuple(one_line(str(cell)) for cell in cells)


def _decision(review: dict[str, Any]) -> str | None:
    if review["decided_at"] is None:
        return None
    reason = f": {review['decision_reason']}" if review["decision_reason"] else ""
    return f"{review['decided_by']} by {review['decided_via']}, {age(review['decided_at'])} ago{reason}"

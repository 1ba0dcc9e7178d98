"""Nothing reaches the data without saying who asks: the shape of the services, read from their source."""

from __future__ import annotations

import ast
from pathlib import Path

GATEWAY = Path(__file__).resolve().parents[2] / "gateway"
DOORS = ("api", "mcp", "cli")

# Helpers that services share. No door calls them; their callers have asked the guard before.
SHARED = {
    ("versions", "written"): "the answer to a write that has been decided",
    ("versions", "fresh"): "the answer to a write that has been decided",
    ("versions", "explain_difference"): "the diff for somebody who may write the note",
    ("versions", "text_of"): "the bytes of a version of a note that may be read",
    ("lineage", "texts_of"): "the texts of versions of a note that may be read",
    ("proposing", "propose_new"): "a draft in place of a write that was decided",
    ("proposing", "propose_directive"): "a draft in place of a write that was decided",
    ("proposing", "propose_change"): "a draft in place of a write that was decided",
    ("proposing", "propose_archive"): "a draft in place of a delete that was decided",
    ("secrets", "check_secrets"): "looks at texts of the request only",
    ("secrets", "check_request"): "looks at texts of the request only",
    ("secrets", "check_candidate"): "looks at one text only",
    ("secrets", "check_note"): "looks at bytes that are to be written",
    ("secrets", "masked"): "changes texts of the request only",
    ("skills_enabled", "require"): "asks for switches, tells no content",
    ("agent_files", "check_text"): "looks at a text of the request only",
    ("structured", "in_force"): "what a note that may be read says",
    ("fixed_notes", "provision"): "makes templates, tells nothing",
    ("fixed_notes", "path_of"): "a path only",
    ("fixed_notes", "look"): "asks the guard itself",
    ("fixed_notes", "rewrite"): "asks the guard itself",
    ("fixed_notes", "change"): "writes a note that was looked at for writing",
    ("fixed_notes", "mend_first"): "the problem of a note that may be read",
    ("fixed_notes", "seen"): "the audit of a reading that was decided",
    ("search", "text_now"): "the text of a memory that a search may show",
    ("suppression", "active_directives"): "directives of a user whose reading was decided, or who is searched for",
    ("suppression", "suppressed_topics"): "what is left out of a search of the user's own",
    ("memories", "recalled"): "the first answer to the same request of the same key",
    ("forgetting", "report"): "places and states of a memory that may be forgotten",
    ("forgetting", "finish"): "takes files of forgotten drafts away, tells nothing",
    ("candidates", "take"): "candidates of a session that was decided about, or that the worker takes up",
    ("candidates", "preview"): "what a pass would take from a session; the pass is an administrator's or nobody's",
    ("candidates", "known_for"): "hashes of what a user's sessions need not say again",
    ("rebuild", "migrate"): "the work of the background, without a request",
    ("rebuild", "close_retired"): "lets go of an index that no longer serves",
    ("rebuild", "close_embedders"): "the end of the gateway",
    ("clearing", "run"): "carries out a job that was decided",
    ("purging", "run"): "carries out a job that was decided",
    ("sync", "run"): "the work of the background, without a request",
}
# What a door may call without a key.
OPEN = {("status", "brief"): "alive and ready, without names or sums"}


def functions() -> dict[tuple[str, str], ast.FunctionDef]:
    found = {}
    for path in sorted((GATEWAY / "services").glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[path.stem, node.name] = node
    return found


def takes_parts(node: ast.FunctionDef) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return any(one.annotation is not None and ast.unparse(one.annotation) == "Parts" for one in arguments)


def first(node: ast.FunctionDef) -> str:
    return ast.unparse(node.args.args[0]) if node.args.args else ""


def called_by_doors() -> set[tuple[str, str]]:
    """All `module.function` of services that a door names."""
    found: set[tuple[str, str]] = set()
    for door in DOORS:
        for path in (GATEWAY / door).glob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            modules: dict[str, str] = {}
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module == "gateway.services":
                    modules |= {alias.asname or alias.name: alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway.services."):
                    found |= {(node.module.rpartition(".")[2], alias.name) for alias in node.names}
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                    found.add((modules[node.value.id], node.attr))
    return found


def test_what_reaches_the_data_says_who_asks_first():
    """`principal: Principal`, or the `Context` that the guard made of one; the few others are named with a reason."""
    known = functions()
    wrong = [
        name
        for name, node in known.items()
        if takes_parts(node)
        and not name[1].startswith("_")
        and first(node) not in ("principal: Principal", "context: Context")
        and name not in SHARED | OPEN
    ]
    assert wrong == []
    assert set(SHARED | OPEN) <= set(known)


def test_doors_call_only_what_takes_the_principal():
    """A door has no context to give and no business with the helpers."""
    known = functions()
    called = called_by_doors() & set(known)
    assert len(called) > 30
    with_parts = {name for name in called if takes_parts(known[name])} - set(OPEN)
    assert sorted(name for name in with_parts if first(known[name]) != "principal: Principal") == []
    assert not called & set(SHARED)
    assert not {name for name in called if name[1].startswith("_")}


def test_doors_do_not_reach_past_the_services():
    """REST and MCP read neither ledger nor files nor index themselves."""
    past = []
    for door in ("api", "mcp"):
        for path in (GATEWAY / door).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr in ("ledger", "files", "importer", "writes"):
                    past.append((path.name, ast.unparse(node)))
    assert [one for one in past if one[0] != "metrics.py"] == []

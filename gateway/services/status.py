"""Health and problems: what the gateway knows of itself. Unknown is None, never 0."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.importer.importer import ImportReport
from gateway.importer.parts import Parts
from gateway.ledger import journal, problems, registry, reviews
from gateway.ledger.problems import ProblemRow
from gateway.services.records import text_time


@dataclass(frozen=True, slots=True)
class FolderHealth:
    """One namespace: notes on disk, found by keywords, with all vectors (None: no provider), and in problem."""

    namespace: str
    on_disk: int
    indexed: int
    with_vectors: int | None
    in_problem: int


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the gateway."""

    live: bool
    ready: bool
    version: str
    folders: list[FolderHealth] | None = None
    watcher: dict[str, Any] | None = None
    queue: dict[str, int | None] | None = None
    git: dict[str, Any] | None = None
    index: dict[str, Any] | None = None
    problems: int | None = None
    alerts: list[str] = field(default_factory=list[str])


def brief(parts: Parts, version: str) -> Health:
    """What anybody may know: alive, and ready once the first scan is done."""
    return Health(True, parts.scanned.is_set(), version)


def health(principal: Principal, parts: Parts, version: str) -> Health:
    """Everything, for those who may operate the gateway."""
    guard.operate(parts.ledger, principal)
    with parts.ledger.read() as tx:
        counts = registry.counts_by_namespace(tx)
        pending = registry.pending_counts(tx)
        waiting = journal.pending_count(tx)
        listed = problems.listed(tx)
        drafts = reviews.counts(tx)
    vectors = parts.feed.embedder is not None
    folders = [
        FolderHealth(
            name,
            count["notes"],
            count["indexed"] - count["held"],
            max(0, count["with_vectors"] - count["held"]) if vectors else None,
            len({row.path for row in listed if row.namespace == name}),
        )
        for name, count in sorted(counts.items())
    ]
    return Health(
        live=True,
        ready=parts.scanned.is_set(),
        version=version,
        folders=folders if parts.scanned.is_set() else None,
        watcher=_watcher(parts),
        queue={
            "files": len(parts.importer.later),
            **pending,
            "vectors": pending["vectors"] if vectors else None,
            "commits": waiting,
            "drafts": drafts.get(reviews.PENDING, 0),
        },
        git={
            "waits": parts.committer.trouble,
            "head": parts.history.head(),
            "pending": waiting,
            "sync": _sync(parts),
        },
        index=_index(parts),
        problems=len(listed),
        alerts=_alerts(parts, listed),
    )


def problem_list(principal: Principal, parts: Parts) -> list[ProblemRow]:
    """What is wrong with which file."""
    guard.operate(parts.ledger, principal)
    with parts.ledger.read() as tx:
        return problems.listed(tx)


def confirm_deletions(principal: Principal, parts: Parts) -> ImportReport:
    """A person confirms that notes which vanished in masses are deleted."""
    guard.operate(parts.ledger, principal)
    report = parts.importer.confirm_deletions()
    parts.wake()
    return report


def _watcher(parts: Parts) -> dict[str, Any]:
    watcher = parts.watcher
    heard = watcher.heard_at if watcher else None
    return {
        "enabled": watcher is not None,
        "hears": watcher.hears if watcher else None,
        "heard_at": text_time(int(heard * 1000)) if heard else None,
        "trouble": watcher.trouble if watcher else None,
        "last_scan_at": text_time(int(parts.last_scan_at * 1000)) if parts.last_scan_at else None,
        "seconds_since_scan": round(time.time() - parts.last_scan_at, 1) if parts.last_scan_at else None,
    }


def _index(parts: Parts) -> dict[str, Any]:
    identity = parts.feed.index.identity
    return {
        "embedding": identity.slug if identity else None,
        "note": parts.embedding_note,
        "error": parts.feed.embedding_error,
        "generation": parts.feed.index.generation,
        "rebuild": {
            "job": parts.rebuild.job,
            "done": parts.rebuild.done,
            "total": parts.rebuild.total,
            "error": parts.rebuild.error,
        }
        if parts.rebuild.job
        else None,
        "migration": _migration(parts),
    }


def _migration(parts: Parts) -> dict[str, Any] | None:
    """How far a change of the embedding model is, in notes; None where there is none."""
    one = parts.migration
    if one is None:
        return None
    return {
        "from": one.source_name,
        "to": one.target_name,
        "phase": one.phase,
        "done": one.done,
        "total": one.total,
        "error": one.error,
        "job_id": one.job_id,
    }


def _sync(parts: Parts) -> dict[str, Any] | None:
    """How the sync with the git remote goes; None where there is none."""
    if parts.settings.git.remote is None:
        return None
    at = parts.sync.at
    return {
        "remote": parts.settings.git.remote,
        "at": text_time(int(at * 1000)) if at is not None else None,
        "error": parts.sync.error,
        "advice": parts.sync.advice,
    }


def _alerts(parts: Parts, listed: list[ProblemRow]) -> list[str]:
    found = [row.message for row in listed if not row.path]
    if parts.vault_error:
        found.append(parts.vault_error)
    if parts.watcher is not None and parts.watcher.trouble:
        found.append(f"The watcher is out ({parts.watcher.trouble}); changes are found by the scan.")
    if parts.committer.trouble:
        found.append(parts.committer.trouble)
    if parts.sync.error:
        found.append(parts.sync.error)
    return found

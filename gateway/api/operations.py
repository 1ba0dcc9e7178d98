"""Health, problems, import, rebuild, metrics: what concerns the gateway as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar import MediaType, Request, Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway import __version__
from gateway.api.headers import gateway_of, principal_of
from gateway.api.metrics import Metrics
from gateway.api.problems import ERRORS
from gateway.ledger.problems import ProblemRow
from gateway.services import imports, rebuild, status, sync
from gateway.services.imports import ImportOutcome
from gateway.services.operation_requests import ConsolidationRequest, ImportBatch, SyncRequest
from gateway.services.records import text_time
from gateway.services.status import Health
from gateway.services.sync import SyncRecord
from gateway.workers.consolidation.report import PassReport

Http = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of one file; `path` is empty where it concerns the vault as a whole."""

    path: str
    kind: str
    message: str
    advice: str
    line: int | None
    field: str | None
    namespace: str | None
    since: str


@dataclass(frozen=True, slots=True)
class Problems:
    """All problems, by path."""

    problems: list[Problem]
    total: int


@dataclass(frozen=True, slots=True)
class ImportAnswer:
    """What came of each note of an import, in order."""

    notes: list[ImportOutcome]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """How many vanished notes now count as deleted."""

    deleted: int


@dataclass(frozen=True, slots=True)
class RebuildStarted:
    """The rebuild runs; its progress is in `GET /v1/health` under `index.rebuild`."""

    started: bool
    generation: int


_NOT_READY = ResponseSpec(Health, generate_examples=False, description="The first scan is not done yet")


@get("/v1/health", responses=ERRORS | {503: _NOT_READY}, security=[{}, {"key": []}], sync_to_thread=True)
def get_health(request: Http) -> Response[Health]:
    """Alive, and ready once the first scan is done (503 before). With a key: everything else."""
    parts = gateway_of(request).parts
    if request.headers.get("authorization") is None:
        found = status.brief(parts, __version__)
    else:
        found = status.health(principal_of(request), parts, __version__)
    return Response(found, status_code=200 if found.ready else 503, headers={"Cache-Control": "no-store"})


@get("/v1/problems", responses=ERRORS, sync_to_thread=True)
def list_problems(request: Http) -> Problems:
    """What is wrong with which file, and what to do; the same as `Reviews/Problems.md`."""
    rows = status.problem_list(principal_of(request), gateway_of(request).parts)
    return Problems([_problem(row) for row in rows], len(rows))


@post("/v1/problems/confirm-deletions", responses=ERRORS, status_code=200, sync_to_thread=True)
def confirm_deletions(request: Http) -> Confirmed:
    """Confirm that notes which vanished in masses are deleted."""
    return Confirmed(status.confirm_deletions(principal_of(request), gateway_of(request).parts).deleted)


@post("/v1/import", responses=ERRORS, status_code=200, sync_to_thread=True)
def import_notes(request: Http, data: JSONBody[ImportBatch]) -> ImportAnswer:
    """Take in up to 200 notes, byte for byte. Repeating it changes nothing."""
    return ImportAnswer(imports.import_notes(principal_of(request), gateway_of(request).parts, data))


@post("/v1/rebuild", responses=ERRORS, status_code=202)
async def start_rebuild(request: Http) -> RebuildStarted:
    """Rebuild the index from the vault in the background; the old one serves until then."""
    parts = gateway_of(request).parts
    rebuild.start(principal_of(request), parts)
    return RebuildStarted(True, await sync_to_thread(lambda: parts.feed.index.generation))


@post("/v1/sync", responses=ERRORS, status_code=200, sync_to_thread=True)
def start_sync(request: Http, data: JSONBody[SyncRequest | None] = None) -> SyncRecord:
    """Sync with the git remote now: fetch, merge, decide what was merged, push."""
    gateway = gateway_of(request)
    wanted = data or SyncRequest.model_validate({})
    return sync.sync(principal_of(request), gateway.parts, gateway.branches, accept_rewrite=wanted.accept_rewrite)


@post("/v1/consolidate", responses=ERRORS, status_code=200, sync_to_thread=True)
def start_consolidation(request: Http, data: JSONBody[ConsolidationRequest | None] = None) -> PassReport:
    """Run one pass of consolidation now, and say what it did; or what it would do, with `dry_run`."""
    wanted = data or ConsolidationRequest.model_validate({})
    return gateway_of(request).consolidation.consolidate(principal_of(request), dry_run=wanted.dry_run)


@get("/metrics", media_type=MediaType.TEXT, include_in_schema=False, sync_to_thread=True)
def get_metrics(request: Http) -> Response[bytes]:
    """Prometheus metrics: sums only, no names."""
    metrics: Metrics = request.app.state["metrics"]
    metrics.refresh(gateway_of(request).parts)
    return Response(generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _problem(row: ProblemRow) -> Problem:
    return Problem(
        row.path, row.kind, row.message, row.advice, row.line, row.field, row.namespace, text_time(row.since) or ""
    )


ROUTES = [
    list_problems,
    confirm_deletions,
    import_notes,
    start_rebuild,
    start_sync,
    start_consolidation,
]
# What answers without a key: sums and "alive", no names.
OPEN_ROUTES = [get_health, get_metrics]

"""Forgetting: clear a scope, purge git's history, the erasure report of a memory, having a forgotten text back"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath, JSONBody
from pydantic import Field

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.ledger.jobs import Job
from gateway.services import clearing, forgetting, purging
from gateway.services.clearing import ClearRequest
from gateway.services.purging import PurgeRequest
from gateway.services.records import Deleted, Written
from gateway.services.requests import RequestBody

Http = Request[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A job that was ordered; `GET /v1/jobs/{job_id}` tells how far it is."""

    job_id: str
    status: str


class RestoreRequest(RequestBody):
    """The body of `POST /v1/problems/restore`: the file of a problem of kind `forgotten`."""

    path: str = Field(min_length=1, max_length=1024)


@post("/v1/clear", responses=ERRORS, status_code=202, sync_to_thread=True)
def clear(request: Http, data: JSONBody[ClearRequest]) -> Response[Ordered]:
    """Clear all memories of a user, agent, workspace or session. Nothing of it is read or written from now on."""
    return _ordered(clearing.order(principal_of(request), gateway_of(request).parts, data))


@post("/v1/purge", responses=ERRORS, status_code=202, sync_to_thread=True)
def purge(request: Http, data: JSONBody[PurgeRequest]) -> Response[Ordered]:
    """Take what was forgotten out of git's history, too. Rewrites commits; for administrators."""
    return _ordered(purging.order(principal_of(request), gateway_of(request).parts, data))


@get("/v1/memory/{memory_id:str}/erasure", responses=ERRORS, sync_to_thread=True)
def erasure(request: Http, memory_id: FromPath[str]) -> Deleted:
    """What became of a forgotten memory at each place where it stood."""
    return forgetting.erasure_of(principal_of(request), gateway_of(request).parts, memory_id)


@post("/v1/problems/restore", responses=ERRORS, status_code=200, sync_to_thread=True)
def restore(request: Http, data: JSONBody[RestoreRequest]) -> Written:
    """Have a forgotten text back whose file stands in the vault again. For people, not for agents."""
    return forgetting.undo(principal_of(request), gateway_of(request).parts, data.path)


def _ordered(job: Job) -> Response[Ordered]:
    return Response(Ordered(job.id, job.status), headers={"Location": f"/v1/jobs/{job.id}"})


ROUTES = [clear, purge, erasure, restore]

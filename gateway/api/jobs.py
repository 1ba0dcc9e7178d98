"""`/v1/jobs`: long work and how far it is"""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.params import FromPath, FromQuery

from gateway.api.headers import gateway_of, principal_of
from gateway.api.memories import Limit
from gateway.api.problems import ERRORS
from gateway.services import jobs
from gateway.services.jobs import JobPage, JobRecord

Http = Request[Any, Any, Any]


@get("/v1/jobs", responses=ERRORS, sync_to_thread=True)
def list_jobs(
    request: Http, status: FromQuery[str | None] = None, limit: Limit = 50, cursor: FromQuery[str | None] = None
) -> JobPage:
    """Jobs, newest first: an administrator's all, a person's own."""
    return jobs.page(principal_of(request), gateway_of(request).parts, status=status, limit=limit, cursor=cursor)


@get("/v1/jobs/{job_id:str}", responses=ERRORS, sync_to_thread=True)
def get_job(request: Http, job_id: FromPath[str]) -> JobRecord:
    """How far a job is."""
    return jobs.get(principal_of(request), gateway_of(request).parts, job_id)


ROUTES = [list_jobs, get_job]

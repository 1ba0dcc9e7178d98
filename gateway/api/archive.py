"""The archive over REST."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, post
from litestar.params import FromPath

from gateway.api.headers import gateway_of, principal_of
from gateway.api.problems import ERRORS
from gateway.services import archive
from gateway.services.records import Written


@post("/v1/memory/{memory_id:str}/restore", responses=ERRORS, status_code=200, sync_to_thread=True)
def restore_memory(request: Request[Any, Any, Any], memory_id: FromPath[str]) -> Response[Written]:
    """Move an archived memory back to where it stood. For people: an agent's key restores nothing."""
    done = archive.restore(principal_of(request), gateway_of(request).parts, memory_id)
    return Response(done, headers={"ETag": f'"{done.etag}"'})


ROUTES = [restore_memory]

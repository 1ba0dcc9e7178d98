"""Where the `review` commands get drafts from and bring decisions to: the running server, or the data directory."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from gateway.access.principal import LOCAL_OPERATOR
from gateway.cli.console import RunningServer, running_server
from gateway.config import Settings
from gateway.errors import Invalid, NotFound
from gateway.notes.namespace import parse_namespace
from gateway.services.requests import AcceptReview, RejectReview

if TYPE_CHECKING:  # beside a running server nothing waits for the index's libraries
    from gateway.bootstrap import Gateway

_PREFIX = "rev_"
_FULL = len(_PREFIX) + 20
_LEAST = 4
_Body = TypeVar("_Body", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which drafts; None means "any"."""

    status: str = "pending"
    proposal: str | None = None
    namespace: str | None = None


class _Source(Protocol):
    def page(self, wanted: Wanted, limit: int, cursor: str | None) -> dict[str, Any]: ...

    def get(self, review_id: str) -> dict[str, Any]: ...

    def accept(self, review_id: str, body: AcceptReview, etag: str | None) -> dict[str, Any]: ...

    def reject(self, review_id: str, body: RejectReview, etag: str | None) -> dict[str, Any]: ...


class Queue:
    """The drafts, as the API shows them."""

    def __init__(self, source: _Source, page_size: int) -> None:
        self._source = source
        self._page_size = page_size

    def all(self, wanted: Wanted) -> list[dict[str, Any]]:
        """All drafts that are asked for, oldest first."""
        if wanted.namespace is not None:
            parse_namespace(wanted.namespace)
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self._source.page(wanted, self._page_size, cursor)
            found += page["reviews"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def named(self, text: str) -> str:
        """The id that a person shortened to its beginning or ending; among waiting drafts first.

        Raises:
            NotFound: no draft is called so.
            Invalid: several are, or too little of the id is given.
        """
        short = text.strip().removeprefix(_PREFIX)
        if len(text.strip()) == _FULL and text.strip().startswith(_PREFIX):
            return text.strip()
        if len(short) < _LEAST:
            raise Invalid(f"At least {_LEAST} characters of a draft's id are needed.", field="id")
        for status in ("pending", "any"):
            ids = [str(one["id"]) for one in self.all(Wanted(status))]
            found = [one for one in ids if one.removeprefix(_PREFIX).startswith(short) or one.endswith(short)]
            if len(found) > 1:
                raise Invalid(
                    f"{len(found)} drafts are called so: {', '.join(found[:5])}.", advice="Give more of the id."
                )
            if found:
                return found[0]
        raise NotFound(f"There is no review {text!r}.", advice="`memory-gateway review list` shows their ids.")

    def get(self, review_id: str) -> dict[str, Any]:
        """One draft with its text and what accepting it would change."""
        return self._source.get(review_id)

    def accept(self, review_id: str, *, text: str | None, reason: str | None, etag: str | None) -> dict[str, Any]:
        """Accept a draft. With an etag, only if it still is that draft."""
        return self._source.accept(review_id, _checked(AcceptReview, text=text, reason=reason), etag)

    def reject(self, review_id: str, *, reason: str | None, etag: str | None) -> dict[str, Any]:
        """Reject a draft."""
        return self._source.reject(review_id, _checked(RejectReview, reason=reason), etag)


class _Server:
    """A running server."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    def page(self, wanted: Wanted, limit: int, cursor: str | None) -> dict[str, Any]:
        asked = asdict(wanted) | {"limit": limit, "cursor": cursor}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._server.call("GET", f"/v1/reviews?{urlencode(given)}")

    def get(self, review_id: str) -> dict[str, Any]:
        return self._server.call("GET", _path(review_id))

    def accept(self, review_id: str, body: AcceptReview, etag: str | None) -> dict[str, Any]:
        return self._decide(review_id, "accept", body, etag)

    def reject(self, review_id: str, body: RejectReview, etag: str | None) -> dict[str, Any]:
        return self._decide(review_id, "reject", body, etag)

    def _decide(self, review_id: str, decision: str, body: BaseModel, etag: str | None) -> dict[str, Any]:
        headers = {"If-Match": f'"{etag}"'} if etag is not None else None
        sent = body.model_dump(mode="json", exclude_none=True)
        return self._server.call("POST", f"{_path(review_id)}/{decision}", json=sent, headers=headers)


class _Directory:
    """The data directory itself."""

    def __init__(self, gateway: Gateway) -> None:
        self._parts = gateway.parts

    def page(self, wanted: Wanted, limit: int, cursor: str | None) -> dict[str, Any]:
        from gateway.ledger.reviews import ReviewFilter
        from gateway.services import reviews

        asked = ReviewFilter(
            status=None if wanted.status == "any" else wanted.status,
            proposal=wanted.proposal,
            namespace=wanted.namespace,
        )
        return asdict(reviews.page(LOCAL_OPERATOR, self._parts, asked, limit=limit, cursor=cursor))

    def get(self, review_id: str) -> dict[str, Any]:
        from gateway.services import reviews

        return asdict(reviews.get(LOCAL_OPERATOR, self._parts, review_id))

    def accept(self, review_id: str, body: AcceptReview, etag: str | None) -> dict[str, Any]:
        from gateway.services import reviews

        done: Any = reviews.accept(LOCAL_OPERATOR, self._parts, review_id, body, etag=etag)
        return asdict(done)

    def reject(self, review_id: str, body: RejectReview, etag: str | None) -> dict[str, Any]:
        from gateway.services import reviews

        done: Any = reviews.reject(LOCAL_OPERATOR, self._parts, review_id, body, etag=etag)
        return asdict(done)


@contextmanager
def open_queue(settings: Settings) -> Generator[Queue]:
    """The drafts of a data directory, through its server where one runs.

    Raises:
        Busy: something holds the data directory that cannot be talked to.
    """
    size = min(200, settings.policy.max_page)
    server = running_server(settings)
    if server is not None:
        yield Queue(_Server(server), size)
        return
    from gateway.bootstrap import open_gateway

    gateway = open_gateway(settings)
    try:
        gateway.settle()
        yield Queue(_Directory(gateway), size)
        gateway.settle()
    finally:
        gateway.close()


def _checked(kind: type[_Body], **given: str | None) -> _Body:
    try:
        return kind.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise Invalid(f"`{name}` {first['msg'].removeprefix('Value error, ')}.", field=name) from None


def _path(review_id: str) -> str:
    return f"/v1/reviews/{quote(review_id, safe='')}"

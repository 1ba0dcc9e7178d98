"""The Litestar application: routes, errors, documentation that works without the internet."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files as package_files
from typing import Any

from litestar import Litestar, Response, Router
from litestar.config.app import AppConfig
from litestar.datastructures import State
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import SwaggerRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.static_files import create_static_files_router  # pyright: ignore[reportUnknownVariableType]

from gateway import __version__
from gateway.api import (
    archive,
    configs,
    context,
    events,
    forgetting,
    governance,
    history,
    identities,
    jobs,
    memories,
    operations,
    reviews,
    sessions,
    structured,
)
from gateway.api.headers import HostGuard, authenticated
from gateway.api.metrics import MeteredApp, Metrics
from gateway.api.pages.entry import PageState
from gateway.api.pages.rendering import page_headers
from gateway.api.pages.routes import pages
from gateway.api.problems import HANDLERS
from gateway.bootstrap import Gateway

_ASSETS = "/schema-assets"
_ROUTES = (
    memories.ROUTES,
    archive.ROUTES,
    structured.ROUTES,
    configs.ROUTES,
    reviews.ROUTES,
    context.ROUTES,
    history.ROUTES,
    sessions.ROUTES,
    identities.ROUTES,
    governance.ROUTES,
    operations.ROUTES,
    events.ROUTES,
    jobs.ROUTES,
    forgetting.ROUTES,
)


def create_app(gateway: Gateway, *, mounts: Sequence[Any] = (), lifespan: Sequence[Any] = ()) -> Litestar:
    """The application that serves one gateway."""
    settings = gateway.parts.settings
    allowed = frozenset({"localhost", settings.host.lower(), *(name.lower() for name in settings.allowed_hosts)})
    metrics = Metrics()

    def guarded(app: Any) -> Any:
        return HostGuard(app, allowed)

    def metered(app: Any) -> Any:
        return MeteredApp(app, metrics)

    return Litestar(
        route_handlers=[*map(_keyed, _ROUTES), *operations.OPEN_ROUTES, pages(), _assets(), *mounts],
        exception_handlers=HANDLERS,
        middleware=[guarded, metered],
        openapi_config=_openapi(),
        request_max_body_size=settings.policy.max_body_bytes,
        state=State({"gateway": gateway, "metrics": metrics, "pages": PageState()}),
        lifespan=list(lifespan),
        after_request=_name_request,
        before_send=[page_headers],
        on_app_init=[_quiet],
    )


def _keyed(routes: Sequence[Any]) -> Router:
    return Router("/", route_handlers=list(routes), guards=[authenticated])


async def _name_request(response: Response[Any]) -> Response[Any]:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _quiet(config: AppConfig) -> AppConfig:
    config.logging_config = None  # structlog is set up by the command line, once
    return config


def _openapi() -> OpenAPIConfig:
    favicon = "<link rel='icon' href='data:,'>"
    page = SwaggerRenderPlugin(
        js_url=f"{_ASSETS}/swagger_bundle.js",
        css_url=f"{_ASSETS}/swagger_style.css",
        standalone_preset_js_url=f"{_ASSETS}/swagger_preset.js",
        path="/",
        favicon=favicon,
    )
    return OpenAPIConfig(
        title="Memory Gateway",
        version=__version__,
        description="One long-term memory for many agents and people, kept as Markdown in an Obsidian vault.",
        path="/schema",
        render_plugins=[page],
        components=Components(security_schemes={"key": SecurityScheme(type="http", scheme="bearer")}),
        security=[{"key": []}],
        use_handler_docstrings=True,
    )


def _assets() -> Any:
    return create_static_files_router(path=_ASSETS, directories=[str(package_files("offapi"))], include_in_schema=False)

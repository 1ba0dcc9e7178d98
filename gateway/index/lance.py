"""LanceDB without the REST client that it imports and that is never used here: a third of the start of a command."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CLIENT = "lance_namespace_urllib3_client"


def defer_rest_client(name: str = _CLIENT) -> None:
    """Make `import` skip what the client's package does at import, until a name of the package itself is asked for.

    LanceDB takes the client's models only, and those are imported as ever; the package's own `__init__` builds several
    hundred pydantic validators for calls to a server (1.2 s of CPU, measured with LanceDB 0.40). Where the package is
    not installed or already imported, nothing is changed.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__dict__["__getattr__"] = _whole_at_first_use(package, spec)
    sys.modules[name] = package


def _whole_at_first_use(package: ModuleType, spec: ModuleSpec) -> Any:
    def attribute(name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)  # what import and inspection ask of every module
        package.__dict__.pop("__getattr__", None)
        assert spec.loader is not None
        spec.loader.exec_module(package)
        return getattr(package, name)

    return attribute

"""LanceDB is imported without the REST client that it never needs here; whoever wants the client still gets it."""

import subprocess
import sys

import pytest

APART = """
import sys
import gateway.index.table
heavy = [name for name in sys.modules if name.startswith("lance_namespace_urllib3_client.api")]
assert heavy == [], heavy
"""
WHOLE = """
import lance_namespace_urllib3_client as client
assert not hasattr(client, "__wrapped__"), "looking at it loads nothing"
assert "lance_namespace_urllib3_client.api" not in sys.modules
assert client.TableApi.__name__ == "TableApi"
from lance_namespace_urllib3_client import ApiClient
from lance_namespace_urllib3_client.api.data_api import DataApi
assert client.ApiClient is ApiClient
import lance_namespace
assert lance_namespace.ListTablesRequest is client.ListTablesRequest
"""


@pytest.mark.parametrize("more", ["", WHOLE], ids=["apart", "asked for"])
def test_the_rest_client_is_loaded_only_when_asked_for(more):
    done = subprocess.run([sys.executable, "-c", APART + more], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

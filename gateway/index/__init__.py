"""The search copy: chunks, tokens and vectors of the notes in LanceDB. Never the truth; one command rebuilds it.

Imports nothing heavy, so that the embedding child process starts without loading LanceDB.
"""

import os

from gateway.index.lance import defer_rest_client

# Read by LanceDB when it is imported: it warns on stderr about every table that it creates.
os.environ.setdefault("LANCEDB_LOG", "error")
# Before the first import of LanceDB, wherever that comes from.
defer_rest_client()

"""A child process that dies, as by kill -9, at a named point of a write: `dying.py <data dir> <op> <point>`.

`op` is `create`, `update`, `delete`, or `recover` to die while recovering from an earlier death.
"""

import os
import sys
from pathlib import Path

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.importer import recover, write
from gateway.index.store import Index
from gateway.ledger import journal, registry
from gateway.vault import files
from gateway.vault.history import History
from tests.faults import orders

DIED = 9
# point → (where, name, whether to die before or after)
POINTS = {
    "after the intent": [(write, "place", "before"), (recover, "place", "before")],
    "after staging": [
        (files, "exchange", "before"),
        (files, "rename_no_replace", "before"),
        (files, "_mode_of", "after"),
    ],
    "after the exchange": [
        (files, "exchange", "after"),
        (files, "rename_no_replace", "after"),
        (files, "_etag_at", "after"),
    ],
    "before settling": [(write, "settle", "before"), (recover, "settle", "before")],
    "while settling": [(journal, "settle", "after")],
    "after settling": [(write, "settle", "after"), (recover, "settle", "after")],
    "before the commit": [(History, "commit", "before")],
    "between commit and git's index": [(History, "_sync_index", "before")],
    "between commit and mark": [(History, "commit", "after")],
    "while marking": [(journal, "mark_committed", "after")],
    "before indexing": [(Index, "upsert", "before"), (Index, "delete", "before")],
    "between index and mark": [(registry, "mark_indexed", "before"), (registry, "settle_removals", "before")],
}


def die_at(point: str) -> None:
    for owner, name, when in POINTS[point]:
        setattr(owner, name, _dying(getattr(owner, name), when))


def _dying(real, when):
    def dying(*arguments, **named):
        if when == "before":
            os._exit(DIED)
        real(*arguments, **named)
        os._exit(DIED)

    return dying


def main() -> None:
    data_dir, op, point = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    settings = load_settings(data_dir=data_dir, **orders.SETTINGS)
    if op == "recover":
        die_at(point)
        gateway = open_gateway(settings)
    else:
        gateway = open_gateway(settings)
        gateway.settle()
        die_at(point)
        orders.write(gateway, op)
    gateway.parts.feed.feed()
    gateway.parts.committer.flush(everything=True)
    os._exit(0)


if __name__ == "__main__":
    main()

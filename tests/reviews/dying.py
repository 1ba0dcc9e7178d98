"""A child process that dies, as by kill -9, at a named point of a decision: `dying.py <data dir> <review id> <point>`.

With the review id `-` it dies while recovering from an earlier death.
"""

import os
import sys
from pathlib import Path

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.importer import drafts, write
from gateway.ledger import reviews
from gateway.services import reviews as service
from gateway.services.requests import AcceptReview, RejectReview
from gateway.skills import deciding
from tests.conftest import IMPATIENT
from tests.reviews.world import OWNER

DIED = 9
# point → (owner, name, whether to die before or after)
POINTS = {
    "before the plan": (reviews, "begin_decision", "before"),
    "after the plan": (drafts.DraftFiles, "carry_out", "before"),
    "after the draft was taken": (drafts.DraftFiles, "carry_out", "after"),
    "before the memory": (deciding, "_memories", "before"),
    "within the memory": (write, "settle", "before"),
    "after the memory": (deciding, "_memories", "after"),
    "before the draft is put away": (drafts.DraftFiles, "create", "before"),
    "after the draft was put away": (drafts.DraftFiles, "create", "after"),
    "while it is recorded": (reviews, "end_decision", "after"),
    "after all": (deciding, "_finish", "after"),
}


def die_at(point: str) -> None:
    owner, name, when = POINTS[point]
    real = getattr(owner, name)

    def dying(*arguments, **named):
        if when == "before":
            os._exit(DIED)
        real(*arguments, **named)
        os._exit(DIED)

    setattr(owner, name, dying)


def main() -> None:
    data_dir, review_id, decision, point = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    settings = load_settings(data_dir=data_dir, **IMPATIENT)
    if review_id == "-":
        die_at(point)
        open_gateway(settings).settle()
        os._exit(0)
    gateway = open_gateway(settings)
    gateway.settle()
    die_at(point)
    if decision == "accept":
        service.accept(OWNER, gateway.parts, review_id, AcceptReview.model_validate({}))
    else:
        service.reject(OWNER, gateway.parts, review_id, RejectReview.model_validate({}))
    os._exit(0)


if __name__ == "__main__":
    main()

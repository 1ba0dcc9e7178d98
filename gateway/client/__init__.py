"""What agents install to talk to a gateway. Imports nothing of the rest of the package, so the folder can be copied.

`MemoryGateway` blocks, `AsyncMemoryGateway` does not; both have the same methods. Writes carry an idempotency key, so
that a retry after a lost answer is done once. A write that a person must accept first answers `{"review": …}`:
`if "review" in answer` tells it apart.
"""

from .answers import (
    Committed,
    Context,
    Decision,
    Forgotten,
    GatewayProblem,
    Happened,
    InReview,
    Memory,
    Review,
    ReviewDetail,
    ReviewPage,
    ReviewReference,
    SearchAnswer,
    WriteAnswer,
    Written,
)
from .awaiting import AsyncMemoryGateway
from .blocking import MemoryGateway

__all__ = [
    "AsyncMemoryGateway",
    "Committed",
    "Context",
    "Decision",
    "Forgotten",
    "GatewayProblem",
    "Happened",
    "InReview",
    "Memory",
    "MemoryGateway",
    "Review",
    "ReviewDetail",
    "ReviewPage",
    "ReviewReference",
    "SearchAnswer",
    "WriteAnswer",
    "Written",
]

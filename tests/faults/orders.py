"""One write of each kind, as the crash tests and their dying children carry it out."""

from pathlib import Path

from gateway.bootstrap import Gateway
from gateway.importer.write import Order, minimal_answer
from gateway.ledger import idempotency, registry
from gateway.ledger.audit import AuditEntry
from gateway.ledger.idempotency import Claim, FirstAnswer
from gateway.ledger.journal import Actor

FOLDER = "Memories/LongTerm"
SETTINGS = {
    "embedding": {"provider": "none"},
    "git": {"quiet_seconds": 0},
    "watch": {"settle_seconds": 0, "absence_seconds": 0, "enabled": False},
}
ACTOR = Actor("agent", "writer", "writer@agents.memory.local", "agent:writer")
IDS = {"create": "mem_" + "1" * 26, "update": "mem_" + "2" * 26, "delete": "mem_" + "3" * 26}


def path_of(op: str) -> str:
    return f"{FOLDER}/to {op}.md"


def text(op: str, words: str) -> bytes:
    return f"---\nid: {IDS[op]}\n---\n{words}\n".encode()


def prepare(root: Path) -> None:
    """The notes that will be changed."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for op in ("update", "delete"):
        (root / path_of(op)).write_bytes(text(op, "as it was"))


def write(gateway: Gateway, op: str) -> FirstAnswer | None:
    """Carry out the write with an idempotency key; the first answer if it was done already."""
    claim = Claim("key_test", f"once-{op}", "hash")
    with gateway.parts.ledger.read() as tx:
        first = idempotency.recall(tx, claim)
        row = registry.note(tx, IDS[op])
    if first is not None:
        return first
    entry = AuditEntry(
        action=op,
        target_type="memory",
        target_id=IDS[op],
        namespace="user/owner/long_term",
        decision="allow",
        reason="t",
    )
    base = row.etag if row is not None and op != "create" else None
    data = None if op == "delete" else text(op, "as it shall be")
    answer = lambda after: (200, minimal_answer(op, after))  # noqa: E731
    order = Order(op, IDS[op], path_of(op), base, data, ACTOR, entry, False, claim, answer)
    gateway.parts.writes.write(order)
    return None

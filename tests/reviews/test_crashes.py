"""kill -9 at every point of a decision, and again during recovery: it is decided once, or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import AlreadyDecided
from gateway.ledger import journal, reviews
from gateway.services import reviews as service
from gateway.services.check import check
from gateway.services.requests import AcceptReview, RejectReview
from tests.importer.same_state import settle
from tests.nightly import NIGHTLY
from tests.reviews.dying import DIED, POINTS
from tests.reviews.world import OWNER, change, git, infer, know, retire, review_of

ROOT = Path(__file__).parents[2]
TELLING = ("after the draft was taken", "within the memory", "after the draft was put away")
KINDS = ("create", "update", "archive")
# A child process takes seconds: by day, the points of an update that differ, and one of the others each.
BY_DAY = {
    ("update", "accept"): ("after the plan", *TELLING, "after the memory", "while it is recorded"),
    ("create", "accept"): ("within the memory",),
    ("archive", "accept"): ("after the memory",),
    ("update", "reject"): ("after the draft was taken",),
}
SINGLE = [
    (kind, decision, point)
    for kind in KINDS
    for decision in ("accept", "reject")
    for point in POINTS
    if NIGHTLY or point in BY_DAY.get((kind, decision), ())
]
AGAIN = [(one, other) for one in TELLING for other in TELLING] if NIGHTLY else [(TELLING[0], TELLING[1])]


def die(data: Path, review_id: str, decision: str, point: str) -> int:
    command = [sys.executable, "-m", "tests.reviews.dying", str(data), review_id, decision, point]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.returncode in (DIED, 0), done.stderr.decode()
    return done.returncode


def prepare(opened, kind: str) -> tuple[str, str]:
    gateway = opened()
    settle(gateway)
    if kind == "create":
        review_id = infer(gateway, "The owner likes otters.")
    else:
        known = know(gateway, "The owner walks to work.")
        review_id = retire(gateway, known) if kind == "archive" else change(gateway, known, content="The owner cycles.")
    settle(gateway)
    memory_id = review_of(gateway, review_id).memory_id
    gateway.close()
    return review_id, memory_id


def assert_decided_once(opened, review_id: str, memory_id: str, kind: str, decision: str) -> None:
    """After recovery and a retry."""
    gateway = opened()
    settle(gateway)
    try:
        if decision == "accept":
            service.accept(OWNER, gateway.parts, review_id, AcceptReview.model_validate({}))
        else:
            service.reject(OWNER, gateway.parts, review_id, RejectReview.model_validate({}))
    except AlreadyDecided:
        pass
    settle(gateway)
    gateway.parts.writes.settle_spares(wait_ms=-10_000)
    root = gateway.parts.files.root
    assert list(root.glob("Reviews/Queue/*.md")) == []
    folder = "Accepted" if decision == "accept" else "Rejected"
    assert len(list(root.glob(f"Reviews/{folder}/*.md"))) == 1
    found = review_of(gateway, review_id)
    assert found.status == ("accepted" if decision == "accept" else "rejected")
    notes = [path.read_text("utf-8").rpartition("---\n")[2].strip() for path in root.glob("Memories/**/*.md")]
    before = [] if kind == "create" else ["The owner walks to work."]
    after = {"create": ["The owner likes otters."], "update": ["The owner cycles."], "archive": before}[kind]
    assert notes == (after if decision == "accept" else before)
    assert len(list(root.glob("Memories/Archived/*.md"))) == (kind == "archive" and decision == "accept")
    with gateway.parts.ledger.read() as tx:
        assert reviews.open_decisions(tx) == {}
        assert journal.open_intents(tx, "prepared") == []
        versions = journal.history(tx, memory_id)
        edges = reviews.edges_of(tx, memory_id)
    assert len(versions) == (kind != "create") + (decision == "accept")
    assert len(edges) == (decision == "accept")
    assert gateway.parts.files.spares() == []
    assert git(root, "status", "--porcelain") == ""
    settings = gateway.parts.settings
    gateway.close()
    assert check(settings, patient=False).findings == []


@pytest.mark.parametrize(("kind", "decision", "point"), SINGLE)
def test_a_decision_that_dies_anywhere_is_made_once(opened, tmp_path, kind, decision, point):
    review_id, memory_id = prepare(opened, kind)
    assert die(tmp_path / "data", review_id, decision, point) == DIED or point == "within the memory"
    assert_decided_once(opened, review_id, memory_id, kind, decision)


@pytest.mark.parametrize(("first", "second"), AGAIN)
def test_dying_again_while_recovering(opened, tmp_path, first, second):
    review_id, memory_id = prepare(opened, "update")
    assert die(tmp_path / "data", review_id, "accept", first) == DIED
    die(tmp_path / "data", "-", "accept", second)
    assert_decided_once(opened, review_id, memory_id, "update", "accept")


def test_a_draft_is_given_back_where_its_memory_changed_while_the_gateway_was_down(opened, tmp_path):
    review_id, memory_id = prepare(opened, "update")
    assert die(tmp_path / "data", review_id, "accept", "after the draft was taken") == DIED
    (note,) = (tmp_path / "data/vault/Memories/LongTerm").glob("*.md")
    note.write_text(note.read_text("utf-8") + "\nBy hand.\n", "utf-8")
    gateway = opened()
    settle(gateway)
    assert review_of(gateway, review_id).status == "pending"
    assert len(list(gateway.parts.files.root.glob("Reviews/Queue/*.md"))) == 1
    assert note.read_text("utf-8").endswith("By hand.\n")
    del memory_id

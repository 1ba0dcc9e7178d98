"""Every kind of proposal, accepted and rejected: merge, conflict, directive besides the plain ones."""

import pytest

from gateway.errors import DraftStale, Tombstoned
from gateway.ledger import registry, reviews, tombstones
from gateway.ledger.audit import AuditEntry
from gateway.services import reviews as service
from gateway.skills.export_to_obsidian import Proposal, Proposer, propose
from gateway.skills.import_from_obsidian import author_of
from tests.importer.same_state import settle
from tests.reviews.world import OWNER, change, infer, know, retire, review_of

ACCEPT, REJECT = service.AcceptReview.model_validate({}), service.RejectReview.model_validate({})
OWN = "user/owner/long_term"


@pytest.fixture
def gateway(opened):
    gateway = opened()
    settle(gateway)
    return gateway


def suggest(gateway, proposal: str, text: str, **fields) -> str:
    entry = AuditEntry("propose", "review", None, OWN, "allow", "test", None, None, None, "assistant")
    wanted = Proposal(proposal, fields.pop("namespace", OWN), text, "agent:assistant", "They say the same.", **fields)
    with gateway.parts.importer.lock:
        return propose(gateway.parts, wanted, Proposer(author_of("agent:assistant"), entry)).review_id


def row(gateway, note_id):
    with gateway.parts.ledger.read() as tx:
        return registry.note(tx, note_id)


def text_of(gateway, note_id) -> str:
    return (gateway.parts.files.root / row(gateway, note_id).path).read_text("utf-8").rpartition("---\n")[2].strip()


def test_a_merge_keeps_one_and_retires_the_others(gateway):
    kept, one, two = (know(gateway, f"The owner likes tea, version {number}.") for number in range(3))
    review_id = suggest(
        gateway, "merge", "The owner likes tea.", target_id=kept, merges=(one, two), evidence=(one, two)
    )
    draft = (gateway.parts.files.root / review_of(gateway, review_id).path).read_text("utf-8")
    assert draft.count("[[Memories/LongTerm/") == 3, "the memory and both that it takes in"
    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    settle(gateway)
    assert text_of(gateway, kept) == "The owner likes tea."
    assert [row(gateway, other).status for other in (kept, one, two)] == ["active", "archived", "archived"]
    assert text_of(gateway, one) == "The owner likes tea, version 1.", "retired, not changed"
    with gateway.parts.ledger.read() as tx:
        edges = {(edge.parent, edge.relation) for edge in reviews.edges_of(tx, kept)}
    assert edges == {(review_id, "accepted"), (one, "merged"), (two, "merged"), (one, "evidence"), (two, "evidence")}


def test_a_merge_is_stale_when_any_of_its_notes_changed(gateway):
    kept, other = know(gateway, "Tea, one."), know(gateway, "Tea, two.")
    review_id = suggest(gateway, "merge", "Tea.", target_id=kept, merges=(other,))
    note = gateway.parts.files.root / row(gateway, other).path
    note.write_text(note.read_text("utf-8") + "\nBy hand.\n", "utf-8")
    with pytest.raises(DraftStale):
        service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    assert text_of(gateway, kept) == "Tea, one."
    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    assert text_of(gateway, kept) == "Tea."
    assert row(gateway, other).status == "archived"


def test_a_conflict_shows_both_sides_and_keeps_what_the_person_writes(gateway):
    known = know(gateway, "The owner drinks coffee.")
    review_id = suggest(gateway, "conflict", "The owner does not drink coffee.", target_id=known)
    draft = (gateway.parts.files.root / review_of(gateway, review_id).path).read_text("utf-8")
    assert "memory/conflict" in draft
    assert "> -The owner drinks coffee." in draft
    assert "> +The owner does not drink coffee." in draft
    settled = service.AcceptReview.model_validate({"text": "The owner drank coffee until 2026."})
    service.accept(OWNER, gateway.parts, review_id, settled)
    assert text_of(gateway, known) == "The owner drank coffee until 2026."
    assert row(gateway, known).tags == []


def test_a_directive_becomes_one_only_by_a_person(gateway):
    namespace = "user/owner/directives"
    properties = {"type": "directive", "summary": "Short answers"}
    review_id = suggest(gateway, "directive", "Answer in short.", namespace=namespace, properties=properties)
    settle(gateway)
    folder = gateway.parts.files.root / "Users/owner/Directives"
    assert not folder.exists()
    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    settle(gateway)
    (note,) = folder.glob("*.md")
    assert note.read_text("utf-8").endswith("Answer in short.\n")
    assert row(gateway, review_of(gateway, review_id).memory_id).namespace == namespace


def test_each_kind_of_rejected_proposal_stays_away(gateway):
    known = know(gateway, "The owner walks to work.")
    asked = {
        "create": lambda: infer(gateway, "The owner likes otters."),
        "update": lambda: change(gateway, known, content="The owner cycles to work."),
        "archive": lambda: retire(gateway, known),
    }
    for ask in asked.values():
        service.reject(OWNER, gateway.parts, ask(), REJECT)
        with pytest.raises(Tombstoned):
            ask()
    with gateway.parts.ledger.read() as tx:
        assert not tombstones.buried(tx, OWN, content_hash=row(gateway, known).content_hash)
    note = gateway.parts.files.root / row(gateway, known).path
    note.write_text(note.read_text("utf-8") + "\nNot any more.\n", "utf-8")
    settle(gateway)
    assert review_of(gateway, asked["archive"]()).status == "pending", "the memory changed: it may be asked again"


def test_what_is_there_already_when_a_draft_is_accepted_is_not_doubled(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    known = know(gateway, "The owner likes otters.")
    done = service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    assert done.memory_id == known
    settle(gateway)
    assert len(list((gateway.parts.files.root / "Memories/LongTerm").glob("*.md"))) == 1

"""What a person does to drafts in Obsidian: edit, decide, move, copy, break, delete; and all of it at once."""

import random
import shutil
import threading
import time

import pytest

from gateway.errors import AlreadyDecided, BadNote, ChangedElsewhere, Conflict, DraftStale
from gateway.ledger import problems, registry, reviews
from gateway.services import reviews as service
from gateway.services.requests import AcceptReview
from tests.importer.same_state import settle
from tests.reviews.world import OWNER, change, git, infer, know, review_of, waiting

ACCEPT = AcceptReview.model_validate({})


@pytest.fixture
def gateway(opened):
    gateway = opened()
    settle(gateway)
    return gateway


def file_of(gateway, review_id):
    return gateway.parts.files.root / review_of(gateway, review_id).path


def kinds(gateway) -> dict[str, list[str]]:
    with gateway.parts.ledger.read() as tx:
        found: dict[str, list[str]] = {}
        for row in problems.listed(tx):
            found.setdefault(row.path.rpartition("/")[2], []).append(row.kind)
    return found


def memories_of(gateway) -> list[str]:
    root = gateway.parts.files.root
    return sorted(
        path.read_text("utf-8").rpartition("---\n")[2].strip() for path in root.glob("Memories/LongTerm/*.md")
    )


def set_decision(file, word: str) -> None:
    file.write_text(file.read_text("utf-8").replace("\ndecision:\n", f"\ndecision: {word}\n", 1), "utf-8")


@pytest.mark.parametrize("word", ["accept", "Accept", '"accept"', " accepted ", "接受"])
def test_a_person_may_write_accept_as_they_like(gateway, word):
    review_id = infer(gateway, "The owner likes otters.")
    set_decision(file_of(gateway, review_id), word)
    settle(gateway)
    assert memories_of(gateway) == ["The owner likes otters."]
    assert word.strip() in file_of(gateway, review_id).read_text("utf-8"), "what the person typed stays"


def test_a_word_that_is_no_decision_waits_and_says_so(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    set_decision(file, "maybe")
    settle(gateway)
    assert kinds(gateway)[file.name] == ["broken-draft"]
    assert len(waiting(gateway)) == 1
    file.write_text(file.read_text("utf-8").replace("decision: maybe", "decision: accept"), "utf-8")
    settle(gateway)
    assert kinds(gateway) == {}
    assert memories_of(gateway) == ["The owner likes otters."]


def test_a_draft_with_broken_properties_waits_until_they_are_mended(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    good = file.read_text("utf-8")
    file.write_text(good.replace("proposal: create", "proposal: [create"), "utf-8")
    settle(gateway)
    assert kinds(gateway)[file.name] == ["broken-draft"]
    assert file.read_text("utf-8").count("proposal: [create") == 1, "it is left as it is"
    with pytest.raises(Exception, match=r"YAML|propert|mend|read") as refused:
        service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    assert refused.value.line
    file.write_text(good.replace("\ndecision:\n", "\ndecision: accept\n"), "utf-8")
    settle(gateway)
    assert kinds(gateway) == {}
    assert memories_of(gateway) == ["The owner likes otters."]


def test_moved_and_decided_at_once(gateway):
    agree, contradict = infer(gateway, "The owner likes otters."), infer(gateway, "The owner likes newts.")
    for review_id, word in ((agree, "accept"), (contradict, "reject")):
        file = file_of(gateway, review_id)
        set_decision(file, word)
        file.rename(file.parents[1] / "Accepted" / file.name)
    settle(gateway)
    assert memories_of(gateway) == ["The owner likes otters."]
    assert review_of(gateway, agree).status == "accepted"
    assert review_of(gateway, contradict).status == "pending"
    assert list(kinds(gateway).values()) == [["contradictory-decision"]]
    file = file_of(gateway, contradict)
    file.rename(file.parents[1] / "Rejected" / file.name)
    settle(gateway)
    assert review_of(gateway, contradict).status == "rejected"
    assert kinds(gateway) == {}


def test_a_deleted_draft_is_set_aside_and_comes_back_with_its_file(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    kept = file.read_bytes()
    file.unlink()
    settle(gateway)
    assert review_of(gateway, review_id).status == "withdrawn"
    assert memories_of(gateway) == []
    with pytest.raises(Conflict, match="gone"):
        service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    file.write_bytes(kept)
    settle(gateway)
    assert review_of(gateway, review_id).status == "pending"
    file.unlink()
    settle(gateway)
    again = infer(gateway, "The owner likes otters.")
    assert again != review_id, "nothing stands against proposing it again"


def test_a_copy_of_a_draft_decides_nothing(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    copy = file.parents[1] / "Accepted" / file.name
    shutil.copy(file, copy)
    settle(gateway)
    assert review_of(gateway, review_id).status == "pending"
    assert memories_of(gateway) == []
    assert "duplicate-draft" in [one for found in kinds(gateway).values() for one in found]
    copy.unlink()
    settle(gateway)
    assert kinds(gateway) == {}


def test_a_late_save_into_a_decided_draft_is_kept_and_said(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    text = file.read_text("utf-8")
    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    file.write_text(text + "\nOne more thing.\n", "utf-8")
    settle(gateway)
    assert kinds(gateway)[file.name] == ["already-decided"]
    assert "One more thing." in file.read_text("utf-8")
    assert memories_of(gateway) == ["The owner likes otters."]
    file.unlink()
    settle(gateway)
    assert kinds(gateway) == {}
    assert review_of(gateway, review_id).status == "accepted"


def test_decided_drafts_may_be_edited_moved_and_deleted(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
    file = file_of(gateway, review_id)
    file.write_text(file.read_text("utf-8") + "\nA remark.\n", "utf-8")
    settle(gateway)
    folder = file.parent / "2026"
    folder.mkdir()
    file.rename(folder / file.name)
    settle(gateway)
    assert review_of(gateway, review_id).path == f"Reviews/Accepted/2026/{file.name}"
    (folder / file.name).unlink()
    settle(gateway)
    assert review_of(gateway, review_id).status == "accepted"
    assert memories_of(gateway) == ["The owner likes otters."]


def test_what_a_draft_claims_of_itself_changes_nothing(gateway):
    review_id = infer(gateway, "The owner likes otters.")
    file = file_of(gateway, review_id)
    text = file.read_text("utf-8").replace("user/owner/long_term", "global/public")
    file.write_text(text.replace("proposal: create", "proposal: directive"), "utf-8")
    settle(gateway)
    assert kinds(gateway)[file.name] == ["foreign-claim", "foreign-claim"]
    set_decision(file, "accept")
    settle(gateway)
    assert memories_of(gateway) == ["The owner likes otters."]
    assert not list((gateway.parts.files.root / "Global").iterdir())


def test_a_note_that_is_no_draft_does_not_stay_unnoticed_in_the_queue(gateway):
    (gateway.parts.files.root / "Reviews/Queue/own.md").write_text("My own note.\n", "utf-8")
    settle(gateway)
    assert kinds(gateway) == {"own.md": ["no-draft"]}
    (gateway.parts.files.root / "Reviews/Queue/own.md").unlink()
    settle(gateway)
    assert kinds(gateway) == {}


def test_drafts_and_their_decisions_survive_the_loss_of_the_ledger(gateway, opened, tmp_path):
    kept = {word: infer(gateway, f"The owner likes {word}.") for word in ("otters", "newts", "toads")}
    known = know(gateway, "The owner walks to work.")
    update = change(gateway, known, content="The owner cycles to work.")
    service.accept(OWNER, gateway.parts, kept["otters"], ACCEPT)
    settle(gateway)
    gateway.close()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (tmp_path / "data" / name).unlink(missing_ok=True)
    gateway = opened()
    settle(gateway)
    assert {one.id for one in waiting(gateway)} == {kept["newts"], kept["toads"], update}
    assert review_of(gateway, kept["otters"]).status == "accepted"
    file = file_of(gateway, kept["newts"])
    file.rename(file.parents[1] / "Accepted" / file.name)
    service.accept(OWNER, gateway.parts, update, ACCEPT)
    settle(gateway)
    assert memories_of(gateway) == ["The owner cycles to work.", "The owner likes newts.", "The owner likes otters."]
    assert [one.id for one in waiting(gateway)] == [kept["toads"]]


def test_a_draft_that_is_edited_while_it_is_accepted_loses_nothing(gateway, tmp_path):
    """An editor saves in place and by rename while the API accepts: each text ends in the memory or in a named file."""
    stop = threading.Event()
    queue = gateway.parts.files.root / "Reviews/Queue"
    saved: dict[str, set[str]] = {}
    chance = random.Random(7)

    def edit() -> None:
        number = 0
        while not stop.is_set():
            for file in list(queue.glob("*.md")):
                number += 1
                try:
                    text = file.read_text("utf-8")
                except (FileNotFoundError, UnicodeDecodeError):
                    continue
                if not text.endswith("\n"):
                    continue
                mark = f"edit {number}"
                if chance.random() < 0.5:
                    temporary = tmp_path / "temporary"
                    temporary.write_text(f"{text}{mark}\n", "utf-8")
                    try:
                        temporary.rename(file)
                    except FileNotFoundError:
                        continue
                elif file.exists():
                    file.write_text(f"{text}{mark}\n", "utf-8")
                else:
                    continue
                saved.setdefault(text.partition("review_id: ")[2][:24], set()).add(mark)
            time.sleep(0.001)

    editor = threading.Thread(target=edit)
    drafts = [infer(gateway, f"Guess {number} about rivers.") for number in range(25)]
    editor.start()
    try:
        for review_id in drafts:
            for _ in range(50):
                try:
                    service.accept(OWNER, gateway.parts, review_id, ACCEPT)
                    break
                except (ChangedElsewhere, DraftStale, BadNote):  # BadNote: caught in the middle of a save
                    continue
                except AlreadyDecided:
                    break
    finally:
        stop.set()
        editor.join()
    for _ in range(3):
        settle(gateway)
    gateway.parts.writes.settle_spares(wait_ms=-10_000)
    settle(gateway)
    root = gateway.parts.files.root
    everywhere = "".join(path.read_text("utf-8") for path in root.rglob("*.md")) + git(root, "log", "--all", "-p")
    marks = {mark for found in saved.values() for mark in found}
    assert len(marks) > 50
    assert [mark for mark in marks if f"{mark}\n" not in everywhere] == []
    notes = list(root.glob("Memories/LongTerm/*.md"))
    with gateway.parts.ledger.read() as tx:
        assert reviews.open_decisions(tx) == {}
        known = registry.notes_by_path(tx, [path.relative_to(root).as_posix() for path in notes])
        accepted = [one for one in drafts if reviews.review(tx, one).status == "accepted"]
    assert len({row.note_id for row in known.values()}) == len(notes) == len(accepted)
    assert git(root, "status", "--porcelain", "--", "Memories") == ""

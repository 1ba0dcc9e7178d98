"""After a purge no plaintext of a forgotten memory is left anywhere: searched byte by byte, packed files unpacked."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.errors import CannotPurge, NotAllowed, NotFound
from gateway.ledger import erasure, jobs, journal
from gateway.services import backups, feedback, forgetting, memories, purging, rebuild, sessions
from gateway.services.check import check
from gateway.services.purging import PurgeRequest
from gateway.services.requests import CommitSession, Feedback, MemoryPatch, NewEpisode, NewMemory
from gateway.services.sync import sync
from gateway.vault.rewrite import Rewriting
from gateway.workers import jobs as worker
from tests.forgetting.test_life import Died, dying
from tests.forgetting.world import ANY, forget, know, recalled
from tests.reviews.world import AGENT, OWNER, git, infer

SECRET = "zanzibarcanary"
TEXT = f"The {SECRET} sleeps under the old bridge."
KEPT = "The lighthouse keeper counts ships at dawn."


def places_with(folder: Path, word: str) -> list[str]:
    """Files in which a word stands, in any case, raw or compressed."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            texts = (str(path).encode(), data, _packed(data))
            if any(word.encode() in text.lower() for text in texts):
                found.append(str(path.relative_to(folder)))
    return found


def _packed(data: bytes) -> bytes:
    try:
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else zlib.decompress(data)
    except (OSError, zlib.error, EOFError):
        return b""


def in_git(root: Path, word: str) -> list[str]:
    """Objects of the repository, reachable or not, that hold a word."""
    found = []
    for line in git(root, "cat-file", "--batch-all-objects", "--batch-check").splitlines():
        sha, kind, _ = line.split()
        if word in git(root, "cat-file", "-p", sha).lower():
            found.append(f"{kind} {sha}")
    return found


def traced(gateway) -> str:
    """A memory with a trace in every place there is; returns its id."""
    parts = gateway.parts
    infer(gateway, TEXT)
    note_id = know(gateway, TEXT, summary=f"{SECRET} summary")
    know(gateway, KEPT)
    gateway.settle()
    memories.update(OWNER, parts, note_id, MemoryPatch.model_validate({"content": f"{TEXT} Mostly."}), ANY)
    memories.update(OWNER, parts, note_id, MemoryPatch.model_validate({"content": TEXT}), ANY)
    memories.update(AGENT, parts, note_id, MemoryPatch.model_validate({"content": f"{TEXT} Or not."}), ANY)
    judged = Feedback.model_validate({"feedback": "useful", "comment": f"{SECRET} is right"})
    feedback.give(OWNER, parts, note_id, judged)
    said = NewEpisode.model_validate({"session_id": "s", "content": f"User: {TEXT}\nUser: I like tea."})
    sessions.add_episode(AGENT, parts, said)
    sessions.commit_session(AGENT, parts, "s", CommitSession.model_validate({"promote": True}), None)
    gateway.settle()
    assert recalled(gateway, SECRET) is not None
    return note_id


def purge(gateway, **fields) -> jobs.Job:
    job = purging.order(LOCAL_OPERATOR, gateway.parts, PurgeRequest.model_validate(fields))
    worker.run(gateway.parts)
    with gateway.parts.ledger.read() as tx:
        found = jobs.job(tx, job.id)
    assert found is not None
    return found


def test_nothing_is_left_after_a_purge(opened, tmp_path, capfd):
    gateway = opened()
    note_id = traced(gateway)
    root, data = gateway.parts.files.root, tmp_path / "data"
    done = forgetting.forget(OWNER, gateway.parts, note_id, ANY)
    states = {one.place: one.state for one in done.erasure}
    assert states["file"] == states["feedback"] == states["drafts"] == "done"
    assert states["git"] == forgetting.IN_GIT
    gateway.settle()
    assert in_git(root, SECRET), "the test would show nothing"
    job = purge(gateway)
    assert (job.status, job.error) == ("done", None)
    assert in_git(root, SECRET) == []
    gateway.settle()
    report = {one.place: one.state for one in forgetting.erasure_of(OWNER, gateway.parts, note_id).erasure}
    assert set(report.values()) == {"done"}
    archive = tmp_path / "later.tar.gz"
    backups.backup(gateway.parts.settings, archive)
    gateway.close()
    assert places_with(data, SECRET) == []
    with tarfile.open(archive) as opened_archive:
        opened_archive.extractall(tmp_path / "unpacked", filter="data")
    assert places_with(tmp_path / "unpacked", SECRET) == []
    assert SECRET not in "".join(capfd.readouterr()).lower()


def test_what_was_not_forgotten_keeps_its_bytes_and_history(opened):
    gateway = opened()
    kept = know(gateway, KEPT)
    person = gateway.parts.files.root / "Memories/LongTerm/person.md"
    person.write_bytes(b"---\r\nid:   odd\r\n---\r\nA person's own \xc3\xa9 text\r\n")
    gateway.settle()
    note_id = traced(gateway)
    versions = [one.etag for one in _versions(gateway, kept)]
    before = {path.name: path.read_bytes() for path in gateway.parts.files.root.rglob("*.md")}
    forget(gateway, note_id)
    gateway.settle()
    status = git(gateway.parts.files.root, "status", "--porcelain")
    assert purge(gateway).status == "done"
    assert git(gateway.parts.files.root, "status", "--porcelain") == status
    after = {path.name: path.read_bytes() for path in gateway.parts.files.root.rglob("*.md")}
    assert {name: data for name, data in after.items() if name != "Problems.md"}.items() <= before.items()
    assert person.name in after
    kept_versions = _versions(gateway, kept)
    assert [one.etag for one in kept_versions] == versions
    for one in kept_versions:
        assert one.sha is not None
        assert gateway.parts.history.show(one.sha, one.path) is not None
    know(gateway, "Written after the purge.")
    gateway.settle()
    assert check(gateway.parts.settings, patient=True).findings == []
    assert git(gateway.parts.files.root, "fsck", "--full") is not None


def test_a_purge_is_refused_while_a_remote_has_it(opened, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    gateway = opened("data", git={"quiet_seconds": 0, "remote": "origin"})
    root = gateway.parts.files.root
    git(root, "remote", "add", "origin", str(bare))
    note_id = traced(gateway)
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    forget(gateway, note_id)
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    head = git(root, "rev-parse", "HEAD")
    with pytest.raises(CannotPurge, match="remote"):
        purge(gateway)
    assert git(root, "rev-parse", "HEAD") == head
    assert purge(gateway, despite_remote=True).status == "done"
    git(bare, "reflog", "expire", "--expire=now", "--all")
    git(bare, "gc", "--quiet", "--prune=now")
    assert in_git(root, SECRET) == []
    assert in_git(bare, SECRET) == []
    know(gateway, "Written after the purge.")
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    assert in_git(root, SECRET) == in_git(bare, SECRET) == []
    assert git(root, "rev-parse", "HEAD") == git(bare, "rev-parse", "main")


def test_a_remote_that_refuses_leaves_everything_as_it_was(opened, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    gateway = opened("data", git={"quiet_seconds": 0, "remote": "origin"})
    root = gateway.parts.files.root
    git(root, "remote", "add", "origin", str(bare))
    note_id = traced(gateway)
    forget(gateway, note_id)
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    git(bare, "config", "receive.denyNonFastForwards", "true")
    head = git(root, "rev-parse", "HEAD")
    job = purge(gateway, despite_remote=True)
    assert job.status == "failed"
    assert job.error
    assert git(root, "rev-parse", "HEAD") == head
    know(gateway, "Written after the refusal.")
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    assert git(root, "rev-parse", "HEAD") == git(bare, "rev-parse", "main")


def test_a_purge_waits_for_what_a_person_would_lose(opened):
    gateway = opened()
    note_id = traced(gateway)
    forget(gateway, note_id)
    gateway.settle()
    root = gateway.parts.files.root
    (root / "Home.md").write_text("changed", "utf-8")
    git(root, "stash")
    with pytest.raises(CannotPurge, match="stash"):
        purge(gateway)
    git(root, "stash", "pop")
    git(root, "stash", "list")
    assert purge(gateway).status == "done"
    assert (root / "Home.md").read_text("utf-8") == "changed"


def test_only_administrators_purge_and_only_what_was_forgotten(opened):
    gateway = opened()
    note_id = know(gateway, KEPT)
    with pytest.raises(NotAllowed):
        purging.order(OWNER, gateway.parts, PurgeRequest.model_validate({}))
    with pytest.raises(NotFound):
        purging.order(LOCAL_OPERATOR, gateway.parts, PurgeRequest.model_validate({"memory_ids": [note_id]}))


def test_another_memory_at_the_same_path_keeps_its_history(opened):
    gateway = opened()
    root = gateway.parts.files.root
    note = root / "Memories/LongTerm/place.md"
    note.write_text("---\nid: first\n---\nThe first memory here.\n", "utf-8")
    gateway.settle()
    note.unlink()
    gateway.settle()
    note.write_text(f"---\nid: second\n---\n{TEXT}\n", "utf-8")
    gateway.settle()
    forget(gateway, "second")
    gateway.settle()
    assert purge(gateway).status == "done"
    assert in_git(root, SECRET) == []
    assert in_git(root, "the first memory here")
    assert not note.exists()
    assert git(root, "ls-tree", "-r", "--name-only", "HEAD", "Memories") == ""


def _versions(gateway, note_id: str):
    with gateway.parts.ledger.read() as tx:
        return journal.history(tx, note_id)


def test_words_of_a_new_memory(opened):
    """The purge of one memory takes nothing from another that says the same in another namespace."""
    gateway = opened()
    note_id = traced(gateway)
    made = memories.create(
        AGENT, gateway.parts, NewMemory.model_validate({"content": TEXT, "namespace": "agent/assistant/memory"})
    )
    gateway.settle()
    forget(gateway, note_id)
    gateway.settle()
    assert purge(gateway).status == "done"
    gateway.settle()
    assert memories.get(AGENT, gateway.parts, made.id).content.strip() == TEXT
    assert gateway.parts.history.show(_versions(gateway, made.id)[0].sha, made.path) is not None


@pytest.mark.parametrize(
    ("owner", "name", "when"),
    [
        (Rewriting, "without", "before"),
        (Rewriting, "without", "after"),
        (erasure, "follow_commits", "after"),
        (Rewriting, "move", "before"),
        (Rewriting, "move", "after"),
        (erasure, "purged", "before"),
        (Rewriting, "forget_old", "before"),
        (Rewriting, "forget_old", "after"),
        (rebuild, "rebuild", "before"),
        (jobs, "finish", "before"),
    ],
)
def test_a_purge_goes_on_after_a_crash(opened, owner, name, when):
    gateway = opened()
    kept = know(gateway, KEPT)
    note_id = traced(gateway)
    forget(gateway, note_id)
    gateway.settle()
    with pytest.raises(Died), dying(owner, name, when):
        purge(gateway)
    know(gateway, "Written before it goes on.")  # whoever commits in between loses nothing
    gateway.settle()
    assert worker.run(gateway.parts) == 1
    gateway.settle()
    root = gateway.parts.files.root
    assert in_git(root, SECRET) == []
    assert git(root, "for-each-ref", "refs/purge") == ""
    assert git(root, "status", "--porcelain") == ""
    for one in _versions(gateway, kept):
        assert gateway.parts.history.show(one.sha, one.path) is not None
    assert "Written before it goes on" in git(root, "log", "-p", "--all")
    assert check(gateway.parts.settings, patient=True).findings == []
    report = forgetting.erasure_of(OWNER, gateway.parts, note_id).erasure
    assert {one.state for one in report} == {"done"}

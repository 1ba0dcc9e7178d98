"""Review branches and the sync with a remote: what people do with git, and what git does to the gateway."""

import shutil

import pytest

from gateway.access.principal import LOCAL_OPERATOR
from gateway.errors import GitTrouble, RemoteRewritten
from gateway.ledger import problems, registry
from gateway.services import reviews as service
from gateway.services.check import check
from gateway.services.requests import AcceptReview
from gateway.services.sync import sync
from tests.conftest import IMPATIENT
from tests.importer.same_state import settle
from tests.nightly import NIGHTLY
from tests.reviews.world import OWNER, change, git, infer, know, retire, review_of, waiting

BRANCH = {"review": {"mode": "branch"}}
SYNCED = BRANCH | {"git": IMPATIENT["git"] | {"remote": "origin"}}
ACCEPT = AcceptReview.model_validate({})


@pytest.fixture
def gateway(opened):
    gateway = opened(**BRANCH)
    settle(gateway)
    return gateway


@pytest.fixture
def synced(opened, tmp_path):
    """A gateway, its bare remote, and a person's clone."""
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "bare.git")
    gateway = opened(**SYNCED)
    settle(gateway)
    git(gateway.parts.files.root, "remote", "add", "origin", str(tmp_path / "bare.git"))
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    git(tmp_path, "clone", "--quiet", str(tmp_path / "bare.git"), "clone")
    return gateway, tmp_path / "bare.git", tmp_path / "clone"


def again(gateway, **options):
    return sync(LOCAL_OPERATOR, gateway.parts, gateway.branches, **options)


def kinds(gateway) -> set[str]:
    with gateway.parts.ledger.read() as tx:
        return {row.kind for row in problems.listed(tx)}


def clean(gateway) -> None:
    settle(gateway)
    assert git(gateway.parts.files.root, "status", "--porcelain") == ""
    settings = gateway.parts.settings
    gateway.close()
    assert check(settings, patient=False).findings == []


def test_a_branch_shows_the_change_itself_with_its_trailers(gateway):
    root = gateway.parts.files.root
    known = know(gateway, "The owner walks to work.", summary="Way to work")
    drafts = {
        "A": infer(gateway, "The owner likes otters."),
        "M": change(gateway, known, content="The owner cycles to work."),
    }
    settle(gateway)
    for letter, review_id in drafts.items():
        branch = f"review/{review_id}"
        assert git(root, "rev-list", "--count", f"main..{branch}").strip() == "1"
        changed = git(root, "diff", "--name-status", f"main...{branch}").split("\t")
        assert changed[0] == letter
        assert changed[1].startswith("Memories/LongTerm/")
        message = git(root, "log", "-1", "--format=%an%n%B", branch)
        assert message.startswith("assistant\n")
        for trailer in ("Memory-Id: mem_", f"Review-Id: {review_id}", "Proposed-By: agent:assistant"):
            assert f"\n{trailer}" in message
    diff = git(root, "diff", f"main...review/{drafts['M']}")
    assert "-The owner walks to work." in diff
    assert "+The owner cycles to work." in diff
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_follows_its_draft(gateway):
    root = gateway.parts.files.root
    review_id = infer(gateway, "The owner likes otters.")
    settle(gateway)
    first = git(root, "rev-parse", f"review/{review_id}")
    file = root / review_of(gateway, review_id).path
    file.write_text(file.read_text("utf-8").replace("likes otters", "loves otters"), "utf-8")
    settle(gateway)
    assert git(root, "rev-parse", f"review/{review_id}") != first
    assert "loves otters" in git(root, "show", f"review/{review_id}")
    assert git(root, "rev-list", "--count", f"main..review/{review_id}").strip() == "1"


def test_a_branch_with_somebody_elses_commits_is_left_alone(gateway, tmp_path):
    root = gateway.parts.files.root
    review_id = infer(gateway, "The owner likes otters.")
    settle(gateway)
    git(root, "worktree", "add", "--quiet", str(tmp_path / "tree"), f"review/{review_id}")
    (note,) = (tmp_path / "tree/Memories/LongTerm").glob("*.md")
    note.write_text(note.read_text("utf-8") + "\nBy a person.\n", "utf-8")
    git(tmp_path / "tree", "commit", "--quiet", "--all", "--message", "Better")
    theirs = git(root, "rev-parse", f"review/{review_id}")
    git(root, "worktree", "remove", str(tmp_path / "tree"))
    file = root / review_of(gateway, review_id).path
    file.write_text(file.read_text("utf-8").replace("likes otters", "loves otters"), "utf-8")
    settle(gateway)
    assert git(root, "rev-parse", f"review/{review_id}") == theirs
    service.reject(OWNER, gateway.parts, review_id, service.RejectReview.model_validate({}))
    settle(gateway)
    assert git(root, "for-each-ref", "refs/heads/review/") == ""
    assert theirs.strip() in git(root, "for-each-ref", "refs/rescue/"), "their commits stay reachable"


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_every_way_of_merging_accepts(gateway, how, tmp_path):
    root = gateway.parts.files.root
    review_id = infer(gateway, "The owner likes otters.")
    settle(gateway)
    git(tmp_path, "clone", "--quiet", str(root), "clone")
    clone = tmp_path / "clone"
    (clone / "unrelated.txt").write_text("x")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "Something else")
    branch = f"origin/review/{review_id}"
    if how == "merge":
        git(clone, "merge", "--quiet", "--no-ff", "--no-edit", branch)
    elif how == "squash":
        message = git(clone, "log", "-1", "--format=%B", branch)
        git(clone, "merge", "--quiet", "--squash", branch)
        git(clone, "commit", "--quiet", "--message", f"As a forge squashes (#1)\n\n{message.partition(chr(10) * 2)[2]}")
    else:
        git(clone, "cherry-pick", branch)
    git(root, "pull", "--quiet", "--no-rebase", "--no-edit", str(clone), "main")
    settle(gateway)
    found = review_of(gateway, review_id)
    assert (found.status, found.decided_via) == ("accepted", "git")
    assert git(root, "for-each-ref", "refs/heads/review/") == ""
    clean(gateway)


def test_many_branches_that_vanish_at_once_reject_nothing(gateway):
    root = gateway.parts.files.root
    for number in range(25):
        infer(gateway, f"The owner likes animal {number}.")
    settle(gateway)
    for ref in git(root, "for-each-ref", "--format=%(refname)", "refs/heads/review/").split():
        git(root, "update-ref", "-d", ref)
    gateway.branches.look()
    assert "branches-gone" in kinds(gateway)
    assert len(waiting(gateway)) == 25
    settle(gateway)
    assert len(git(root, "for-each-ref", "refs/heads/review/").splitlines()) == 25, "they are made again"


def test_hundreds_of_drafts_accepted_by_one_merge(gateway, tmp_path):
    root = gateway.parts.files.root
    many = 500 if NIGHTLY else 60
    drafts = [infer(gateway, f"The owner likes animal number {number}.") for number in range(many)]
    settle(gateway)
    git(tmp_path, "clone", "--quiet", str(root), "clone")
    clone = tmp_path / "clone"
    for start in range(0, many, 40):  # an octopus each
        branches = [f"origin/review/{one}" for one in drafts[start : start + 40]]
        git(clone, "merge", "--quiet", "--no-edit", *branches)
    git(root, "pull", "--quiet", "--no-rebase", "--no-edit", str(clone), "main")
    settle(gateway)
    assert waiting(gateway) == []
    assert {review_of(gateway, one).status for one in drafts} == {"accepted"}
    assert len(list(root.glob("Reviews/Accepted/*.md"))) == many
    assert len(list(root.glob("Memories/LongTerm/*.md"))) == many
    clean(gateway)


def test_both_sides_work_and_nothing_is_lost(synced):
    gateway, _, clone = synced
    root = gateway.parts.files.root
    (root / "Memories/LongTerm/both.md").write_text("one\n\ntwo\n\nthree\n\nfour\n", "utf-8")
    again(gateway)
    git(clone, "pull", "--quiet")
    note = clone / "Memories/LongTerm/both.md"
    note.write_text(note.read_text("utf-8").replace("one", "one, there"), "utf-8")
    (clone / "Memories/LongTerm/there.md").write_text("Written there.\n", "utf-8")
    (clone / "picture.png").write_bytes(bytes(range(256)) * 20_000)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "There")
    git(clone, "push", "--quiet")
    here = root / "Memories/LongTerm/both.md"
    here.write_text(here.read_text("utf-8").replace("four", "four, here"), "utf-8")
    done = again(gateway)
    assert (done.merged, done.pushed, done.conflicts) == (True, True, [])
    assert here.read_text("utf-8") == "one, there\n\ntwo\n\nthree\n\nfour, here\n"
    assert (root / "picture.png").read_bytes() == bytes(range(256)) * 20_000
    git(clone, "pull", "--quiet")
    assert note.read_text("utf-8") == here.read_text("utf-8")
    clean(gateway)


def test_an_edit_that_is_not_committed_yet_is_merged_too(synced, opened):
    gateway, _, clone = synced
    root = gateway.parts.files.root
    here = root / "Memories/LongTerm/open.md"
    here.write_text("one\n\ntwo\n\nthree\n", "utf-8")
    again(gateway)
    git(clone, "pull", "--quiet")
    there = clone / "Memories/LongTerm/open.md"
    there.write_text("one, there\n\ntwo\n\nthree\n", "utf-8")
    git(clone, "commit", "--quiet", "--all", "--message", "There")
    git(clone, "push", "--quiet")
    here.write_text("one\n\ntwo\n\nthree, being typed\n", "utf-8")
    from gateway.services.sync import run

    run(gateway.parts, gateway.branches)  # as the interval does it: what is being typed is not committed first
    assert here.read_text("utf-8") == "one, there\n\ntwo\n\nthree, being typed\n"
    again(gateway)
    git(clone, "pull", "--quiet")
    assert there.read_text("utf-8") == here.read_text("utf-8")


def test_a_contradiction_keeps_both_sides_and_says_so(synced):
    gateway, _, clone = synced
    root = gateway.parts.files.root
    (root / "Memories/LongTerm/tea.md").write_text("Green tea.\n", "utf-8")
    again(gateway)
    git(clone, "pull", "--quiet")
    (clone / "Memories/LongTerm/tea.md").write_text("Black tea.\n", "utf-8")
    git(clone, "commit", "--quiet", "--all", "--message", "Black")
    git(clone, "push", "--quiet")
    (root / "Memories/LongTerm/tea.md").write_text("White tea.\n", "utf-8")
    done = again(gateway)
    (copy,) = done.conflicts
    assert (root / "Memories/LongTerm/tea.md").read_text("utf-8") == "White tea.\n"
    assert (root / copy).read_text("utf-8") == "Black tea.\n"
    settle(gateway)
    assert kinds(gateway) == {"sync-conflict"}
    (root / copy).unlink()
    settle(gateway)
    assert kinds(gateway) == set()


def test_a_deletion_there_is_a_deletion_here_unless_it_was_changed(synced):
    gateway, _, clone = synced
    root = gateway.parts.files.root
    for name in ("gone", "kept"):
        (root / f"Memories/LongTerm/{name}.md").write_text(f"{name}\n", "utf-8")
    again(gateway)
    git(clone, "pull", "--quiet")
    for name in ("gone", "kept"):
        (clone / f"Memories/LongTerm/{name}.md").unlink()
    git(clone, "commit", "--quiet", "--all", "--message", "Away")
    git(clone, "push", "--quiet")
    (root / "Memories/LongTerm/kept.md").write_text("kept, and changed\n", "utf-8")
    again(gateway)
    assert not (root / "Memories/LongTerm/gone.md").exists()
    assert (root / "Memories/LongTerm/kept.md").read_text("utf-8") == "kept, and changed\n"
    with gateway.parts.ledger.read() as tx:
        assert registry.notes_by_path(tx, ["Memories/LongTerm/gone.md"]) == {}
    clean(gateway)


def test_a_rewritten_history_stops_the_sync_until_a_person_says_so(synced):
    gateway, bare, clone = synced
    root = gateway.parts.files.root
    (root / "Memories/LongTerm/first.md").write_text("first\n", "utf-8")
    again(gateway)
    git(clone, "pull", "--quiet")
    git(clone, "reset", "--quiet", "--hard", "HEAD~1")
    (clone / "Memories/LongTerm").mkdir(parents=True, exist_ok=True)
    (clone / "Memories/LongTerm/other.md").write_text("other\n", "utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "Another history")
    git(clone, "push", "--quiet", "--force")
    there = git(bare, "rev-parse", "main")
    with pytest.raises(RemoteRewritten) as refused:
        again(gateway)
    assert "--accept-rewrite" in refused.value.advice
    assert kinds(gateway) == {"remote-rewritten"}
    assert git(bare, "rev-parse", "main") == there, "nothing was pushed"
    assert len(git(root, "for-each-ref", "refs/rescue/").splitlines()) == 2
    assert not (root / "Memories/LongTerm/other.md").exists()
    again(gateway, accept_rewrite=True)
    assert {path.name for path in (root / "Memories/LongTerm").glob("*.md")} == {"first.md", "other.md"}
    assert kinds(gateway) == set()
    clean(gateway)


def test_a_branch_that_vanished_upstream_stops_the_sync(synced):
    gateway, bare, _ = synced
    git(bare, "update-ref", "-d", "refs/heads/main")
    with pytest.raises(RemoteRewritten, match="gone"):
        again(gateway)
    again(gateway, accept_rewrite=True)
    assert git(bare, "rev-parse", "main") == git(gateway.parts.files.root, "rev-parse", "HEAD")


def test_review_over_a_remote(synced):
    gateway, bare, clone = synced
    root = gateway.parts.files.root
    known = know(gateway, "An old story.", summary="Old")
    know(gateway, "Another story.")  # where the last note of a folder moves, git takes the folder for renamed
    drafts = {name: infer(gateway, f"The owner likes {name}.") for name in ("otters", "newts")}
    drafts["retired"] = retire(gateway, known)
    again(gateway)
    assert len(git(bare, "for-each-ref", "refs/heads/review/").splitlines()) == 3
    git(clone, "fetch", "--quiet")
    git(clone, "merge", "--quiet", "--no-edit", f"origin/review/{drafts['otters']}")
    git(clone, "merge", "--quiet", "--no-edit", f"origin/review/{drafts['retired']}")
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    git(clone, "push", "--quiet", "origin", f":review/{drafts['newts']}")
    again(gateway)
    assert {name: review_of(gateway, one).status for name, one in drafts.items()} == {
        "otters": "accepted",
        "newts": "rejected",
        "retired": "accepted",
    }
    assert git(bare, "for-each-ref", "refs/heads/review/") == ""
    assert len(list(root.glob("Memories/Archived/*.md"))) == 1
    with gateway.parts.ledger.read() as tx:
        assert registry.note(tx, known).status == "archived"
    clean(gateway)


def test_a_person_may_go_on_writing_on_the_branch_of_the_remote(synced):
    gateway, _, clone = synced
    review_id = infer(gateway, "The owner likes otters.")
    again(gateway)
    git(clone, "fetch", "--quiet")
    git(clone, "checkout", "--quiet", "-b", "mine", f"origin/review/{review_id}")
    (note,) = (clone / "Memories/LongTerm").glob("*.md")
    note.write_text(note.read_text("utf-8").replace("likes otters", "adores otters"), "utf-8")
    git(clone, "commit", "--quiet", "--all", "--message", "Better")
    git(clone, "push", "--quiet", "origin", f"HEAD:review/{review_id}")
    again(gateway)
    git(clone, "checkout", "--quiet", "main")
    git(clone, "pull", "--quiet")
    git(clone, "merge", "--quiet", "--no-edit", "mine")
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    again(gateway)
    assert review_of(gateway, review_id).status == "accepted"
    (kept,) = (gateway.parts.files.root / "Memories/LongTerm").glob("*.md")
    assert "adores otters" in kept.read_text("utf-8")
    clean(gateway)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda root: git(root, "remote", "remove", "origin"), "no remote"),
        (lambda root: git(root, "checkout", "--quiet", "--detach"), "detached"),
        (lambda root: (root / ".git/MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD")), "merge"),
        (lambda root: git(root, "remote", "set-url", "origin", "/nowhere/at/all.git"), "fetched"),
    ],
)
def test_what_is_in_the_way_of_a_sync_is_said(synced, prepare, words):
    gateway, _, _ = synced
    prepare(gateway.parts.files.root)
    with pytest.raises(GitTrouble, match=words):
        again(gateway)
    assert gateway.parts.sync.error


def test_signing_hooks_locks_and_missing_names_are_no_hindrance(synced):
    gateway, bare, _ = synced
    root = gateway.parts.files.root
    git(root, "config", "commit.gpgSign", "true")
    git(root, "config", "user.signingKey", "none-such")
    git(root, "config", "--unset-all", "user.name", ok=False)
    for name in ("pre-commit", "pre-push", "post-merge", "reference-transaction"):
        hook = root / ".git/hooks" / name
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    (root / ".git/index.lock").write_text("")
    review_id = infer(gateway, "The owner likes otters.")
    again(gateway)
    assert f"review/{review_id}" in git(bare, "for-each-ref", "refs/heads/review/")
    assert (root / ".git/index.lock").exists(), "another tool's lock is never removed"
    (root / ".git/index.lock").unlink()
    settle(gateway)
    assert git(root, "status", "--porcelain") == ""


def test_a_vault_in_a_larger_repository_has_review_branches_and_no_sync(opened, tmp_path):
    whole = tmp_path / "data"
    whole.mkdir()
    git(whole, "init", "--quiet", "--initial-branch=main")
    (whole / "code.py").write_text("print()\n")
    git(whole, "add", "code.py")
    git(whole, "commit", "--quiet", "--message", "Code")
    (whole / ".gitignore").write_text("/ledger.db*\n/index\n/*.key\n/*.json\n/lock\n")
    gateway = opened(**SYNCED)
    root = gateway.parts.files.root
    settle(gateway)
    if gateway.parts.history.prefix == "":
        pytest.fail("the vault made a repository of its own inside another")
    review_id = infer(gateway, "The owner likes otters.")
    gateway.parts.committer.flush(everything=True)
    gateway.branches.look()
    (line,) = git(whole, "diff", "--name-status", f"main...review/{review_id}").splitlines()
    assert line.startswith("A\tvault/Memories/LongTerm/")
    with pytest.raises(GitTrouble, match="larger repository"):
        again(gateway)
    git(whole, "merge", "--quiet", "--no-edit", f"review/{review_id}")
    settle(gateway)
    assert review_of(gateway, review_id).status == "accepted"
    assert len(list(root.glob("Memories/LongTerm/*.md"))) == 1
    assert (whole / "code.py").exists()


def test_a_remote_that_brings_a_link_is_refused(synced):
    gateway, _, clone = synced
    (clone / "link.md").symlink_to("/etc/passwd")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "Link")
    git(clone, "push", "--quiet")
    with pytest.raises(GitTrouble, match="symbolic link"):
        again(gateway)
    assert not (gateway.parts.files.root / "link.md").is_symlink()


def test_two_vaults_with_histories_of_their_own_are_joined(opened, tmp_path):
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "work")
    (tmp_path / "work/Memories/LongTerm").mkdir(parents=True)
    (tmp_path / "work/Memories/LongTerm/old.md").write_text("From before.\n", "utf-8")
    git(tmp_path / "work", "add", "--all")
    git(tmp_path / "work", "commit", "--quiet", "--message", "Begin elsewhere")
    git(tmp_path, "clone", "--quiet", "--bare", "work", "bare.git")
    gateway = opened(**SYNCED)
    settle(gateway)
    git(gateway.parts.files.root, "remote", "add", "origin", str(tmp_path / "bare.git"))
    again(gateway)
    assert (gateway.parts.files.root / "Memories/LongTerm/old.md").read_text("utf-8") == "From before.\n"
    assert git(tmp_path / "bare.git", "rev-parse", "main") == git(gateway.parts.files.root, "rev-parse", "HEAD")
    shutil.rmtree(tmp_path / "work")
    clean(gateway)

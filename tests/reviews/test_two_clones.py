"""A person in Obsidian, a colleague who merges review branches in a clone, an agent that writes: all at once."""

import random
import threading
import time
from collections.abc import Iterator

from gateway.access.principal import LOCAL_OPERATOR
from gateway.errors import GatewayError, GitTrouble
from gateway.services.check import check
from gateway.services.sync import run, sync
from tests.conftest import IMPATIENT
from tests.importer.same_state import settle
from tests.nightly import NIGHTLY
from tests.reviews.world import git, infer, review_of

ROUNDS = 200 if NIGHTLY else 40


class Hands:
    """Three who work at once; each remembers what it wrote."""

    def __init__(self, gateway, clone) -> None:
        self.gateway = gateway
        self.root = gateway.parts.files.root
        self.clone = clone
        self.written: dict[str, list[str]] = {"person": [], "colleague": [], "agent": []}
        self.merged: list[str] = []
        self.failed: list[BaseException] = []
        self.chance = random.Random(3)
        self.synced = 0

    def rounds(self) -> Iterator[int]:
        """As many as asked for; then on, at a person's pace, until the gateway was through twice in the midst of it."""
        yield from range(ROUNDS)
        for number in range(ROUNDS, ROUNDS + 100):
            if self.synced >= 2:
                return
            time.sleep(1)
            yield number

    def person(self) -> None:
        """Saves as Obsidian does, in place; in notes of their own and in those that the colleague edits too."""
        for number in self.rounds():
            mark = f"person {number} wrote this"
            note = self.root / f"Memories/LongTerm/person {number % 7}.md"
            text = note.read_text("utf-8") if note.exists() else ""
            note.write_text(f"{text}{mark}\n\n", "utf-8")
            shared = self.root / "Memories/LongTerm/shared.md"
            lines = shared.read_text("utf-8").split("\n\n")
            if len(lines) == 3:
                shared.write_text("\n\n".join([*lines[:2], f"bottom {number} by person"]), "utf-8")
            self.written["person"].append(mark)
            time.sleep(0.2)

    def colleague(self) -> None:
        for number in self.rounds():
            self._pull()
            branches = git(
                self.clone, "for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/review/"
            ).split()
            if branches:
                branch = self.chance.choice(branches)
                git(self.clone, "merge", "--quiet", "--no-edit", branch, ok=False)
                if git(self.clone, "status", "--porcelain", "--untracked-files=no"):
                    git(self.clone, "merge", "--abort", ok=False)
                else:
                    self.merged.append(branch.rpartition("/")[2])
            mark = f"colleague {number} wrote this"
            note = self.clone / f"Memories/LongTerm/colleague {number % 5}.md"
            text = note.read_text("utf-8") if note.exists() else ""
            note.write_text(f"{text}{mark}\n\n", "utf-8")
            git(self.clone, "add", "--all")
            git(self.clone, "commit", "--quiet", "--message", f"Round {number}")
            self.written["colleague"].append(mark)
            while not self._pushed():  # the suite's own time limit ends it
                self._pull()
            time.sleep(0.15)

    def _pushed(self) -> bool:
        """Asked of the remote, as git says "Done" of a rejected push too."""
        git(self.clone, "push", "--quiet", "origin", "HEAD:main", ok=False)
        return git(self.clone, "ls-remote", "origin", "main").split()[0] == git(self.clone, "rev-parse", "HEAD").strip()

    def _pull(self) -> None:
        git(self.clone, "fetch", "--quiet", "--prune")
        git(self.clone, "merge", "--quiet", "--no-edit", "origin/main", ok=False)
        if git(
            self.clone, "ls-files", "--unmerged"
        ):  # both changed the same lines: the colleague takes theirs and ours
            git(self.clone, "merge", "--abort")
            git(self.clone, "merge", "--quiet", "--no-edit", "-X", "theirs", "origin/main")

    def agent(self) -> None:
        for number in self.rounds():
            mark = f"The agent guessed thing {number} today."
            infer(self.gateway, mark)
            self.written["agent"].append(mark)
            time.sleep(0.2)

    def guarded(self, work):
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.failed.append(error)

        return threading.Thread(target=guarded)


def test_nothing_is_lost_when_all_work_at_once(opened, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "bare.git")
    gateway = opened(review={"mode": "branch"}, git=IMPATIENT["git"] | {"remote": "origin"})
    root = gateway.parts.files.root
    (root / "Memories/LongTerm/shared.md").write_text("top\n\nmiddle\n\nbottom", "utf-8")
    settle(gateway)
    git(root, "remote", "add", "origin", str(tmp_path / "bare.git"))
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    git(tmp_path, "clone", "--quiet", str(tmp_path / "bare.git"), "clone")
    hands = Hands(gateway, tmp_path / "clone")
    threads = [hands.guarded(work) for work in (hands.person, hands.colleague, hands.agent)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        try:
            gateway.parts.importer.scan(settled=True)
            run(gateway.parts, gateway.branches)
            hands.synced += 1
        except GitTrouble:
            time.sleep(0.05)  # somebody pushed this very moment
    assert hands.failed == []
    for _ in range(5):
        try:
            sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
            break
        except GatewayError:
            time.sleep(0.1)
    settle(gateway)
    sync(LOCAL_OPERATOR, gateway.parts, gateway.branches)
    head = git(root, "rev-parse", "HEAD")
    assert head == git(tmp_path / "bare.git", "rev-parse", "main")
    history = git(root, "log", "-p", "--format=%H", "-m", "HEAD")
    for who, marks in hands.written.items():
        assert [mark for mark in marks if f"+{mark}" not in history] == [], who
    files = "".join(path.read_text("utf-8") for path in root.glob("Memories/LongTerm/*.md"))
    for who in ("person", "colleague"):
        assert [mark for mark in hands.written[who] if mark not in files] == [], who
    assert hands.merged
    assert {review_of(gateway, one).status for one in hands.merged} == {"accepted"}
    assert git(root, "status", "--porcelain") == ""
    assert hands.synced >= 2
    settings = gateway.parts.settings
    gateway.close()
    assert check(settings, patient=False).findings == []

"""People, agents, decisions, deletes, merges, crashes and restarts in random order; in the end all stores agree."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gateway.bootstrap import open_gateway
from gateway.config import load_settings
from gateway.errors import GatewayError
from gateway.importer import write
from gateway.index.store import Index
from gateway.ledger import erasure, journal, problems, registry, reviews
from gateway.ledger.reviews import ReviewFilter
from gateway.ledger.schema import lineage
from gateway.notes.text import content_hash
from gateway.services import forgetting, memories, search, sessions
from gateway.services import reviews as review_service
from gateway.services.check import check
from gateway.services.requests import (
    AcceptReview,
    CommitSession,
    MemoryPatch,
    NewEpisode,
    NewMemory,
    RejectReview,
    Search,
)
from gateway.vault.history import History
from tests.conftest import IMPATIENT
from tests.forgetting.world import ANY
from tests.nightly import NIGHTLY
from tests.reviews.world import AGENT, OWNER

WORDS = ["otter", "heron", "badger", "falcon", "lynx", "marten"]
HOME = "user/owner/long_term"
CRASHES = [
    (write, "place", "before"),
    (write, "place", "after"),
    (write, "settle", "before"),
    (write, "settle", "after"),
    (Index, "upsert", "before"),
    (Index, "delete", "after"),
    (History, "commit", "before"),
    (History, "commit", "after"),
    (journal, "mark_committed", "before"),
    (registry, "mark_indexed", "before"),
    (erasure, "draft_gone", "before"),
    (reviews, "end_decision", "before"),
]
words = st.sampled_from(WORDS)
numbers = st.integers(0, 1_000)
_template: list[Path] = []


class Died(BaseException):
    """The process ends here."""


@contextmanager
def dying(owner, name: str, when: str) -> Generator[None]:
    real = getattr(owner, name)

    def die(*arguments, **named):
        if when == "after":
            real(*arguments, **named)
        raise Died

    setattr(owner, name, die)
    try:
        yield
    finally:
        setattr(owner, name, real)


def template() -> Path:
    """A data directory as the first start makes it."""
    if not _template:
        data = Path(tempfile.mkdtemp(prefix="life-")) / "data"
        open_gateway(load_settings(data_dir=data, **IMPATIENT)).close()
        _template.append(data)
    return _template[0]


def sentence(word: str) -> str:
    return f"The {word} of the owner lives behind the mill."


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="life-"))
        self.data = self.folder / "data"
        shutil.copytree(template(), self.data, symlinks=True)
        self.forgotten: set[str] = set()
        self.gateway = self.opened()

    def opened(self):
        return open_gateway(load_settings(data_dir=self.data, **IMPATIENT))

    @property
    def parts(self):
        return self.gateway.parts

    @property
    def home(self) -> Path:
        return self.parts.files.root / "Memories/LongTerm"

    def rows(self, namespace: str | None = HOME) -> list[registry.NoteRow]:
        wanted = registry.NoteFilter(namespaces=(namespace,) if namespace else None)
        with self.parts.ledger.read() as tx:
            return sorted(registry.page(tx, wanted, limit=500, after=None)[0], key=lambda row: row.note_id)

    def files(self) -> list[Path]:
        return sorted(self.home.rglob("*.md"))

    def said_again(self, text: str) -> None:
        """A person's explicit act: the text may be recalled again."""
        self.forgotten.discard(content_hash(text))

    @initialize()
    def begin(self) -> None:
        self.gateway.settle()

    @rule(word=words, number=st.integers(0, 4), bare=st.booleans())
    def a_person_writes(self, word, number, bare):
        head = "" if bare else f"---\ntags: [{word}]\n---\n"
        (self.home / f"{word} {number}.md").write_text(f"{head}{sentence(word)}\n", "utf-8")

    @rule(number=numbers, word=words)
    def a_person_edits(self, number, word):
        if files := self.files():
            path = files[number % len(files)]
            path.write_bytes(path.read_bytes() + f"\nSeen with a {word}.\n".encode())

    @rule(number=numbers)
    def a_person_deletes(self, number):
        if files := self.files():
            files[number % len(files)].unlink()

    @rule(number=numbers, archive=st.booleans())
    def a_person_moves(self, number, archive):
        if files := self.files():
            path = files[number % len(files)]
            folder = self.parts.files.root / ("Memories/Archived" if archive else "Memories/LongTerm/Moved")
            folder.mkdir(exist_ok=True, parents=True)
            if not (folder / path.name).exists():
                path.rename(folder / path.name)

    @rule(number=numbers)
    def a_person_copies(self, number):
        if files := self.files():
            path = files[number % len(files)]
            (self.home / f"copy {number % 5}.md").write_bytes(path.read_bytes())

    @rule()
    def time_passes(self):
        self.gateway.settle()

    @rule(word=words)
    def the_user_writes(self, word):
        memories.create(OWNER, self.parts, NewMemory.model_validate({"content": sentence(word)}))
        self.said_again(sentence(word))

    @rule(word=words, own=st.booleans())
    def an_agent_writes(self, word, own):
        body = {"content": sentence(word), "source": "conversation", "confidence": 0.9}
        with suppress(GatewayError):
            named = {"namespace": "agent/assistant/memory"} if own else {}
            memories.create(AGENT, self.parts, NewMemory.model_validate(body | named))

    @rule(word=words, other=words)
    def an_agent_listens(self, word, other):
        said = f"User: {sentence(word)}\nUser: I prefer the {other} to all others."
        new = {"session_id": f"talk {word}".replace(" ", "-"), "content": said}
        with suppress(GatewayError):
            sessions.add_episode(AGENT, self.parts, NewEpisode.model_validate(new))
            promote = CommitSession.model_validate({"promote": True})
            sessions.commit_session(AGENT, self.parts, new["session_id"], promote, None)

    @rule(number=numbers, word=words)
    def an_agent_changes(self, number, word):
        if rows := self.rows(None):
            patch = MemoryPatch.model_validate({"content": f"{sentence(word)} Perhaps."})
            with suppress(GatewayError):
                memories.update(AGENT, self.parts, rows[number % len(rows)].note_id, patch, ANY)

    @rule(number=numbers, accept=st.booleans())
    def a_person_decides(self, number, accept):
        with self.parts.ledger.read() as tx:
            waiting = reviews.page(tx, ReviewFilter(), limit=100, after=None)[0]
        if not waiting:
            return
        decide = review_service.accept if accept else review_service.reject
        body = (AcceptReview if accept else RejectReview).model_validate({})
        with suppress(GatewayError):
            done = decide(OWNER, self.parts, waiting[number % len(waiting)].id, body)
            if accept and done.memory_id is not None:
                self.said_again(memories.get(OWNER, self.parts, done.memory_id).content)

    @rule(number=numbers)
    def the_user_forgets(self, number):
        if rows := self.rows():
            row = rows[number % len(rows)]
            with suppress(GatewayError):
                text = memories.get(OWNER, self.parts, row.note_id).content
                forgetting.forget(OWNER, self.parts, row.note_id, ANY)
                self.forgotten.add(content_hash(text))

    @rule(number=numbers)
    def a_person_has_one_back(self, number):
        with self.parts.ledger.read() as tx:
            listed = [row.path for row in problems.listed(tx) if row.kind == "forgotten"]
        if listed:
            path = listed[number % len(listed)]
            with suppress(GatewayError):
                done = forgetting.undo(OWNER, self.parts, path)
                self.said_again(memories.get(OWNER, self.parts, done.id).content)

    @rule()
    def memories_are_consolidated(self):
        self.gateway.consolidation.run()

    @rule()
    def a_restart(self):
        self.gateway.close()
        self.gateway = self.opened()

    @rule(point=st.sampled_from(CRASHES), number=numbers, word=words)
    def a_crash(self, point, number, word):
        """The process ends in the middle of a write, a delete or a decision; whether it counted is found out after."""
        rows, hashed = self.rows(), content_hash(sentence(word))
        with suppress(Died), dying(*point):
            match number % 3:
                case 0:
                    memories.create(OWNER, self.parts, NewMemory.model_validate({"content": sentence(word)}))
                    self.forgotten.discard(hashed)
                case 1 if rows:
                    self.the_user_forgets(number)
                case _:
                    self.a_person_decides(number, True)
            self.gateway.settle()
        self.abandon()
        self.gateway = self.opened()
        # A write or a decision may have been finished by the start that follows it; then it was a person's act.
        self.forgotten -= {row.content_hash for row in self.rows() if row.content_hash == hashed and number % 3 != 1}
        if number % 3 == 2:
            with self.parts.ledger.read() as tx:
                decided = reviews.page(tx, ReviewFilter(status="accepted"), limit=500, after=None)[0]
                rows = registry.notes_by_id(tx, [one.memory_id for one in decided])
            self.forgotten -= {row.content_hash for row in rows.values()}

    def abandon(self) -> None:
        """The gateway is gone without a farewell: nothing is flushed, its locks and connections end."""
        for lock in self.gateway._locks:
            lock.close()
        self.parts.ledger._engine.dispose()

    def teardown(self) -> None:
        try:
            self.come_to_rest()
            findings = check(self.parts.settings, patient=False).findings
            assert findings == [], findings
            self.nothing_forgotten_is_recalled()
            self.no_edge_leads_nowhere()
        finally:
            self.gateway.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def come_to_rest(self) -> None:
        """Deletions are proven by a second look; the index tries a file that had moved again after two seconds."""
        for _ in range(15):
            self.gateway.settle()
            with self.parts.ledger.read() as tx:
                waiting = registry.pending_counts(tx)
            if waiting["fts"] == waiting["removals"] == 0 and not self.parts.importer.later:
                break
            time.sleep(0.2)
        self.gateway.settle()

    def nothing_forgotten_is_recalled(self) -> None:
        active = {row.content_hash: row for row in self.rows()}
        assert self.forgotten.isdisjoint(active), [active[one].path for one in self.forgotten & set(active)]
        for word in WORDS:
            if content_hash(sentence(word)) in self.forgotten:
                asked = Search.model_validate({"query": sentence(word), "namespaces": [HOME], "limit": 50})
                found = search.search(OWNER, self.parts, self.gateway.query_vectors, asked).results
                assert content_hash(sentence(word)) not in {content_hash(one.memory.content) for one in found}

    def no_edge_leads_nowhere(self) -> None:
        with self.parts.ledger.read() as tx:
            ends = {end for row in tx.execute(lineage.select()) for end in (row.child, row.parent)}
            known = set(registry.notes_by_id(tx, ends))
            for end in ends:
                if end.startswith("mem_") and end not in known:
                    assert journal.history(tx, end) or erasure.erasure(tx, end), f"{end} was never there"
                if end.startswith("rev_"):
                    assert reviews.review(tx, end) is not None, end


Life.TestCase.settings = settings(
    max_examples=500 if NIGHTLY else 30,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=not NIGHTLY,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink] if NIGHTLY else [Phase.generate],
    print_blob=True,
)
TestLife = Life.TestCase

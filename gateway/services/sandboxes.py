"""Sandboxes: brings the agent files of a user and those in an agent's sandbox to the same text (seed 000, section 4).

Nobody's text is lost: what both sides changed is merged, and where they contradict each other the person's stays in the
vault and the sandbox's becomes a draft.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from gateway.access import guard
from gateway.access.principal import Principal
from gateway.adapters.sandbox import ROOMS, RULES, FileState, Mode, check_names, step_for, text_hash
from gateway.errors import GatewayError, Tombstoned, TooLarge
from gateway.importer.parts import Parts
from gateway.importer.resident import template_of
from gateway.importer.rows import HELD
from gateway.ledger import journal, sandboxes, tombstones
from gateway.ledger.sandboxes import Synced
from gateway.notes.paths import check_id
from gateway.notes.structured import texts_of
from gateway.notes.text import content_hash
from gateway.services import versions
from gateway.services.agent_files import check_text, with_text
from gateway.services.fixed_notes import FixedNote, Whose, change, look, mend_first, whose
from gateway.services.proposing import Origin, propose_change
from gateway.services.records import InReview, ReviewReference
from gateway.starter import templates
from gateway.vault.merge import merge_texts

CONTRADICTS = "An agent changed this in its sandbox while a person changed it in the vault, and the two contradict."


class SandboxSync(BaseModel):
    """The body of `POST /v1/sandboxes/{sandbox_id}/sync`: what the sandbox has, and on which occasion it asks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: dict[str, str] = Field(default_factory=dict, max_length=4)
    mode: Mode = "round"
    dirty: bool = True
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxConflict:
    """A file whose sandbox text did not go into the vault: why, and the draft that keeps it, if there is one."""

    name: str
    code: str
    reason: str
    review: ReviewReference | None = None


@dataclass(frozen=True, slots=True)
class SandboxReview:
    """A file that an agent changed: a person decides about the draft."""

    name: str
    review: ReviewReference


@dataclass(slots=True)
class SandboxAnswer:
    """What a sync did.

    Attributes:
        files: what the sandbox must write, by name.
        written_back: files whose sandbox text is in the vault now.
        conflicts: files whose sandbox text is not.
        reviews: drafts of what an agent may only propose; its sandbox keeps its text.
        versions: of the user's files in the vault.
    """

    sandbox_id: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    written_back: list[str] = field(default_factory=list[str])
    conflicts: list[SandboxConflict] = field(default_factory=list[SandboxConflict])
    reviews: list[SandboxReview] = field(default_factory=list[SandboxReview])
    versions: dict[str, int] = field(default_factory=dict[str, int])


def sync(principal: Principal, parts: Parts, sandbox_id: str, wanted: SandboxSync) -> SandboxAnswer:
    """Bring a sandbox and the vault to the same text, as the occasion asks.

    Raises:
        Invalid: another file than the four, or no acceptable id.
        TooLarge: a file is over the limit of notes.
        NotFound: there is no such user, or it is another.
        NotAllowed: readers sync nothing.
    """
    check_id(sandbox_id, "sandbox_id")
    check_names(wanted.files)
    limit = parts.settings.vault.max_note_bytes
    for name, text in wanted.files.items():
        if len(text.encode("utf-8", "surrogatepass")) > limit:
            raise TooLarge(f"A file of a sandbox may have {limit:,} bytes.", field=f"files.{name}")
    who = whose(principal, parts, wanted.user_id)
    work = _Work(parts, who, sandbox_id, wanted)
    with parts.importer.lock:
        with parts.ledger.read() as tx:
            known = sandboxes.synced(tx, who.user_id, sandbox_id)
        for name in ROOMS:
            work.file(name, known.get(name))
    rules = (templates() / RULES).read_text("utf-8")
    if wanted.files.get(RULES) != rules:
        work.answer.files[RULES] = rules
    parts.wake()
    return work.answer


class _Work:
    """One sync: works through the files and collects what came of them."""

    def __init__(self, parts: Parts, who: Whose, sandbox_id: str, wanted: SandboxSync) -> None:
        self._parts = parts
        self._who = who
        self._wanted = wanted
        self.answer = SandboxAnswer(sandbox_id)

    def file(self, name: str, known: Synced | None) -> None:
        """Carry out the step of one file; what goes wrong with it is told and does not stop the others."""
        note = look(self._parts, self._who, ROOMS[name], writing=True)
        self.answer.versions[name] = note.row.version
        try:
            if note.row.status == HELD:
                raise mend_first(self._parts, note.row.path)
            self._step(name, note, known)
        except GatewayError as error:
            self.answer.conflicts.append(SandboxConflict(name, error.code, error.detail))

    def _step(self, name: str, note: FixedNote, known: Synced | None) -> None:
        sandbox, vault = self._wanted.files.get(name), texts_of(note.read.data)
        template = texts_of(template_of(ROOMS[name]))
        state = FileState(sandbox, vault, template, known.text_hash if known else None)
        step = step_for(state, self._wanted.mode, dirty=self._wanted.dirty)
        if step == "push":
            self.answer.files[name] = vault
            if known is None:  # later, the sandbox shows itself that it wrote what it was given
                self._remember(name, note.read.etag, vault)
        elif step == "same":
            if known is None or known.text_hash != text_hash(vault):
                self._remember(name, note.read.etag, vault)
        elif step == "pull" and sandbox is not None:
            self._pull(name, note, sandbox)
        elif step == "merge" and sandbox is not None:
            self._merge(name, note, known, sandbox)

    def _pull(self, name: str, note: FixedNote, text: str) -> bool:
        check_text(self._parts, text, field=f"files.{name}")
        self._check_not_forgotten(name, note, text)
        done = change(self._parts, self._who, note, with_text(note, text), action="sync_sandbox")
        if isinstance(done, InReview):
            self.answer.reviews.append(SandboxReview(name, done.review))
            return False
        self.answer.written_back.append(name)
        self.answer.versions[name] = done.version
        self._remember(name, done.etag, text)
        return True

    def _check_not_forgotten(self, name: str, note: FixedNote, text: str) -> None:
        """A sandbox is a copy: what was forgotten does not come back by it, whoever's key syncs it."""
        with self._parts.ledger.read() as tx:
            buried = tombstones.buried(tx, note.row.namespace, content_hash=content_hash(text))
        if buried:
            self.answer.files[name] = texts_of(note.read.data)
            raise Tombstoned("This text was forgotten on request; the sandbox gets the vault's.", field=f"files.{name}")

    def _merge(self, name: str, note: FixedNote, known: Synced | None, sandbox: str) -> None:
        check_text(self._parts, sandbox, field=f"files.{name}")
        vault, base = texts_of(note.read.data), self._base(note, known)
        ends = [_ended(text) for text in (vault, base, sandbox) if text is not None]
        merged = merge_texts(ends[0], ends[1], ends[2]) if len(ends) == 3 else None
        if merged is None:
            self._contradiction(name, note, sandbox)
        elif text_hash(merged) == text_hash(vault):
            self.answer.files[name] = vault
        elif self._pull(name, note, merged):
            self.answer.files[name] = merged

    def _contradiction(self, name: str, note: FixedNote, sandbox: str) -> None:
        """The person's text stays in the vault; the sandbox's is kept as a draft."""
        row, context = note.row, self._who.context
        named = {"target_id": row.note_id, "namespace": row.namespace}
        entry = guard.entry(context.principal, "sync_sandbox", "memory", decision=note.decision, **named)
        origin = Origin(context, entry, CONTRADICTS)
        draft = propose_change(self._parts, row, note.read.data, with_text(note, sandbox), origin)
        self.answer.conflicts.append(SandboxConflict(name, "contradiction", CONTRADICTS, draft.review))
        self.answer.files[name] = texts_of(note.read.data)

    def _base(self, note: FixedNote, known: Synced | None) -> str | None:
        """The text that both sides had when they were last the same."""
        if known is None:
            return None
        with self._parts.ledger.read() as tx:
            version = journal.version_with_etag(tx, note.row.note_id, known.etag)
        if version is None:
            return None
        data = versions.text_of(self._parts, version.etag, version.sha, version.path)
        return texts_of(data) if data is not None else None

    def _remember(self, name: str, etag: str, text: str) -> None:
        with self._parts.ledger.write() as tx:
            sandboxes.remember(tx, self._who.user_id, self.answer.sandbox_id, Synced(name, etag, text_hash(text)))


def _ended(text: str) -> str:
    """A text with exactly one line end at its end, so that this is no difference."""
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"

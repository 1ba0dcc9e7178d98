"""The one place where parts meet: settings in, an open gateway out. Server, command line and tests all begin here."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gateway import log
from gateway.access.authenticate import Authenticator
from gateway.access.limits import RateLimit
from gateway.clock import Clock, now_ms, use_clock
from gateway.config import Settings
from gateway.errors import GatewayError, GitTrouble
from gateway.importer import migrating, problems_note
from gateway.importer.commits import Committer
from gateway.importer.importer import Importer
from gateway.importer.opening import open_feed
from gateway.importer.parts import Parts
from gateway.importer.places import Places
from gateway.importer.recover import recover
from gateway.importer.write import WriteRoad
from gateway.index.embed import Embedder, EmbeddingConfig, OpenedEmbedder, open_embedder
from gateway.ledger import Ledger, agents, identities, keys, meta, registry
from gateway.ledger.audit import ReadBuffer
from gateway.ledger.keys import NewKey
from gateway.ledger.usage import UseBuffer
from gateway.llm import ChatModel
from gateway.notes.namespace import STARTER_FOLDERS
from gateway.services import fixed_notes, rebuild
from gateway.services.context import Turns
from gateway.services.events import Streams
from gateway.skills import deciding, review_branches, review_queue
from gateway.skills.query_vectors import QueryVectors
from gateway.skills.review_branches import ReviewBranches
from gateway.starter import starter_vault
from gateway.vault.files import VaultFiles
from gateway.vault.history import COMMITTER, Change, Commit, History
from gateway.vault.lock import DirectoryLock
from gateway.workers.consolidation.run import Consolidation
from gateway.workers.loop import Workers

_LOG = log.get("bootstrap")
FIRST_AGENT = "assistant"


@dataclass(slots=True)
class Gateway:
    """An open gateway. `start` begins the background work; without it, the parts can be driven step by step."""

    parts: Parts
    authenticator: Authenticator
    query_vectors: QueryVectors
    turns: Turns
    workers: Workers
    rate_limit: RateLimit
    model: ChatModel | None
    branches: ReviewBranches
    streams: Streams
    consolidation: Consolidation
    first_key: str | None
    _locks: list[DirectoryLock]
    _started: bool = False

    def start(self) -> None:
        """Begin to watch, import, index and commit."""
        self._started = True
        self.workers.start()

    def settle(self) -> None:
        """Without background work: scan, index and commit everything now."""
        self.parts.importer.scan(settled=True)
        self.parts.scanned.set()
        self.parts.feed.feed()
        problems_note.update(self.parts.importer)
        self.parts.committer.flush(everything=True)
        if self.branches.look():
            self.parts.feed.feed()
        self.parts.committer.flush(everything=True)

    def close(self) -> None:
        """Stop the background work, commit what is due, and let go of everything."""
        self.streams.close()
        if self._started:
            self.workers.stop()
        try:
            self.parts.committer.flush()
        except GatewayError as error:
            _LOG.warning("commits wait for the next start", reason=str(error))
        rebuild.close_embedders(self.parts)
        if self.model is not None:
            self.model.close()
        self.parts.reads.flush()
        self.parts.uses.flush()
        self.parts.ledger.close()
        for lock in self._locks:
            lock.close()


def open_gateway(settings: Settings, *, embedder: Embedder | None = None, clock: Clock | None = None) -> Gateway:
    """Open a data directory for writing; makes it, its vault and its first key where they are missing.

    Args:
        embedder: replaces the provider of the settings, for tests.
        clock: replaces the machine's clock in this process, for tests.

    Raises:
        Busy: another process holds the data directory or the vault.
        BadSettings, GitTrouble, Unavailable: what is missing or wrong, and what to do.
    """
    if clock is not None:
        use_clock(clock)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(PermissionError):  # somebody else's folder that we may write: their choice
        settings.data_dir.chmod(0o700)
    locks = [DirectoryLock(settings.data_dir)]
    try:
        return _open(settings, embedder, locks)
    except BaseException:
        for lock in locks:
            lock.close()
        raise


def _open(settings: Settings, embedder: Embedder | None, locks: list[DirectoryLock]) -> Gateway:
    ledger = Ledger.open(settings.ledger)
    root = settings.vault_root
    copied = _prepare_vault(root, ledger)
    history = History(root)
    history.ensure()
    _commit_starter(history, root, copied)
    staging = history.staging()
    _remember_vault(settings, ledger, root)
    locks.append(DirectoryLock(staging))
    files = VaultFiles(root, staging, max_bytes=settings.vault.max_note_bytes)
    importer = Importer(files, ledger, Places(settings.vault.owner, settings.vault.sources), history, settings)
    committer = Committer(ledger, history, settings)
    recover(importer)
    committer.recover()
    opened = OpenedEmbedder(embedder) if embedder is not None else open_embedder(_embedding(settings))
    feed, target = open_feed(settings, importer, opened.embedder, _embedding(settings))
    parts = Parts(
        settings,
        ledger,
        files,
        history,
        importer,
        WriteRoad(importer),
        committer,
        feed,
        ReadBuffer(ledger),
        UseBuffer(ledger),
        embedding_note=opened.note,
    )
    if target is not None:
        parts.migration = migrating.begin(importer, lambda: parts.feed, target, migrating.name_of(feed.index))
    _connect_reviews(parts)
    return _assembled(settings, parts, locks)


def _assembled(settings: Settings, parts: Parts, locks: list[DirectoryLock]) -> Gateway:
    """What works with the opened parts: identities, limits, models, background threads."""
    authenticator = Authenticator(parts.ledger)
    first_key = _first_start(settings, parts.ledger)
    _provision_owner(parts, first_key)
    branches = ReviewBranches(parts)
    turns = Turns()
    model = ChatModel(settings.llm) if settings.llm.provider == "openai" else None
    consolidation = Consolidation(parts, model)

    def forgotten(note_ids: Collection[str] | None) -> None:
        turns.forget(note_ids)
        consolidation.forget()

    parts.on_forgotten = forgotten
    streams = Streams(settings.policy.event_streams, settings.policy.event_streams_per_key)
    parts.ledger.on_commit = streams.wake
    return Gateway(
        parts,
        authenticator,
        QueryVectors(settings.embedding.query_timeout_seconds),
        turns,
        Workers(parts, authenticator, branches, consolidation),
        RateLimit(settings.policy.requests_per_minute, settings.policy.request_burst),
        model,
        branches,
        streams,
        consolidation,
        first_key,
        locks,
    )


def _remember_vault(settings: Settings, ledger: Ledger, root: Path) -> None:
    with ledger.write() as tx:
        if root == settings.data_dir / "vault":  # a data directory that is copied takes its own vault along
            meta.remove(tx, meta.VAULT_ROOT)
        else:
            meta.put(tx, meta.VAULT_ROOT, str(root))


def _connect_reviews(parts: Parts) -> None:
    """Drafts and merged review branches come to the skills; decisions that a crash interrupted are finished."""
    importer = parts.importer
    importer.on_drafts = lambda paths, settled: review_queue.take_in(parts, paths, settled)
    importer.attribute = lambda tx, actions, by: review_branches.attribute(parts, tx, actions, by)
    deciding.recover(parts)


def _provision_owner(parts: Parts, first_key: str | None) -> None:
    """On the first start, make the notes that the vault's owner has from the beginning; later, when asked for."""
    if first_key is None:
        return
    try:
        fixed_notes.provision(parts, parts.settings.vault.owner)
    except GatewayError as error:
        _LOG.warning("the owner's notes are not made yet", reason=str(error))


def _prepare_vault(root: Path, ledger: Ledger) -> list[str]:
    """Give a new vault its folders and first notes; touch nothing that is there, fill no vault that lost its notes."""
    root.mkdir(parents=True, exist_ok=True)
    with ledger.read() as tx:
        known = next(iter(registry.all_files(tx)), None)
    if known is not None and not any(root.iterdir()):
        _LOG.warning(
            "the vault is empty, but notes are known: is its disk mounted? Nothing is made in it", vault=str(root)
        )
        return []
    for folder in STARTER_FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    return _copy_missing(starter_vault(), root) if known is None else []


def _copy_missing(source: Path, target: Path) -> list[str]:
    copied: list[str] = []
    for entry in sorted(source.rglob("*")):
        place = target / entry.relative_to(source)
        if entry.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry, place)
            copied.append(entry.relative_to(source).as_posix())
    return copied


def _commit_starter(history: History, root: Path, copied: list[str]) -> None:
    """The first commit of a new vault: the files it begins with, and nothing else."""
    if not copied:
        return
    changes = tuple(Change(path, (root / path).read_bytes()) for path in copied)
    try:
        history.commit([Commit(*COMMITTER, now_ms(), "Begin the vault\n", changes)])
    except GitTrouble as error:
        _LOG.warning("the vault's first files are not committed yet", reason=str(error))


def _embedding(settings: Settings) -> EmbeddingConfig:
    chosen = settings.embedding
    return EmbeddingConfig(
        provider=chosen.provider,
        model=chosen.model,
        base_url=chosen.base_url,
        api_key=chosen.api_key.get_secret_value() if chosen.api_key else None,
        dimension=chosen.dimension,
        batch_size=chosen.batch_size,
        timeout_seconds=chosen.timeout_seconds,
        threads=chosen.threads,
    )


def _first_start(settings: Settings, ledger: Ledger) -> str | None:
    """Make the vault's owner, their first agent, and a key for the administrator and for that agent, each in a file
    that only its user can read."""
    owner = settings.vault.owner
    with ledger.write() as tx:
        if identities.user_taking_id(tx, owner) is None:
            identities.add_user(tx, owner, owner, {})
        if keys.has_admin(tx):
            return None
        if agents.agent(tx, FIRST_AGENT) is None:
            agents.add_agent(tx, FIRST_AGENT, name="Assistant", framework="other", owner_user_id=owner)
            made = NewKey(role="agent", label="first start", user_id=owner, agent_id=FIRST_AGENT)
            write_key(settings.data_dir / "agent.key", keys.issue(tx, made)[1])
        _, secret = keys.issue(tx, NewKey(role="admin", label="first start"))
        write_key(settings.admin_key_path, secret)
    return secret


def write_key(path: Path, secret: str) -> None:
    """Write a key where only its user can read it (mode 0600), replacing the file as a whole."""
    staged = path.with_name(path.name + ".new")
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)

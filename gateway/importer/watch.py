"""Listens to the file system and proves that it hears. Knows nothing of notes, only paths that may have changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import watchfiles

from gateway import log
from gateway.vault.scan import StatKey, stat_key

_LOG = log.get("watcher")
_DEBOUNCE_MS = 60
_STEP_MS = 20
_WAKE_MS = 1_000
_FIRST_WAKE_MS = 100
_DEAF_AFTER_CANARIES = 2


class Watcher:
    """Watches the folders of a vault in a thread of its own, and restarts itself when it has gone deaf."""

    def __init__(self, root: Path, canary: Path, tell: Callable[[set[str]], None], *, canary_seconds: float) -> None:
        self._root = root
        self._canary = canary / "canary"
        self._tell = tell
        self._canary_seconds = canary_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._sung_at = 0.0
        self.heard_at: float | None = None
        self.trouble: str | None = None
        canary.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    @property
    def hears(self) -> bool:
        """Whether the last canary was heard in time."""
        limit = self._canary_seconds * _DEAF_AFTER_CANARIES + _WAKE_MS / 1000 * 2
        return self.trouble is None and self.heard_at is not None and time.time() - self.heard_at < limit

    def folders(self) -> list[Path]:
        """What is watched: the vault's visible folders, never `.git` or `.obsidian`."""
        return sorted(self._top()[0])

    def _top(self) -> tuple[dict[Path, int], dict[str, StatKey]]:
        """The visible folders of the vault by inode (one made anew is another), and the notes that lie beside them.

        The notes at the top are looked at rather than listened to.
        """
        folders: dict[Path, int] = {}
        notes: dict[str, StatKey] = {}
        with os.scandir(self._root) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders[Path(entry.path)] = entry.inode()
                elif entry.name.endswith(".md"):
                    notes[entry.name] = stat_key(entry.stat(follow_symlinks=False))
        return folders, notes

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # whatever it is (watch limit, vault gone): the scan goes on without us
                if self.trouble is None:
                    _LOG.warning("the watcher stopped; the scan goes on", reason=str(error)[:200])
                self.trouble = str(error)[:200] or type(error).__name__
                self._stop.wait(5)

    def _listen(self) -> None:
        """Listen until stopped, deaf, or the list of folders has changed."""
        watched, notes = self._top()
        changes = watchfiles.watch(
            *watched,
            self._canary.parent,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            rust_timeout=_FIRST_WAKE_MS if self._sung_at == 0 else _WAKE_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        listening_since: float | None = None
        looked_at = time.monotonic()
        for batch in changes:
            touched = {path for _, path in batch}
            self._deliver(touched)
            if listening_since is not None and not touched.isdisjoint(map(str, watched)):
                # A watched folder itself was deleted or replaced; one made anew may even have the same inode.
                return
            if listening_since is None:
                # Only now is it certain that the system listens: what came before may have been missed.
                listening_since = time.time()
                self.trouble = None
                self._tell({path.name for path in watched} | set(notes))
                self._sing()
            elif self._deaf(listening_since):
                _LOG.warning("the watcher is deaf and is restarted")
                return
            if time.monotonic() - looked_at >= _WAKE_MS / 1000:
                looked_at = time.monotonic()
                now_watched, now_notes = self._top()
                if changed := {name for name, _ in set(now_notes.items()) ^ set(notes.items())}:
                    self._tell(changed)
                    notes = now_notes
                if now_watched != watched:
                    self._tell({path.name for path in watched})
                    return

    def _deaf(self, listening_since: float) -> bool:
        """Sing when it is time; whether the last songs were not heard."""
        now = time.time()
        if now - self._sung_at <= self._canary_seconds:
            return False
        if now - max(self.heard_at or 0, listening_since) > self._canary_seconds * _DEAF_AFTER_CANARIES:
            return True
        self._sing()
        return False

    def _deliver(self, paths: set[str]) -> None:
        relative: set[str] = set()
        root, canary = str(self._root) + os.sep, str(self._canary.parent)
        for path in paths:
            if path.startswith(canary):
                self.heard_at = time.time()
            elif path.startswith(root):
                relative.add(path[len(root) :].replace(os.sep, "/"))
        if relative:
            self._tell(relative)

    def _sing(self) -> None:
        self._sung_at = time.time()
        self._canary.write_text(str(self._sung_at), encoding="ascii")

"""What a path of the vault means: whose memory, in which namespace, and whether it may be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from gateway.config import VaultSource
from gateway.errors import BadSettings, Invalid
from gateway.notes.namespace import Namespace, locate, parse_namespace
from gateway.notes.paths import conflict_copy_of, is_ignored, leaves_vault


@dataclass(frozen=True, slots=True)
class Place:
    """Where a note stands; everything about ownership comes from here, never from the note's text."""

    path: str
    namespace: Namespace
    archived: bool
    read_only: bool

    @property
    def provenance(self) -> str:
        """The canonical provenance of what stands here."""
        return f"vault:{self.path}"


class Places:
    """The map of one vault: the folders of the design, and the user's own notes by `vault.sources`."""

    def __init__(self, owner: str, sources: Sequence[VaultSource]) -> None:
        self.owner = owner
        self._sources: list[tuple[GitIgnoreSpec, Namespace]] = []
        for source in sources:
            try:
                namespace = parse_namespace(source.namespace)
            except Invalid as error:
                raise BadSettings(
                    f"A vault source names no namespace: {error.detail}",
                    field="vault.sources",
                    advice="Use one such as `user/owner/long_term`.",
                ) from None
            self._sources.append((GitIgnoreSpec.from_lines([source.glob]), namespace))

    def place_of(self, path: str) -> Place | None:
        """The place of a note; None where the path holds no memory."""
        if is_ignored(path) or leaves_vault(path):
            return None
        found = locate(path, owner=self.owner)
        if found is not None:
            return Place(path, found.namespace, found.archived, read_only=False)
        for spec, namespace in self._sources:
            if spec.match_file(path):
                return Place(path, namespace, archived=False, read_only=True)
        return None

    def conflict_copy(self, path: str) -> str | None:
        """Why a path looks like the conflict copy of a sync tool; None otherwise."""
        return conflict_copy_of(path)

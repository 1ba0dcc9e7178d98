"""The one tree of errors. Each class has a stable `code`; the doors turn it into a status and a problem document.

Nothing here knows HTTP. A problem in a person's file is a value (`gateway.notes.note.NoteProblem`), not an exception.
"""

from __future__ import annotations

from typing import ClassVar


class GatewayError(Exception):
    """Base of everything the gateway raises on purpose.

    Args:
        detail: what is wrong, in one sentence, without note text or secrets.
        advice: what the caller can do about it.
        field: the offending field of a request, if one is to blame.
        file: the offending file, relative to the vault or as the user gave it.
        line: the 1-based line in `file`.
        facts: further typed members of the problem document (`etag`, `diff`, ...).
    """

    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        advice: str | None = None,
        field: str | None = None,
        file: str | None = None,
        line: int | None = None,
        **facts: object,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.advice = advice
        self.field = field
        self.file = file
        self.line = line
        self.facts = facts

    def __str__(self) -> str:
        place = f" ({self.file}{f':{self.line}' if self.line else ''})" if self.file else ""
        advice = f" {self.advice}" if self.advice else ""
        return f"{self.detail}{place}{advice}"


class Invalid(GatewayError):
    """The request, path, note or setting is not acceptable as given."""

    code = "invalid"
    title = "Invalid request"


class BadPath(Invalid):
    """A path leaves the vault, is absolute, reserved, too long, or names no place for a memory."""

    code = "bad-path"
    title = "Unacceptable path"


class BadNote(Invalid):
    """A note that cannot be written as asked (broken properties, conflict markers, not UTF-8)."""

    code = "bad-note"
    title = "Unacceptable note"


class CannotPatch(BadNote):
    """A property cannot be changed in place without touching other bytes."""

    code = "cannot-patch"
    title = "Property cannot be changed in place"


class BadSettings(Invalid):
    """A wrong setting: names itself, its file and the accepted values."""

    code = "bad-settings"
    title = "Wrong setting"


class SecretFound(Invalid):
    """A text holds a password, key, token or personal number; says which kind and where, never what it is."""

    code = "secret-found"
    title = "Secret found"


class TooLarge(Invalid):
    """The body or note is over a documented limit."""

    code = "too-large"
    title = "Too large"


class NotAuthenticated(GatewayError):
    """No key, or one that is unknown, revoked or expired."""

    code = "not-authenticated"
    title = "Not authenticated"


class RateLimited(GatewayError):
    """Too many requests with one key."""

    code = "rate-limited"
    title = "Too many requests"


class NotAllowed(GatewayError):
    """The principal's role may never do this."""

    code = "not-allowed"
    title = "Not allowed"


class SkillDisabled(NotAllowed):
    """The user has switched off the skill that this would need."""

    code = "skill-disabled"
    title = "Skill is switched off"


class NotFound(GatewayError):
    """No such thing, or none that this principal may see."""

    code = "not-found"
    title = "Not found"


class Conflict(GatewayError):
    """The request does not fit the present state."""

    code = "conflict"
    title = "Conflict"


class ChangedElsewhere(Conflict):
    """The precondition names a version that is no longer the current one."""

    code = "changed-elsewhere"
    title = "Changed elsewhere"


class AlreadyExists(Conflict):
    """The name or id is taken."""

    code = "already-exists"
    title = "Already exists"


class Tombstoned(Conflict):
    """This content or provenance was forgotten and may not come back by this way."""

    code = "tombstoned"
    title = "Forgotten"


class BeingCleared(Conflict):
    """The memories asked for are being cleared; the scope opens again when that job is done."""

    code = "being-cleared"
    title = "Being cleared"


class CannotPurge(Conflict):
    """Git's history cannot be rewritten as things are; nothing was changed."""

    code = "cannot-purge"
    title = "History cannot be purged now"


class AlreadyProposed(Conflict):
    """There is an open draft of the same subject that cannot be brought up to date right now."""

    code = "already-proposed"
    title = "Already proposed"


class AlreadyDecided(Conflict):
    """The draft was accepted or rejected before."""

    code = "already-decided"
    title = "Already decided"


class DraftStale(Conflict):
    """The memory changed after the draft was made; the draft was brought up to date and must be read again."""

    code = "draft-stale"
    title = "Draft is stale"


class IdempotencyMismatch(Conflict):
    """The same idempotency key came with another request."""

    code = "idempotency-mismatch"
    title = "Idempotency key was used for another request"


class PreconditionRequired(GatewayError):
    """A change must say which version it is based on."""

    code = "precondition-required"
    title = "Precondition required"


class Unavailable(GatewayError):
    """Temporarily not possible; trying again later can help."""

    code = "unavailable"
    title = "Temporarily unavailable"


class Busy(Unavailable):
    """Another process or a person holds what is needed right now."""

    code = "busy"
    title = "Busy"


class EmbeddingFailed(Unavailable):
    """The embedding provider did not answer, or not with vectors."""

    code = "embedding-failed"
    title = "Embedding failed"


class EmbeddingBusy(EmbeddingFailed):
    """Our own queue for embeddings is full; that says nothing of the provider."""

    code = "embedding-busy"
    title = "Embedding is busy"


class TooMuchGone(GatewayError):
    """So many notes vanished at once that a person must confirm before they count as deleted."""

    code = "too-much-gone"
    title = "Deletion paused"


class GitTrouble(Unavailable):
    """Git refused or cannot be used right now; nothing was lost, commits wait."""

    code = "git-trouble"
    title = "Git cannot be used right now"


class RemoteRewritten(GitTrouble):
    """The history of the git remote was rewritten; nothing is merged until a person says so."""

    code = "remote-rewritten"
    title = "The remote's history was rewritten"

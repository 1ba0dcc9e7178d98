"""Holds notes with secrets back, as the settings ask, and judges all notes anew when those settings or rules change."""

from __future__ import annotations

from gateway.config import SecretSettings
from gateway.ledger import Ledger, meta, problems
from gateway.notes.note import ParsedNote
from gateway.notes.secrets import held_for_secret

# To be raised when `find_secrets` learns to find more or less, so that notes known before are judged by it.
RULES = 1


def screened(note: ParsedNote, settings: SecretSettings) -> ParsedNote:
    """The note, or the same note held back where it holds a secret that the settings refuse."""
    if settings.refuse == "none":
        return note
    return held_for_secret(note, personal=settings.personal_data == "refuse")


def rules_in_force(settings: SecretSettings) -> str:
    """What decides whether a note is held; a note is judged anew when this is no longer what it was judged by."""
    return f"{RULES} {settings.refuse} {settings.personal_data}"


def held_under_other_rules(ledger: Ledger, settings: SecretSettings) -> list[str] | None:
    """The notes that are held for a secret, where the rules changed since; None where they are the same."""
    with ledger.read() as tx:
        if meta.get(tx, meta.NOTE_RULES) == rules_in_force(settings):
            return None
        return [row.path for row in problems.listed(tx) if row.kind == "secret"]


def all_judged(ledger: Ledger, settings: SecretSettings) -> None:
    """Remember that every note is judged by the present rules."""
    with ledger.write() as tx:
        meta.put(tx, meta.NOTE_RULES, rules_in_force(settings))

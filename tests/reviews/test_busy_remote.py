"""A remote that moves, dies or refuses in the midst of a sync."""

import pytest

from gateway.errors import GitTrouble
from gateway.vault.checkout import Checkout
from tests.reviews.test_in_git import again, clean, synced
from tests.reviews.world import git

__all__ = ["synced"]


def colleague_writes(clone, name: str) -> None:
    git(clone, "pull", "--quiet", "--no-edit")
    (clone / "Memories/LongTerm").mkdir(parents=True, exist_ok=True)
    (clone / f"Memories/LongTerm/{name}.md").write_text(f"{name}\n", "utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", name)
    git(clone, "push", "--quiet")


def both_write(gateway, clone) -> None:
    colleague_writes(clone, "theirs")
    (gateway.parts.files.root / "Memories/LongTerm/ours.md").write_text("ours\n", "utf-8")


def test_a_colleague_who_pushes_all_the_time_does_not_keep_the_gateway_out(synced, monkeypatch):
    gateway, bare, clone = synced
    both_write(gateway, clone)
    bring, pushed = Checkout.bring, []

    def bring_while_the_colleague_pushes(*arguments):
        pushed.append(f"meanwhile {len(pushed)}")
        colleague_writes(clone, pushed[-1])
        return bring(*arguments)

    monkeypatch.setattr(Checkout, "bring", bring_while_the_colleague_pushes)
    assert again(gateway).pushed
    assert len(pushed) == 1, "the first try got through"
    monkeypatch.undo()
    again(gateway)
    assert git(bare, "rev-parse", "main") == git(gateway.parts.files.root, "rev-parse", "HEAD")
    assert (gateway.parts.files.root / f"Memories/LongTerm/{pushed[0]}.md").exists()
    clean(gateway)


def test_a_sync_that_ends_between_push_and_files_is_finished_by_the_next(synced, monkeypatch):
    gateway, bare, clone = synced
    root = gateway.parts.files.root
    both_write(gateway, clone)

    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkout, "bring", end)
    with pytest.raises(KeyboardInterrupt):
        again(gateway)
    assert git(bare, "rev-parse", "main") != git(root, "rev-parse", "HEAD")
    assert not (root / "Memories/LongTerm/theirs.md").exists()
    monkeypatch.undo()
    assert again(gateway).merged
    assert (root / "Memories/LongTerm/theirs.md").read_text("utf-8") == "theirs\n"
    assert (root / "Memories/LongTerm/ours.md").read_text("utf-8") == "ours\n"
    assert git(bare, "rev-parse", "main") == git(root, "rev-parse", "HEAD")
    clean(gateway)


def test_what_a_remote_has_is_brought_in_also_where_it_refuses_ours(synced):
    gateway, bare, clone = synced
    both_write(gateway, clone)
    hook = bare / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    hook.chmod(0o755)
    with pytest.raises(GitTrouble, match="refused"):
        again(gateway)
    assert (gateway.parts.files.root / "Memories/LongTerm/theirs.md").exists()
    hook.unlink()
    assert again(gateway).pushed
    clean(gateway)

"""`review`: the drafts that wait for a person, in the terminal."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rich_click as click

from gateway.cli.console import data_dir_option, errors_in_words, out, settings_for, shown, tell
from gateway.cli.draft_view import print_list, print_review
from gateway.cli.review_queue import Queue, Wanted, open_queue
from gateway.errors import GatewayError, Unavailable
from gateway.notes.drafts import PROPOSALS

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
_REASON = click.option("--reason", default=None, help="Why; it is kept with the draft.")
_KEYS = {"a": "accept", "r": "reject", "e": "edit", "s": "skip", "q": "quit"}


@click.group(invoke_without_command=True)
@data_dir_option
@click.pass_context
def review(ctx: click.Context, data_dir: Path | None) -> None:
    """Decide drafts. Without a subcommand, on a terminal: one after the other; else the list of those that wait."""
    ctx.obj = data_dir
    if ctx.invoked_subcommand is not None:
        return
    with errors_in_words(), open_queue(settings_for(data_dir)) as queue:
        if sys.stdin.isatty() and sys.stdout.isatty():
            _walk(queue)
        else:
            print_list(queue.all(Wanted()))


@review.command("list")
@data_dir_option
@_JSON
@click.option(
    "--status",
    type=click.Choice(["pending", "accepted", "rejected", "withdrawn", "any"]),
    default="pending",
    show_default=True,
)
@click.option("--proposal", type=click.Choice(PROPOSALS), default=None, help="Only drafts of this kind.")
@click.option("--namespace", default=None, help="Only drafts for this namespace, e.g. user/tom/long_term.")
@click.pass_context
def list_command(ctx: click.Context, data_dir: Path | None, *, as_json: bool, **wanted: Any) -> None:
    """The drafts, oldest first: age, id, kind, confidence, for whom, by whom, title."""
    with _queue(ctx, data_dir) as queue:
        found = queue.all(Wanted(**wanted))
        if as_json:
            _print_json({"reviews": found, "total": len(found)})
        else:
            print_list(found)


@review.command()
@data_dir_option
@_JSON
@click.argument("review_id")
@click.pass_context
def show(ctx: click.Context, data_dir: Path | None, as_json: bool, review_id: str) -> None:
    """A draft: who proposes what and why, its text, and what accepting it would change."""
    with _queue(ctx, data_dir) as queue:
        found = queue.get(queue.named(review_id))
        if as_json:
            _print_json(found)
        else:
            print_review(found)


@review.command()
@data_dir_option
@click.option("--text", default=None, help="Keep this text instead of the draft's.")
@click.option(
    "--text-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    default=None,
    help="Keep the text of this file (`-`: of standard input) instead of the draft's.",
)
@_REASON
@click.argument("review_id")
@click.pass_context
def accept(ctx: click.Context, data_dir: Path | None, *, review_id: str, **given: Any) -> None:
    """Accept a draft: its text becomes memory."""
    if given["text"] is not None and given["text_file"] is not None:
        raise click.UsageError("Give --text or --text-file, not both.")
    text = given["text"] if given["text_file"] is None else _read(given["text_file"])
    with _queue(ctx, data_dir) as queue:
        _accept(queue, queue.named(review_id), text, reason=given["reason"])


@review.command()
@data_dir_option
@_REASON
@click.argument("review_id")
@click.pass_context
def reject(ctx: click.Context, data_dir: Path | None, *, review_id: str, reason: str | None) -> None:
    """Reject a draft: the same is not proposed again."""
    with _queue(ctx, data_dir) as queue:
        _reject(queue, queue.named(review_id), reason=reason)


@review.command()
@data_dir_option
@_REASON
@click.argument("review_id")
@click.pass_context
def edit(ctx: click.Context, data_dir: Path | None, *, review_id: str, reason: str | None) -> None:
    """Open a draft's text in $VISUAL or $EDITOR, then accept the edited text, reject the draft, or keep it waiting."""
    with _queue(ctx, data_dir) as queue:
        _edit(queue, queue.get(queue.named(review_id)), reason)


@contextmanager
def _queue(ctx: click.Context, data_dir: Path | None) -> Generator[Queue]:
    """The drafts of the data directory that the command, or else its group, names."""
    with errors_in_words(), open_queue(settings_for(data_dir or ctx.obj)) as queue:
        yield queue


def _walk(queue: Queue) -> None:
    """All drafts that wait, one after the other. What cannot be done is said, and the draft is shown again."""
    waiting = queue.all(Wanted())
    for number, one in enumerate(waiting, 1):
        out.rule(f"{number} of {len(waiting)}")
        while True:
            try:
                if not _ask(queue, str(one["id"])):
                    return
                break
            except GatewayError as error:
                tell(error)
                if queue.get(str(one["id"]))["review"]["status"] != "pending":
                    break
    out.print("no more drafts wait" if waiting else "no drafts wait")


def _ask(queue: Queue, review_id: str) -> bool:
    """Show a draft and do what the person says. False: they want to stop."""
    found = queue.get(review_id)
    print_review(found)
    match _choose(_KEYS):
        case "a":
            _accept(queue, review_id, None, etag=found["review"]["etag"])
        case "r":
            _reject(queue, review_id, etag=found["review"]["etag"])
        case "e":
            _edit(queue, found, None)
        case "q":
            return False
        case _:
            pass
    return True


def _choose(keys: dict[str, str]) -> str:
    words = ", ".join(f"{key} {word}" for key, word in keys.items())
    return str(click.prompt(words, type=click.Choice(list(keys)), show_choices=False))


def _edit(queue: Queue, found: dict[str, Any], reason: str | None) -> None:
    """The etag of the draft as it was opened goes along, so that one that changed meanwhile is not decided unseen."""
    if found["problem"] is not None and not found["text"]:
        raise Unavailable(found["problem"])
    review_id, etag = str(found["review"]["id"]), str(found["review"]["etag"])
    edited = _in_editor(str(found["text"]))
    out.print("the text is as it was" if edited is None else "the text was edited")
    choice = _choose({"a": "accept", "r": "reject", "k": "keep waiting"})
    if choice == "r":
        _reject(queue, review_id, reason=reason, etag=etag)
        return
    try:
        if choice == "a":
            _accept(queue, review_id, edited, reason=reason, etag=etag)
        else:
            out.print(f"{review_id} waits")
    except GatewayError:
        _rescue(review_id, edited)
        raise
    if choice == "k":
        _rescue(review_id, edited)


def _in_editor(text: str) -> str | None:
    """The text as the person leaves it; None where they change nothing."""
    try:
        edited = click.edit(text + "\n", extension=".md")
    except click.ClickException as error:
        raise Unavailable(error.format_message(), advice="Set VISUAL or EDITOR to an editor.") from None
    edited = edited.strip("\n") if edited is not None else text
    return edited if edited != text.strip("\n") else None


def _rescue(review_id: str, edited: str | None) -> None:
    """Nothing that a person typed is lost because the draft was not decided."""
    if edited is None:
        return
    descriptor, name = tempfile.mkstemp(prefix=f"{review_id}-", suffix=".md")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(edited + "\n")
    out.print(f"your text is kept in {name}", markup=False)


def _accept(
    queue: Queue, review_id: str, text: str | None, *, reason: str | None = None, etag: str | None = None
) -> None:
    done = queue.accept(review_id, text=text, reason=reason, etag=etag)
    out.print(shown(f"{review_id} accepted: {done['memory_id']}"), markup=False)


def _reject(queue: Queue, review_id: str, *, reason: str | None = None, etag: str | None = None) -> None:
    queue.reject(review_id, reason=reason, etag=etag)
    out.print(shown(f"{review_id} rejected"), markup=False)


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8").strip("\n")
    except UnicodeDecodeError:
        raise click.UsageError("The text is not UTF-8.") from None


def _print_json(answer: dict[str, Any]) -> None:
    out.print_json(json.dumps(answer, ensure_ascii=False))

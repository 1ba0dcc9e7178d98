"""`import`: a folder of Markdown, or JSON Lines."""

# click's own types are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click
from pydantic import ValidationError
from rich.progress import Progress

from gateway.access.principal import LOCAL_OPERATOR
from gateway.bootstrap import open_gateway
from gateway.cli.console import data_dir_option, err, errors_in_words, out, running_server, settings_for
from gateway.config import Settings
from gateway.errors import GatewayError, Invalid
from gateway.ledger.idempotency import Claim
from gateway.notes.namespace import Namespace, parse_namespace
from gateway.services import imports, memories
from gateway.services.operation_requests import ImportBatch, ImportedNote
from gateway.services.requests import NewMemory

_BATCH_NOTES = 100
_BATCH_BYTES = 2 * 1024 * 1024
_SHOWN = 50


@click.command("import")
@data_dir_option
@click.option(
    "--namespace", default=None, help="Where Markdown notes go. Default: the vault owner's long-term memories."
)
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Write one line of JSON per skipped item."
)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def import_command(data_dir: Path | None, namespace: str | None, report: Path | None, path: Path) -> None:
    """Import a folder of Markdown notes (copied byte for byte) or a file of JSON Lines (one memory a line).

    The source is only read. Running it again goes on where it stopped and changes nothing that is there.
    """
    with errors_in_words():
        settings = settings_for(data_dir)
        where = namespace or str(Namespace("user", settings.vault.owner, "long_term"))
        parse_namespace(where)
        counts: Counter[str] = Counter()
        skipped: list[dict[str, str]] = []

        def note(outcome: str, item: str, reason: str | None) -> None:
            counts[outcome] += 1
            if outcome == "skipped":
                skipped.append({"item": item, "reason": reason or "unknown"})

        with _target(settings) as target:
            if path.is_dir() or path.suffix.lower() == ".md":
                _import_notes(path, where, target, note)
            else:
                _import_lines(path, target, note)
        _tell(counts, skipped, report)


class _Target:
    """Where imports go: a running server, or the data directory itself."""

    def notes(self, batch: ImportBatch) -> list[dict[str, Any]]:
        """Import a batch of notes."""
        raise NotImplementedError

    def memory(self, new: NewMemory, key: str) -> bool:
        """Write a memory once; whether it was new."""
        raise NotImplementedError


@contextmanager
def _target(settings: Settings) -> Generator[_Target]:
    server = running_server(settings)
    if server is not None:
        yield _Remote(server)
        return
    gateway = open_gateway(settings)
    try:
        gateway.parts.importer.scan(settled=True)
        yield _Local(gateway)
        gateway.settle()
    finally:
        gateway.close()


class _Remote(_Target):
    def __init__(self, server: Any) -> None:
        self._server = server

    def notes(self, batch: ImportBatch) -> list[dict[str, Any]]:
        return self._server.call("POST", "/v1/import", json=batch.model_dump(mode="json"))["notes"]

    def memory(self, new: NewMemory, key: str) -> bool:
        body = new.model_dump(mode="json", exclude_unset=True)
        headers = {"Idempotency-Key": key}
        done, replayed = self._server.write("/v1/memory", json=body, headers=headers)
        return not replayed and not done.get("duplicate")


class _Local(_Target):
    def __init__(self, gateway: Any) -> None:
        self._parts = gateway.parts

    def notes(self, batch: ImportBatch) -> list[dict[str, Any]]:
        return [asdict(one) for one in imports.import_notes(LOCAL_OPERATOR, self._parts, batch)]

    def memory(self, new: NewMemory, key: str) -> bool:
        claim = Claim(LOCAL_OPERATOR.key_id, key, hashlib.sha256(key.encode("ascii")).hexdigest())
        done = memories.create(LOCAL_OPERATOR, self._parts, new, claim=claim)
        return not getattr(done, "duplicate", True)


def _import_notes(path: Path, namespace: str, target: _Target, note: Callable[[str, str, str | None], None]) -> None:
    root = path if path.is_dir() else path.parent
    found = sorted(_files_below(path)) if path.is_dir() else [path]
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("Importing", total=len(found))
        batch: list[ImportedNote] = []
        size = 0
        for file in found:
            progress.advance(task)
            name = file.relative_to(root).as_posix()
            read = _read(file)
            if isinstance(read, str):
                note("skipped", name, read)
                continue
            batch.append(ImportedNote(path=name, text=read.decode("utf-8")))
            size += len(read)
            if len(batch) >= _BATCH_NOTES or size >= _BATCH_BYTES:
                _send(batch, namespace, target, note)
                batch, size = [], 0
        _send(batch, namespace, target, note)


def _send(
    batch: list[ImportedNote], namespace: str, target: _Target, note: Callable[[str, str, str | None], None]
) -> None:
    if batch:
        for one in target.notes(ImportBatch(namespace=namespace, notes=tuple(batch))):
            note(one["outcome"], one["path"], one["reason"])


def _files_below(folder: Path) -> Iterator[Path]:
    """Every file of a folder except hidden ones and hidden folders; links are not followed."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _files_below(entry)
        elif entry.name.endswith(".md") or entry.is_symlink():
            yield entry


def _read(file: Path) -> bytes | str:
    """The bytes of a note, or why it is skipped."""
    try:
        str(file).encode("utf-8")
        if file.is_symlink() or not file.is_file():
            return "not a regular file (symbolic links are not followed)"
        data = file.read_bytes()
        data.decode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except UnicodeDecodeError:
        return "not saved as UTF-8"
    except OSError as error:
        return error.strerror or "not readable"
    if len(data) > _BATCH_BYTES:
        return f"larger than {_BATCH_BYTES:,} bytes"
    return data


def _import_lines(path: Path, target: _Target, note: Callable[[str, str, str | None], None]) -> None:
    with path.open("rb") as lines, Progress(console=err, transient=True) as progress:
        task = progress.add_task("Importing", total=path.stat().st_size)
        for number, line in enumerate(lines, start=1):
            progress.advance(task, len(line))
            if not line.strip():
                continue
            try:
                new = _memory(line)
                fresh = target.memory(new, "import-" + hashlib.sha256(line.strip()).hexdigest())
                note("imported" if fresh else "unchanged", f"line {number}", None)
            except GatewayError as error:
                note("skipped", f"line {number}", str(error))


def _memory(line: bytes) -> NewMemory:
    try:
        item: Any = json.loads(line)
    except ValueError as error:
        raise Invalid(f"The line is not JSON: {error}.") from None
    if not isinstance(item, dict):
        raise Invalid("The line is no JSON object.")
    fields: dict[str, Any] = {str(name): value for name, value in item.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if "content" not in fields and "text" in fields:
        fields["content"] = fields.pop("text")
    try:
        return NewMemory.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise Invalid(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}.") from None


def _tell(counts: Counter[str], skipped: list[dict[str, str]], report: Path | None) -> None:
    out.print(f"imported {counts['imported']:,}, unchanged {counts['unchanged']:,}, skipped {counts['skipped']:,}")
    for one in skipped[:_SHOWN]:
        out.print(f"  skipped {one['item']!a}: {one['reason']}", markup=False)
    if len(skipped) > _SHOWN:
        out.print(f"  … and {len(skipped) - _SHOWN:,} more; --report FILE lists them all")
    if report is not None:
        with report.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in skipped)

"""Looking into an index without opening it for writing: what `check` compares."""

from __future__ import annotations

from gateway.index.schema import INDEX_FORMAT
from gateway.index.table import Database


def indexed_etags(uri: str, slug: str, generation: int) -> dict[str, str] | None:
    """Note id → etag of every note in an index; None where there is no such index in this format.

    Args:
        slug: the embedding identity's slug, `none` for keywords only.
    """
    database = Database(uri)
    name = f"chunks_{slug}_f{INDEX_FORMAT}_g{generation}"
    if name not in database.names():
        return None
    found: dict[str, str] = {}
    for batch in database.open(name).scan(["note_id", "etag"]):
        found.update(zip(batch.column("note_id").to_pylist(), batch.column("etag").to_pylist(), strict=True))
    return found

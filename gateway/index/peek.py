"""Looking into an index without opening it for writing: what `check` compares."""

from __future__ import annotations

from gateway.index.schema import table_name_of
from gateway.index.store import etags_in
from gateway.index.table import Database


def indexed_etags(uri: str, slug: str, generation: int) -> dict[str, str] | None:
    """Note id → etag of every note in an index; None where there is no such index in this format.

    Args:
        slug: the embedding identity's slug, `none` for keywords only.
    """
    database = Database(uri)
    name = table_name_of(slug, generation)
    return etags_in(database.open(name)) if name in database.names() else None

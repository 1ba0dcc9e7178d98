"""What is near a statement in one namespace: found in the index, with the vectors that are there already."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from gateway.errors import EmbeddingFailed
from gateway.importer.indexing import IndexFeed
from gateway.index.embed import Vector
from gateway.index.schema import text_hash
from gateway.index.scope import Scope
from gateway.index.store import Index
from gateway.index.tokens import query_tokens
from gateway.skills.wording import in_all_words, statement

_KEPT = 2_048
_BATCH = 16


class StatementVectors:
    """Vectors of statements as passages: from the index's cache, else embedded and kept in memory only, so that nothing
    of a candidate outlives it on disk."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = threading.Lock()
        self.embedded = 0

    def of(self, feed: IndexFeed, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of texts; those of texts that no vector can be had for right now are missing."""
        index, embedder = feed.index, feed.embedder
        if index.identity is None or index.vectors is None or embedder is None:
            return {}
        identity = index.identity.slug
        distinct = list(dict.fromkeys(texts))
        with self._lock:
            found = {text: self._kept[identity, text] for text in distinct if (identity, text) in self._kept}
        rest = [text for text in distinct if text not in found]
        cached = index.vectors.get([text_hash(text) for text in rest]) if rest else {}
        found |= {text: cached[text_hash(text)] for text in rest if text_hash(text) in cached}
        if embedder.identity == index.identity:
            unknown = [text for text in rest if text not in found]
            for start in range(0, len(unknown), _BATCH):
                batch = unknown[start : start + _BATCH]
                try:
                    made = embedder.embed_passages(batch)
                except EmbeddingFailed:
                    break  # words alone have to do
                self.embedded += len(batch)
                found |= {text: vector for text, vector in zip(batch, made, strict=True) if vector is not None}
        self._keep(identity, found)
        return found

    def forget(self) -> None:
        """Let go of all."""
        with self._lock:
            self._kept.clear()

    def _keep(self, identity: str, found: dict[str, Vector]) -> None:
        with self._lock:
            for text, vector in found.items():
                self._kept[identity, text] = vector
                self._kept.move_to_end((identity, text))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)


def similarity(one: Vector | None, other: Vector | None) -> float | None:
    """Cosine of two unit vectors; None where one is missing."""
    return None if one is None or other is None else float(np.dot(one, other))


def neighbours(index: Index, text: str, namespace: str, vector: Vector | None, limit: int) -> list[str]:
    """Ids of at most twice `limit` active memories of a namespace that are near a text by words or by meaning.

    Words of one meaning are looked up in all their forms, so that another language is found without vectors.

    Raises:
        Unavailable: the index cannot be read.
    """
    where = Scope(namespaces=(namespace,)).sql()
    found: dict[str, None] = {}
    for tokens in (query_tokens(text), query_tokens(in_all_words(statement(text)))):
        if tokens:
            found |= dict.fromkeys(row["note_id"] for row in index.table.match(tokens, where, ("note_id",), limit))
    if vector is not None:
        near = index.table.nearest(vector, where, ("note_id",), limit)
        found = dict.fromkeys(row["note_id"] for row in near) | found
    return list(found)[: 2 * limit]

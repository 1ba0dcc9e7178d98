"""The tables of what happens by itself: work that waits, jobs, events, use. A change here needs a migration."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, Table, Text

from gateway.ledger.schema_users import metadata

_Serial = BigInteger().with_variant(Integer, "sqlite")

dirty = Table(
    "dirty",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("key", String(160), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("tried_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_dirty_tried_at", "tried_at", "created_at"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(24), nullable=False),
    Column("status", String(16), nullable=False),
    Column("scope", String(16)),
    Column("scope_id", String(160)),
    Column("user_id", String(64)),
    Column("options", JSON, nullable=False),
    Column("phase", String(24), nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger),
    Column("error", Text),
    Column("requested_by", String(80), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Index("ix_jobs_status", "status", "kind"),
    Index("ix_jobs_created_at", "created_at", "id"),
)

events = Table(
    "events",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("change", String(16), nullable=False),
    Column("target_id", String(64), nullable=False),
    Column("namespace", Text),
    Column("visibility", String(24)),
    Column("user_id", String(64)),
    Column("data", JSON, nullable=False),
    Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

erasures = Table(
    "erasures",
    metadata,
    Column("note_id", String(64), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("visibility", String(24), nullable=False),
    Column("deleted_at", BigInteger, nullable=False),
    Column("purged_at", BigInteger),
    Column("job_id", String(40)),
)

# Cached vectors of texts that no memory has any more, by the table they are in.
orphans = Table(
    "orphans",
    metadata,
    Column("place", String(160), primary_key=True),
    Column("text_hash", String(64), primary_key=True),
    Column("since", BigInteger, nullable=False),
)

# Which memories a turn was shown: a repeated turn counts nothing. Kept for a day.
turns = Table(
    "turns",
    metadata,
    Column("turn", String(64), primary_key=True),
    Column("note_id", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Index("ix_turns_at", "at"),
)

usage = Table(
    "usage",
    metadata,
    Column("note_id", String(64), primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("last_hit_at", BigInteger, nullable=False),
)

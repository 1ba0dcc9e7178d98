"""The tables of what users keep beside their memories; part of `gateway.ledger.schema`. A change needs a migration."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Integer, String, Table, UniqueConstraint

from gateway.ledger.schema import metadata

structured = Table(
    "structured",
    metadata,
    Column("note_id", String(64), primary_key=True),
    Column("room", String(16), nullable=False),
    Column("content", JSON, nullable=False),
    Column("etag", String(64), nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

user_skill_configs = Table(
    "user_skill_configs",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("user_id", String(64), nullable=False),
    Column("skill_name", String(100), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("user_id", "skill_name"),
)

sandbox_files = Table(
    "sandbox_files",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("sandbox_id", String(64), primary_key=True),
    Column("name", String(16), primary_key=True),
    Column("etag", String(64), nullable=False),
    Column("text_hash", String(64), nullable=False),
    Column("synced_at", BigInteger, nullable=False),
)

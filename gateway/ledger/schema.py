"""The ledger's tables. Times are integers: milliseconds since 1970 UTC. A change here needs a migration."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
# SQLite numbers rows only for INTEGER PRIMARY KEY; other databases take the wide type.
_Serial = BigInteger().with_variant(Integer, "sqlite")

users = Table(
    "users",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("id_key", String(64), nullable=False, unique=True),
    Column("display_name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("preferences", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("prefix", String(16), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("user_id", String(64)),
    Column("agent_id", String(64)),
    Column("workspace_ids", JSON, nullable=False, server_default="[]"),
    Column("label", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
)

agents = Table(
    "agents",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("id_key", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("framework", String(64), nullable=False),
    Column("owner_user_id", String(64), ForeignKey("users.id")),
    Column("status", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("id_key", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("owner_user_id", String(64), ForeignKey("users.id")),
    Column("member_user_ids", JSON, nullable=False),
    Column("allowed_agent_ids", JSON, nullable=False),
    Column("status", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("user_id", String(64), ForeignKey("users.id"), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("agent_id", String(64)),
    Column("workspace_id", String(64)),
    Column("kind", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("summary", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index("ix_sessions_expires_at", "expires_at"),
)

episodes = Table(
    "episodes",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False, unique=True),
    Column("user_id", String(64), nullable=False),
    Column("session_id", String(64), nullable=False),
    Column("agent_id", String(64)),
    Column("workspace_id", String(64)),
    Column("content", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("events", JSON, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    ForeignKeyConstraint(["user_id", "session_id"], ["sessions.user_id", "sessions.id"], ondelete="CASCADE"),
    Index("ix_episodes_session", "user_id", "session_id", "seq"),
)

candidates = Table(
    "candidates",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("session_id", String(64), nullable=False),
    Column("agent_id", String(64)),
    Column("workspace_id", String(64)),
    Column("episode_ids", JSON, nullable=False),
    Column("memory_type", String(64), nullable=False),
    Column("content", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("importance", Float, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("status", String(16), nullable=False),
    Column("memory_id", String(64)),
    Column("created_at", BigInteger, nullable=False),
    ForeignKeyConstraint(["user_id", "session_id"], ["sessions.user_id", "sessions.id"], ondelete="CASCADE"),
    Index("ix_candidates_session", "user_id", "session_id"),
)

feedback = Table(
    "feedback",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("note_id", String(64), nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("user_id", String(64)),
    Column("agent_id", String(64)),
    Column("feedback", String(16), nullable=False),
    Column("comment", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_feedback_note_id", "note_id", "seq"),
)

notes = Table(
    "notes",
    metadata,
    Column("note_id", String(64), primary_key=True),
    Column("path", Text, nullable=False, unique=True),
    Column("path_key", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("user_id", String(64)),
    Column("agent_id", String(64)),
    Column("workspace_id", String(64)),
    Column("session_id", String(64)),
    Column("memory_type", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("importance", Float, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("visibility", String(24), nullable=False),
    Column("status", String(16), nullable=False),
    Column("source", String(64), nullable=False),
    Column("source_ref", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("version", Integer, nullable=False),
    Column("etag", String(64), nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("temporal_kind", String(16)),
    Column("valid_from", BigInteger),
    Column("valid_until", BigInteger),
    Column("precision", String(16)),
    Column("timezone", String(64)),
    Column("temporal_confidence", Float, nullable=False, server_default="1"),
    Column("fts_etag", String(64)),
    Column("vector_etag", String(64)),
    Column("index_error", Text),
    Index("ix_notes_namespace_status", "namespace", "status"),
    Index("ix_notes_etag", "etag"),
    Index("ix_notes_content_hash", "content_hash"),
    Index("ix_notes_path_key", "path_key"),
    Index("ix_notes_updated_at", "updated_at", "note_id"),
)

files = Table(
    "files",
    metadata,
    Column("path", Text, primary_key=True),
    Column("note_id", String(64), ForeignKey("notes.note_id", ondelete="SET NULL")),
    Column("etag", String(64), nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("ino", BigInteger, nullable=False),
    Column("ctime_ns", BigInteger, nullable=False),
    Column("missing_since", BigInteger),
    Index("ix_files_note_id", "note_id"),
)

index_removals = Table(
    "index_removals",
    metadata,
    Column("note_id", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("proposal", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("subject", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("target_id", String(64)),
    Column("memory_id", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("path", Text, nullable=False),
    Column("etag", String(64), nullable=False),
    Column("written_etag", String(64), nullable=False),
    Column("base", JSON, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("proposed_by", Text, nullable=False),
    Column("user_id", String(64)),
    Column("agent_id", String(64)),
    Column("why", Text, nullable=False),
    Column("evidence", JSON, nullable=False),
    Column("candidate_id", String(64)),
    Column("branch_sha", String(64)),
    Column("branch_etag", String(64)),
    Column("pushed_sha", String(64)),
    Column("decided_by", Text),
    Column("decided_via", String(16)),
    Column("decision_reason", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("decided_at", BigInteger),
    Index("ix_reviews_subject", "subject", "status"),
    Index("ix_reviews_status", "status", "created_at"),
    Index("ix_reviews_memory_id", "memory_id"),
    Index("ix_reviews_path", "path"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("review_id", String(64), primary_key=True),
    Column("plan", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

lineage = Table(
    "lineage",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("child", String(64), nullable=False),
    Column("parent", String(80), nullable=False),
    Column("relation", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("child", "parent", "relation"),
    Index("ix_lineage_parent", "parent"),
)

problems = Table(
    "problems",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("path", Text, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("message", Text, nullable=False),
    Column("advice", Text, nullable=False),
    Column("line", Integer),
    Column("field", Text),
    Column("namespace", Text),
    Column("since", BigInteger, nullable=False),
    Index("ix_problems_path", "path"),
)

intents = Table(
    "intents",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("op", String(8), nullable=False),
    Column("note_id", String(64), nullable=False),
    Column("path", Text, nullable=False),
    Column("base_etag", String(64)),
    Column("new_etag", String(64)),
    Column("body", LargeBinary),
    Column("actor", JSON, nullable=False),
    Column("request", JSON),
    Column("state", String(12), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_intents_state", "state"),
)

blobs = Table(
    "blobs",
    metadata,
    Column("etag", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("key", String(80), nullable=False, unique=True),
    Column("note_id", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("op", String(8), nullable=False),
    Column("path", Text, nullable=False),
    Column("old_path", Text),
    Column("etag", String(64)),
    Column("author_name", Text, nullable=False),
    Column("author_email", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("not_before", BigInteger, nullable=False),
    Column("state", String(12), nullable=False),
    Column("sha", String(64)),
    Column("review_id", String(64)),
    Index("ix_versions_note_id", "note_id", "seq"),
    Index("ix_versions_state", "state", "not_before"),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("scope", Text, nullable=False),
    Column("domain", String(16), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("released_at", BigInteger),
    Column("released_by", Text),
    UniqueConstraint("scope", "domain", "hash"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("principal_id", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request_hash", String(64), nullable=False),
    Column("intent_id", String(40)),
    Column("status", Integer),
    Column("answer", JSON),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_idempotency_created_at", "created_at"),
    Index("ix_idempotency_intent_id", "intent_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("request_id", String(64)),
    Column("key_id", String(40)),
    Column("actor_user_id", String(64)),
    Column("actor_agent_id", String(64)),
    Column("action", String(40), nullable=False),
    Column("target_type", String(24), nullable=False),
    Column("target_id", Text),
    Column("namespace", Text),
    Column("decision", String(8), nullable=False),
    Column("reason", Text, nullable=False),
    Column("hash", String(64)),
    Index("ix_audit_at", "at"),
    Index("ix_audit_actor", "actor_user_id", "seq"),
)

meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

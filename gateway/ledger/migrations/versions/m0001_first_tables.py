"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("agent_id", sa.String(length=64), nullable=True),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_keys_hash")),
    )
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("actor_user_id", sa.String(length=64), nullable=True),
        sa.Column("actor_agent_id", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("target_type", sa.String(length=24), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=True),
        sa.Column("namespace", sa.Text(), nullable=True),
        sa.Column("decision", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_at", "audit", ["at"], unique=False)
    op.create_table(
        "blobs",
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("etag", name=op.f("pk_blobs")),
    )
    op.create_table(
        "idempotency",
        sa.Column("principal_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("intent_id", sa.String(length=40), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("principal_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"], unique=False)
    op.create_index("ix_idempotency_intent_id", "idempotency", ["intent_id"], unique=False)
    op.create_table(
        "index_removals",
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_index_removals")),
    )
    op.create_table(
        "intents",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("op", sa.String(length=8), nullable=False),
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("base_etag", sa.String(length=64), nullable=True),
        sa.Column("new_etag", sa.String(length=64), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("actor", sa.JSON(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=True),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_intents")),
    )
    op.create_index("ix_intents_state", "intents", ["state"], unique=False)
    op.create_table(
        "meta",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "notes",
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("path_key", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("agent_id", sa.String(length=64), nullable=True),
        sa.Column("workspace_id", sa.String(length=64), nullable=True),
        sa.Column("session_id", sa.String(length=64), nullable=True),
        sa.Column("memory_type", sa.String(length=64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("visibility", sa.String(length=24), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("source_ref", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.Column("fts_etag", sa.String(length=64), nullable=True),
        sa.Column("vector_etag", sa.String(length=64), nullable=True),
        sa.Column("index_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_notes")),
        sa.UniqueConstraint("path", name=op.f("uq_notes_path")),
    )
    op.create_index("ix_notes_content_hash", "notes", ["content_hash"], unique=False)
    op.create_index("ix_notes_etag", "notes", ["etag"], unique=False)
    op.create_index("ix_notes_namespace_status", "notes", ["namespace", "status"], unique=False)
    op.create_index("ix_notes_path_key", "notes", ["path_key"], unique=False)
    op.create_index("ix_notes_updated_at", "notes", ["updated_at", "note_id"], unique=False)
    op.create_table(
        "problems",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("advice", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("field", sa.Text(), nullable=True),
        sa.Column("namespace", sa.Text(), nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_problems")),
    )
    op.create_index("ix_problems_path", "problems", ["path"], unique=False)
    op.create_table(
        "tombstones",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("domain", sa.String(length=16), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("released_at", sa.BigInteger(), nullable=True),
        sa.Column("released_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tombstones")),
        sa.UniqueConstraint("scope", "domain", "hash", name=op.f("uq_tombstones_scope")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("id_key", sa.String(length=64), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("preferences", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("id_key", name=op.f("uq_users_id_key")),
    )
    op.create_table(
        "versions",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("op", sa.String(length=8), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("old_path", sa.Text(), nullable=True),
        sa.Column("etag", sa.String(length=64), nullable=True),
        sa.Column("author_name", sa.Text(), nullable=False),
        sa.Column("author_email", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_versions")),
        sa.UniqueConstraint("key", name=op.f("uq_versions_key")),
    )
    op.create_index("ix_versions_note_id", "versions", ["note_id", "seq"], unique=False)
    op.create_index("ix_versions_state", "versions", ["state", "not_before"], unique=False)
    op.create_table(
        "files",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("note_id", sa.String(length=64), nullable=True),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("ino", sa.BigInteger(), nullable=False),
        sa.Column("ctime_ns", sa.BigInteger(), nullable=False),
        sa.Column("missing_since", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["note_id"], ["notes.note_id"], name=op.f("fk_files_note_id_notes"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_files")),
    )
    op.create_index("ix_files_note_id", "files", ["note_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_files_note_id", table_name="files")
    op.drop_table("files")
    op.drop_index("ix_versions_state", table_name="versions")
    op.drop_index("ix_versions_note_id", table_name="versions")
    op.drop_table("versions")
    op.drop_table("users")
    op.drop_table("tombstones")
    op.drop_index("ix_problems_path", table_name="problems")
    op.drop_table("problems")
    op.drop_index("ix_notes_updated_at", table_name="notes")
    op.drop_index("ix_notes_path_key", table_name="notes")
    op.drop_index("ix_notes_namespace_status", table_name="notes")
    op.drop_index("ix_notes_etag", table_name="notes")
    op.drop_index("ix_notes_content_hash", table_name="notes")
    op.drop_table("notes")
    op.drop_table("meta")
    op.drop_index("ix_intents_state", table_name="intents")
    op.drop_table("intents")
    op.drop_table("index_removals")
    op.drop_index("ix_idempotency_intent_id", table_name="idempotency")
    op.drop_index("ix_idempotency_created_at", table_name="idempotency")
    op.drop_table("idempotency")
    op.drop_table("blobs")
    op.drop_index("ix_audit_at", table_name="audit")
    op.drop_table("audit")
    op.drop_table("api_keys")

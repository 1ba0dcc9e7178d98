"""Reviews: drafts, decisions that are being carried out, lineage; versions know the draft they came from."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("review_id", sa.String(length=64), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_decisions")),
    )
    op.create_table(
        "lineage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("child", sa.String(length=64), nullable=False),
        sa.Column("parent", sa.String(length=80), nullable=False),
        sa.Column("relation", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lineage")),
        sa.UniqueConstraint("child", "parent", "relation", name=op.f("uq_lineage_child")),
    )
    with op.batch_alter_table("lineage", schema=None) as batch_op:
        batch_op.create_index("ix_lineage_parent", ["parent"], unique=False)

    op.create_table(
        "reviews",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("proposal", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("target_id", sa.String(length=64), nullable=True),
        sa.Column("memory_id", sa.String(length=64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("written_etag", sa.String(length=64), nullable=False),
        sa.Column("base", sa.JSON(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("proposed_by", sa.Text(), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("agent_id", sa.String(length=64), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("candidate_id", sa.String(length=64), nullable=True),
        sa.Column("branch_sha", sa.String(length=64), nullable=True),
        sa.Column("branch_etag", sa.String(length=64), nullable=True),
        sa.Column("pushed_sha", sa.String(length=64), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_via", sa.String(length=16), nullable=True),
        sa.Column("decision_reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index("ix_reviews_memory_id", ["memory_id"], unique=False)
        batch_op.create_index("ix_reviews_path", ["path"], unique=False)
        batch_op.create_index("ix_reviews_status", ["status", "created_at"], unique=False)
        batch_op.create_index("ix_reviews_subject", ["subject", "status"], unique=False)

    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("review_id", sa.String(length=64), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.drop_column("review_id")

    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.drop_index("ix_reviews_subject")
        batch_op.drop_index("ix_reviews_status")
        batch_op.drop_index("ix_reviews_path")
        batch_op.drop_index("ix_reviews_memory_id")

    op.drop_table("reviews")
    with op.batch_alter_table("lineage", schema=None) as batch_op:
        batch_op.drop_index("ix_lineage_parent")

    op.drop_table("lineage")
    op.drop_table("decisions")

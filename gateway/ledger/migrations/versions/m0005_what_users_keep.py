"""What users keep beside their memories: structured contents, switched skills, files of sandboxes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "structured",
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("room", sa.String(length=16), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_structured")),
    )
    op.create_table(
        "user_skill_configs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("skill_name", sa.String(length=100), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_skill_configs")),
        sa.UniqueConstraint("user_id", "skill_name", name=op.f("uq_user_skill_configs_user_id")),
    )
    op.create_table(
        "sandbox_files",
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("sandbox_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("text_hash", sa.String(length=64), nullable=False),
        sa.Column("synced_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "sandbox_id", "name", name=op.f("pk_sandbox_files")),
    )


def downgrade() -> None:
    op.drop_table("sandbox_files")
    op.drop_table("user_skill_configs")
    op.drop_table("structured")

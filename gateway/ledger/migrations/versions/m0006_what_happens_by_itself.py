"""What happens by itself: work that waits, jobs, events, use."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dirty",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("key", sa.String(length=160), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("tried_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "key", name=op.f("pk_dirty")),
    )
    op.create_index("ix_dirty_tried_at", "dirty", ["tried_at", "created_at"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("scope", sa.String(length=16)),
        sa.Column("scope_id", sa.String(length=160)),
        sa.Column("user_id", sa.String(length=64)),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("phase", sa.String(length=24), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("requested_by", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_status", "jobs", ["status", "kind"])
    op.create_index("ix_jobs_created_at", "jobs", ["created_at", "id"])
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("change", sa.String(length=16), nullable=False),
        sa.Column("target_id", sa.String(length=64), nullable=False),
        sa.Column("namespace", sa.Text()),
        sa.Column("visibility", sa.String(length=24)),
        sa.Column("user_id", sa.String(length=64)),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"])
    op.create_table(
        "erasures",
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("visibility", sa.String(length=24), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=False),
        sa.Column("purged_at", sa.BigInteger()),
        sa.Column("job_id", sa.String(length=40)),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_erasures")),
    )
    op.create_table(
        "orphans",
        sa.Column("place", sa.String(length=160), nullable=False),
        sa.Column("text_hash", sa.String(length=64), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("place", "text_hash", name=op.f("pk_orphans")),
    )
    op.create_table(
        "turns",
        sa.Column("turn", sa.String(length=64), nullable=False),
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("turn", "note_id", name=op.f("pk_turns")),
    )
    op.create_index("ix_turns_at", "turns", ["at"])
    op.create_table(
        "usage",
        sa.Column("note_id", sa.String(length=64), nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.Column("last_hit_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_usage")),
    )


def downgrade() -> None:
    for name in ("usage", "turns", "orphans", "erasures", "events", "jobs", "dirty"):
        op.drop_table(name)

"""When memories hold."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.add_column(sa.Column("temporal_kind", sa.String(length=16), nullable=True))
        batch_op.add_column(sa.Column("valid_from", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("valid_until", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("precision", sa.String(length=16), nullable=True))
        batch_op.add_column(sa.Column("timezone", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("temporal_confidence", sa.Float(), server_default="1", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.drop_column("temporal_confidence")
        batch_op.drop_column("timezone")
        batch_op.drop_column("precision")
        batch_op.drop_column("valid_until")
        batch_op.drop_column("valid_from")
        batch_op.drop_column("temporal_kind")

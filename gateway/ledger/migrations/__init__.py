"""The ledger's migrations, run by alembic."""

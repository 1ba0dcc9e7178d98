"""Runs migrations on the connection that `gateway.ledger.database` opened."""

from alembic import context

from gateway.ledger.schema_upkeep import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()

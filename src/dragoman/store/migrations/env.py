"""Alembic's entry. The connection and its transaction belong to `dragoman.store.schema`."""

from alembic import context

from dragoman.store.schema import VERSION_TABLE
from dragoman.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()

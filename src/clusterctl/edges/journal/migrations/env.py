"""Alembic's entry: runs the revisions on the journal's connection."""

from alembic import context

from clusterctl.edges.journal.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()

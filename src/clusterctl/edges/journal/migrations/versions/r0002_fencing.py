"""Events carry a key of their own, so that none is written twice; claims name their owner, to parts of a second."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; what was written before has no key, and its claims expire by time alone."""
    op.add_column("event", sa.Column("idempotency_key", sa.String(64)))
    op.create_index("event_by_idempotency_key", "event", ["idempotency_key"], unique=True)
    for name, length in (("boot", 128), ("machine", 64), ("actor", 128), ("command", 64)):
        op.add_column("claim", sa.Column(name, sa.String(length), nullable=False, server_default=""))
    op.add_column("claim", sa.Column("since", sa.Float(53), nullable=False, server_default="0"))
    if op.get_context().dialect.name != "sqlite":  # where a column holds what it is given, whatever its type
        op.alter_column("claim", "expires_at", type_=sa.Float(53))

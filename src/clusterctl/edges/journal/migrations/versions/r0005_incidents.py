"""Incidents have stored states. `unfinished`: 1 where something of one is left to do."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the table; no older program has written an incident."""
    op.create_table(
        "incident_state",
        sa.Column("incident", sa.String(128), primary_key=True),
        sa.Column("unfinished", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("state_digest", sa.String(64), nullable=False),
    )
    op.create_index("incident_state_by_unfinished", "incident_state", ["unfinished", "last_seq"])

"""The first journal: events, evidence, node states, claims."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "event",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("stream", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("event_by_subject", "event", ["stream", "subject", "seq"])
    op.create_table(
        "evidence",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("where", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "node_state",
        sa.Column("node", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False, unique=True),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_index("node_state_by_stage", "node_state", ["stage"])
    op.create_table(
        "claim",
        sa.Column("node", sa.String(128), primary_key=True),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("pid_started", sa.String(32), nullable=False),
        sa.Column("expires_at", sa.Integer, nullable=False),
    )

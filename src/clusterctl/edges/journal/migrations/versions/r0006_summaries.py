"""A list of the fleet reads an index. In a row of SQLite a summary's digest lies behind the whole state, which is long.

PostgreSQL keeps long states out of the rows, and its indexes take no long summary.
"""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add an index that has all that a list reads."""
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("node_state_by_name", "node_state", ["name", "node", "summary", "summary_digest"])

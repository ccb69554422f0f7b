"""Events of a few kinds are found among millions: quarantines of the last weeks, over all nodes."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_index("event_by_kind", "event", ["kind", "seq"])

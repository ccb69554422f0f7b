"""Events are chained by digests within their stream; states carry digests. Past events get theirs now."""

import sqlalchemy as sa
from alembic import op

from clusterctl.edges.journal.integrity import CHAINED, event_digest, save_heads

revision = "0004"
down_revision = "0003"

BATCH = 1000


def upgrade() -> None:
    """Add the digests. The states get theirs where they are computed again, after the last migration."""
    for table, names in (("event", ("previous", "digest")), ("node_state", ("summary_digest", "state_digest"))):
        for name in names:
            op.add_column(table, sa.Column(name, sa.String(64), nullable=False, server_default=""))
    op.create_table(
        "stream_head",
        sa.Column("stream", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    _chain(op.get_bind())


def _chain(connection: sa.Connection) -> None:
    event = sa.table("event", *map(sa.column, ("seq", "previous", "digest", *CHAINED)))
    link = sa.update(event).where(event.c.seq == sa.bindparam("at_seq"))
    link = link.values(previous=sa.bindparam("link"), digest=sa.bindparam("own"))
    last = -1
    heads: dict[str, str] = {}
    while rows := _after(connection, event, last):
        links = []
        for row in rows:
            previous = heads.get(row["stream"], "")
            heads[row["stream"]] = event_digest(previous, row)
            links.append({"at_seq": row["seq"], "link": previous, "own": heads[row["stream"]]})
        connection.execute(link, links)
        last = rows[-1]["seq"]
    save_heads(connection, heads)


def _after(connection: sa.Connection, event: sa.TableClause, seq: int) -> list[sa.RowMapping]:
    query = sa.select(event).where(event.c.seq > seq).order_by(event.c.seq).limit(BATCH)
    return list(connection.execute(query).mappings().all())

"""The journal's tables. Alembic (`migrations/`) creates them; this is what they look like at the newest version."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

SCHEMA_VERSION = "0006"
"""The newest Alembic revision that this program knows."""

metadata = MetaData()

event = Table(
    "event",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("stream", String(16), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", String(32), nullable=False),
    Column("run", String(64), nullable=False),
    Column("actor", String(128), nullable=False),
    Column("data", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("idempotency_key", String(64)),
    Column("previous", String(64), nullable=False, server_default=""),
    Column("digest", String(64), nullable=False, server_default=""),
    Index("event_by_subject", "stream", "subject", "seq"),
    Index("event_by_kind", "kind", "seq"),
    Index("event_by_idempotency_key", "idempotency_key", unique=True),
    sqlite_autoincrement=True,
)

stream_head = Table(
    "stream_head",
    metadata,
    Column("stream", String(16), primary_key=True),
    Column("digest", String(64), nullable=False),
)
"""The digest of the last event of each stream: a lost end of the chain is found."""

evidence = Table(
    "evidence",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("source", Text, nullable=False),
    Column("where", Text, nullable=False),
    Column("at", String(32), nullable=False),
    Column("origin", String(16), nullable=False),
    Column("content", LargeBinary, nullable=False),
)

node_state = Table(
    "node_state",
    metadata,
    Column("node", String(128), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("stage", String(16), nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("summary", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("summary_digest", String(64), nullable=False, server_default=""),
    Column("state_digest", String(64), nullable=False, server_default=""),
    Index("node_state_by_stage", "stage"),
    Index("node_state_by_name", "name", "node", "summary", "summary_digest").ddl_if(dialect="sqlite"),
)

incident_state = Table(
    "incident_state",
    metadata,
    Column("incident", String(128), primary_key=True),
    Column("unfinished", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("state_digest", String(64), nullable=False),
    Index("incident_state_by_unfinished", "unfinished", "last_seq"),
)

claim = Table(
    "claim",
    metadata,
    Column("node", String(128), primary_key=True),
    Column("run", String(64), nullable=False),
    Column("token", Integer, nullable=False),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("pid_started", String(32), nullable=False),
    Column("expires_at", Float(53), nullable=False),
    Column("boot", String(128), nullable=False, server_default=""),
    Column("machine", String(64), nullable=False, server_default=""),
    Column("actor", String(128), nullable=False, server_default=""),
    Column("command", String(64), nullable=False, server_default=""),
    Column("since", Float(53), nullable=False, server_default="0"),
)

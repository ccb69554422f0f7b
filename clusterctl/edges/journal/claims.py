"""Claims: who may act on which node. Rows, not events; expiry by the database's clock; fenced by a growing token."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, RowMapping, delete, extract, func, insert, select, text, update

from clusterctl.edges.journal.tables import claim as table
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Claim, Claims

LEASE_S = 120
"""Seconds that a claim lasts without being renewed."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from a later one with the same pid by when it started (clock ticks since boot)."""

    host: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()) or "")

    @property
    def dead(self) -> bool:
        """True only where it is certain: a process of this machine that is gone."""
        return self.host == socket.gethostname() and _started(self.pid) != self.started


def take(connection: Connection, nodes: Iterable[NodeId], run: str, owner: Owner) -> Claims:
    """Claim what is free, expired, ours, or held by a dead local process."""
    now = _now(connection)
    rows = {row["node"]: row for row in connection.execute(select(table)).mappings()}
    token = max((row["token"] for row in rows.values()), default=0)
    granted: dict[NodeId, Claim] = {}
    refused: dict[NodeId, str] = {}
    for node in nodes:
        row = rows.get(node)
        if row is not None and not _takeable(row, run, now):
            refused[node] = f"run {row['run']} (pid {row['pid']} on {row['host']}) holds it"
            continue
        token += 1
        granted[node] = Claim(node, run, token)
        connection.execute(delete(table).where(table.c.node == node))
        values = {"host": owner.host, "pid": owner.pid, "pid_started": owner.started, "expires_at": now + LEASE_S}
        connection.execute(insert(table).values(node=node, run=run, token=token, **values))
    return Claims(granted, refused)


def check(connection: Connection, claim: Claim) -> None:
    """Raise `ClaimLostError` unless the claim is still the newest on its node."""
    held = connection.execute(select(table.c.token).where(table.c.node == claim.node)).scalar()
    if held != claim.token:
        raise ClaimLostError(
            "another run has taken this node over", where=claim.node, remedy="let it finish, then run again"
        )


def renew(connection: Connection, run: str) -> None:
    expires = _now(connection) + LEASE_S
    connection.execute(update(table).where(table.c.run == run).values(expires_at=expires))


def release(connection: Connection, claims: Iterable[Claim]) -> None:
    """The row stays, free and with a newer token: tokens only grow, and what is released no longer writes."""
    for claim in claims:
        ours = (table.c.node == claim.node) & (table.c.token == claim.token)
        connection.execute(update(table).where(ours).values(run="", token=table.c.token + 1, expires_at=0))


def _takeable(row: RowMapping, run: str, now: int) -> bool:
    owner = Owner(row["host"], row["pid"], row["pid_started"])
    return row["run"] == run or row["expires_at"] <= now or owner.dead


def _now(connection: Connection) -> int:
    """Seconds since the epoch by the database's clock."""
    if connection.dialect.name == "sqlite":
        return int(connection.execute(text("SELECT CAST(strftime('%s','now') AS INTEGER)")).scalar_one())
    return int(connection.execute(select(extract("epoch", func.clock_timestamp()))).scalar_one())


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]

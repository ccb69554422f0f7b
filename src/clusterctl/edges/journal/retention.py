"""Retention of evidence: which raw output is old and passing, and its removal. The digest and the row stay.

kept     what an event names otherwise than as passing: a bad finding, an act, a burn, a cable, a job
         what the present state of a node rests on, and the last reading of the fabric's counters, however old
         what no event names: `backup.compact` removes it while no run goes on
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, func, select, update

from clusterctl.edges.journal.database import Database
from clusterctl.edges.journal.named_evidence import digests_in, is_reading, names
from clusterctl.edges.journal.tables import event, evidence, node_state
from clusterctl.edges.journal.verification import BATCH, rows_of


@dataclass(frozen=True, slots=True)
class Outdated:
    """Evidence whose raw output may be removed, in bytes as stored. `seq`: the last event that was looked at."""

    digests: tuple[str, ...] = ()
    bytes: int = 0
    seq: int = 0


def outdated(connection: Connection, before: datetime) -> Outdated:
    """Return the evidence from before `before` that only passing findings and readings name.

    It takes some 200 bytes of memory for each piece that old.
    """
    sizes = _old(connection, before)
    named: set[str] = set()
    last: frozenset[str] = frozenset()
    seq = 0
    for row in rows_of(connection, event, "seq") if sizes else ():
        seq = row["seq"]
        passing, bad = names(row)
        for digest in bad:
            sizes.pop(digest, None)
        named.update(digest for digest in passing if digest in sizes)
        if is_reading(row):
            last = passing
    for digest in (*last, *_in_states(connection)):
        sizes.pop(digest, None)
    found = tuple(digest for digest in sizes if digest in named)
    return Outdated(found, sum(sizes[digest] for digest in found), seq)


def _old(connection: Connection, before: datetime) -> dict[str, int]:
    """Return the size of each piece from before `before` that has its output still."""
    size = func.length(evidence.c.content)
    query = select(evidence.c.digest, size).where(evidence.c.at < before.isoformat(), size > 0)
    return {row[0]: row[1] for row in connection.execute(query)}


def _in_states(connection: Connection) -> Iterator[str]:
    if connection.execute(select(node_state.c.node).limit(1)).first() is not None:
        for row in rows_of(connection, node_state, "node"):
            yield from digests_in(row["state"])


def remove(database: Database, found: Outdated) -> int:
    """Remove the raw output of `found` while runs go on; return of how many pieces.

    What an event has named since `found` was looked for is kept. Interrupted, it goes on with the next call.
    """
    starts = range(0, len(found.digests), BATCH)
    return sum(
        database.write(partial(_remove, batch=found.digests[start : start + BATCH], seq=found.seq)) for start in starts
    )


def _remove(connection: Connection, batch: Sequence[str], seq: int) -> int:
    later = connection.execute(select(event.c.evidence, event.c.data).where(event.c.seq > seq)).all()
    named = {digest for row in later for digest in digests_in(row.evidence, row.data)}
    chosen = [digest for digest in batch if digest not in named]
    connection.execute(update(evidence).where(evidence.c.digest.in_(chosen)).values(content=b""))
    return len(chosen)

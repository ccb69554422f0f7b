"""Digests of the journal's rows: events are chained within their stream, evidence and states carry a digest each.

The chain finds damage and lost rows. It does not stop a program that may write to the database and computes all digests
again: compare `clusterctl journal verify` with an earlier output or a backup for that.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select

from clusterctl.edges.journal.tables import stream_head
from clusterctl.fleet.codec import payload_from_json
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.finding import Digest, Evidence, Origin

Row = Mapping[str, Any] | RowMapping

CHAINED = ("stream", "subject", "kind", "version", "at", "run", "actor", "data", "evidence")
"""The columns of an event that its digest covers, with the digest of the event before it in its stream."""
MAX_EVIDENCE_BYTES = 512 << 20
"""Twice the longest answer of any peer (MAAS, UFM)."""
RESTORE = "run clusterctl journal verify for the extent, then clusterctl journal restore with the last backup"
COMPACT = "run clusterctl journal compact: it computes the states again from the events"


class JournalDamagedError(EnvironmentBrokenError):
    """A row of the journal is not what was written. Exit code 3."""

    kind = "journal_damaged"


def event_digest(previous: str, row: Row) -> str:
    """Return the digest of an event's row after the event with the digest `previous`; empty for the first one."""
    fields = [previous, *(row[column] for column in CHAINED)]
    return hashlib.sha256(json.dumps(fields, default=repr).encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a state or summary."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def checked_text(text: str, digest: str, where: str) -> str:
    """Return `text`. Raise `JournalDamagedError` where it does not match its digest."""
    if not isinstance(text, str) or text_digest(text) != digest:
        raise JournalDamagedError("a stored node state does not match its digest", where=where, remedy=COMPACT)
    return text


def event_of(row: Row) -> Event:
    """Return a row of the event table as an event. Raise `JournalDamagedError` where it does not match its digest, and
    what `payload_from_json` raises for a payload.
    """
    where = f"event {row['seq']}"
    if event_digest(row["previous"], row) != row["digest"]:
        raise JournalDamagedError("the event does not match its digest", where=where, remedy=RESTORE)
    try:
        return Event(
            seq=row["seq"],
            stream=Stream(row["stream"]),
            subject=row["subject"],
            at=datetime.fromisoformat(row["at"]),
            run=row["run"],
            actor=row["actor"],
            payload=payload_from_json(row["seq"], row["kind"], row["version"], row["data"]),
            evidence=tuple(Digest(digest) for digest in json.loads(row["evidence"])),
        )
    except (ValueError, TypeError) as error:
        cause = f"the event cannot be read: {type(error).__name__}"
        raise JournalDamagedError(cause, where=where, remedy=RESTORE) from None


def packed(item: Evidence) -> dict[str, object]:
    """Return evidence as a row of its table, without its digest."""
    return {
        "source": item.source,
        "where": item.where,
        "at": item.at.isoformat(),
        "origin": item.origin.value,
        "content": zlib.compress(item.content, 6),
    }


def removed(row: Row) -> bool:
    """Return whether the raw output in a row of the evidence table was removed; no output is stored as no bytes."""
    return bool(row["content"] == b"")


def unpacked(row: Row, most: int = MAX_EVIDENCE_BYTES) -> Evidence:
    """Return a row of the evidence table, of at most so many bytes.

    Raise `JournalDamagedError` where it does not match its digest.
    """
    where = f"evidence {row['digest']}"
    try:
        at, content = datetime.fromisoformat(row["at"]), _decompressed(row["content"], most)
        item = Evidence(row["source"], row["where"], at, Origin(row["origin"]), content)
        intact = item.digest == row["digest"]
    except (ValueError, TypeError, zlib.error, MemoryError):
        intact = False
    if not intact:
        raise JournalDamagedError("the evidence does not match its digest", where=where, remedy=RESTORE)
    return item


def _decompressed(content: bytes, most: int) -> bytes:
    """Return the content of evidence. Raise `ValueError` where it is longer: few bytes may hold gigabytes."""
    reader = zlib.decompressobj()
    found = reader.decompress(content, most + 1)
    if len(found) > most or not reader.eof:
        raise ValueError("cut off, or too long")
    return found


def heads(connection: Connection) -> dict[str, str]:
    """Return the digest of the last event of each stream."""
    rows = connection.execute(select(stream_head.c.stream, stream_head.c.digest)).all()
    return {row.stream: row.digest for row in rows}


def save_heads(connection: Connection, changed: Mapping[str, str]) -> None:
    """Write the digest of the last event of these streams."""
    if changed:
        connection.execute(delete(stream_head).where(stream_head.c.stream.in_(list(changed))))
        connection.execute(
            insert(stream_head), [{"stream": name, "digest": digest} for name, digest in changed.items()]
        )


def chained(connection: Connection, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of new events with their links, and make the last of them the heads of their streams."""
    known = heads(connection)
    linked: list[dict[str, Any]] = []
    for row in rows:
        previous = known.get(row["stream"], "")
        known[row["stream"]] = digest = event_digest(previous, row)
        linked.append({**row, "previous": previous, "digest": digest})
    save_heads(connection, {row["stream"]: known[row["stream"]] for row in linked})
    return linked

"""Write the SQLite journal of a large site with long histories, for measurements: `nodes`, `why`, metrics, the page.

    python -m benchmarks.large_journal FOLDER [--nodes 32768] [--cycles 53] [--days 730]

Each node went through all steps to gold in each cycle (19 events). All nodes wrote their n-th event on the same day,
the last one today; the whole lasts so many days. A report has two findings, but those of the last cycle, and all those
of the first 16 nodes, have twenty: with twenty in each, 33 million events would take 60 GB instead of 20. The chain of
digests is whole. Each node has an inventory of its own, which its events do not have.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.journal_size import Clock, report
from clusterctl.edges.journal import open_journal
from clusterctl.edges.journal.integrity import CHAINED, text_digest
from clusterctl.fleet.codec import payload_to_json, state_to_json, summary_to_json
from clusterctl.fleet.event import Event, Payload, Stream
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import Gpu, Inventory, Location, NodeId, RevalidationOrigin, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import RevalidationOrdered
from clusterctl.fleet.payloads.node import NodeDescribed, NodeIdentified, ReportRecorded, StageAdvanced, StepStarted
from clusterctl.fleet.state import NodeState
from tests.edges.site.ready import write_ready_site

WHOLE = 16
"""So many nodes have twenty findings in all their reports."""
BRIEF = 2
COLUMNS = ("stream", "subject", "kind", "version", "at", "run", "actor", "data", "evidence", "idempotency_key")


def story(cycles: int, *, whole: bool) -> list[Payload]:
    """Return the payloads of one node: described, identified, then all steps again and again."""
    gpus = tuple(Gpu(f"Video.Slot.{21 + at}-1", "NVIDIA H100 80GB HBM3", Serial(f"16530{at:02d}")) for at in range(8))
    inventory = Inventory("Dell Inc.", "PowerEdge XE9680", Serial("SN"), gpus=gpus)
    found: list[Payload] = [
        NodeDescribed(name="node", bmc="192.0.2.1", rack="A01", unit=4),
        NodeIdentified(inventory=inventory, sku="dell-xe9680-h100", root_disk=Serial("D")),
    ]
    for cycle in range(cycles):
        if cycle:
            since, night = Step.DISCOVER, RevalidationOrigin.NIGHT
            found.append(
                RevalidationOrdered(since=since, to=Stage.SEEN, was=Stage.GOLD, origin=night, reason="nightly")
            )
        for step in Step:
            full = report(step.value)
            brief = full if whole or cycle == cycles - 1 else replace(full, findings=full.findings[:BRIEF])
            found += [
                StepStarted(step=step),
                ReportRecorded(report=brief),
                StageAdvanced(to=step.leads_to, verdict=Verdict.PASS),
            ]
    return found


def build(folder: Path, nodes: int, cycles: int, span: timedelta) -> Path:
    """Write site and journal; return the journal's file."""
    write_ready_site(folder)
    lines = [
        f"{name_of(i)},10.{20 + i // 65536}.{i // 256 % 256}.{i % 256},,A{i // 4},{4 + i % 4 * 8}" for i in range(nodes)
    ]
    (folder / "bmcs.csv").write_text("name,bmc_address,serial,rack,unit\n" + "\n".join(lines) + "\n")
    file = folder / "state" / "journal.db"
    open_journal(f"sqlite:///{file}", Clock()).close()
    base = sqlite3.connect(file, isolation_level=None)
    base.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000;")
    indexes = base.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'event' AND sql > ''"
    )
    kept = indexes.fetchall()
    for name, _ in kept:
        base.execute(f"DROP INDEX {name}")
    _events(base, nodes, cycles, span)
    for _, sql in kept:
        base.execute(sql)
    _states(base, nodes, cycles, span)
    base.execute("ANALYZE")
    base.execute("PRAGMA journal_mode=WAL")
    base.close()
    return file


def name_of(number: int) -> str:
    return f"node{number:05d}"


def _events(base: sqlite3.Connection, nodes: int, cycles: int, span: timedelta) -> None:
    brief, whole = story(cycles, whole=False), story(cycles, whole=True)
    now, count, last = datetime.now(UTC), len(brief), ""
    for at, (short, full) in enumerate(zip(brief, whole, strict=True)):
        moment = (now - span * (count - at) / count).isoformat()
        rows = list(_rows(at * nodes + 1, nodes, moment, (payload_to_json(full), payload_to_json(short), short), last))
        last = rows[-1][-1]
        base.execute("BEGIN")
        base.executemany(f"INSERT INTO event VALUES ({', '.join('?' * 13)})", rows)
        base.execute("COMMIT")
    base.execute("INSERT INTO stream_head VALUES ('node', ?)", (last,))


def _rows(
    first: int, nodes: int, moment: str, payloads: tuple[str, str, Payload], previous: str
) -> Iterator[tuple[Any, ...]]:
    """Yield one event of each node. What their digests have in common is written as JSON once."""
    full, short, payload = payloads
    for group, data in ((range(min(WHOLE, nodes)), full), (range(WHOLE, nodes), short)):
        values = ("node", "\x00", payload.kind.value, payload.version, moment, "r", "clusterctl", data, "[]", None)
        template = dict(zip(COLUMNS, values, strict=True))
        text = json.dumps(["\x00", *(template[column] for column in CHAINED)])
        start, middle, end = text.split(json.dumps("\x00")[1:-1])
        tail = values[2:]
        for number in group:
            node = f"id{number:05d}"
            digest = sha256(f"{start}{previous}{middle}{node}{end}".encode()).hexdigest()
            yield (first + number, "node", node, *tail, previous, digest)
            previous = digest


def _states(base: sqlite3.Connection, nodes: int, cycles: int, span: timedelta) -> None:
    found = story(cycles, whole=False)
    now, count = datetime.now(UTC), len(found)
    events = [
        Event(i + 1, Stream.NODE, "id", now - span * (count - i) / count, "r", "clusterctl", payload)
        for i, payload in enumerate(found)
    ]
    whole = fold(events, NodeId("id"))
    for i in range(nodes):
        state = _named(whole, i, (count - 1) * nodes + 1 + i)
        texts = summary_to_json(state), state_to_json(state)
        base.execute(
            "INSERT INTO node_state VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (state.id, state.name, state.stage.value, state.last_seq, *texts, *map(text_digest, texts)),
        )


def _named(state: NodeState, number: int, seq: int) -> NodeState:
    assert state.inventory is not None
    assert state.inventory.gpus is not None
    parts = enumerate(state.inventory.gpus)
    gpus = tuple(replace(gpu, serial=Serial(f"16530{number:05d}{at:02d}")) for at, gpu in parts)
    inventory = replace(state.inventory, serial=Serial(f"SN{number:05d}"), gpus=gpus)
    place, node = Location(f"A{number // 4}", 4 + number % 4 * 8), NodeId(f"id{number:05d}")
    return replace(state, id=node, name=name_of(number), last_seq=seq, inventory=inventory, location=place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=32768)
    parser.add_argument("--cycles", type=int, default=53)
    parser.add_argument("--days", type=float, default=730.0)
    options = parser.parse_args()
    began = time.monotonic()
    file = build(options.folder, options.nodes, options.cycles, timedelta(days=options.days))
    events = len(story(options.cycles, whole=False))
    print(
        f"{options.nodes} nodes × {events} events, {file.stat().st_size / 1e9:.1f} GB,"
        f" built in {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()

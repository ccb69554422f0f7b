"""How long `clusterctl nodes` and `plan` take on a big journal, compared with `python -c pass` and `--help`.

    python benchmarks/journal_size.py [--nodes 4096] [--events 200]

Builds a site with a journal of NODES × EVENTS events (the real node states: full reports of every step), then times
whole processes, five runs each after one warm-up, and prints medians and the ratio to `python -c pass` of the same
minute.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import create_engine, insert

from clusterctl.edges.journal import open_journal
from clusterctl.edges.journal.integrity import event_digest, text_digest
from clusterctl.edges.journal.tables import event as events
from clusterctl.edges.journal.tables import node_state, stream_head
from clusterctl.fleet.codec import payload_to_json, state_to_json, summary_to_json
from clusterctl.fleet.event import Event, Payload, Stream
from clusterctl.fleet.finding import Origin, Report, Verdict, passed
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import NodeId, RevalidationOrigin, Stage, Step
from clusterctl.fleet.payloads.decisions import RevalidationOrdered
from clusterctl.fleet.payloads.node import NodeDescribed, ReportRecorded, StageAdvanced, StepStarted
from clusterctl.fleet.quantity import Quantity, exactly
from tests.edges.site.ready import write_ready_site

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """Only opens the journal."""

    def now(self) -> datetime:
        return START


def report(step: str) -> Report:
    """Return a report as long as a real burn-in's."""
    findings = tuple(
        passed(f"check_{i}", "as it should be", measured=Quantity(8, "GPUs"), expected=exactly(8, "GPUs"))
        for i in range(20)
    )
    return Report(step, "bootstrap", findings, frozenset({Origin.REAL}))


def story(node: str, name: str, count: int, first: int) -> list[Event]:
    """Return `count` events of one node: described, then all steps to gold again and again, as a revalidation does."""
    payloads: list[Payload] = [NodeDescribed(name=name, bmc="192.0.2.1", rack="A01", unit=4)]
    while len(payloads) < count:
        if len(payloads) > 1:
            since, night = Step.DISCOVER, RevalidationOrigin.NIGHT
            payloads.append(
                RevalidationOrdered(since=since, to=Stage.SEEN, was=Stage.GOLD, origin=night, reason="nightly")
            )
        for step in Step:
            payloads += [
                StepStarted(step=step),
                ReportRecorded(report=report(step.value)),
                StageAdvanced(to=step.leads_to, verdict=Verdict.PASS),
            ]
    return [
        Event(first + i, Stream.NODE, node, START + timedelta(seconds=i), "r", "clusterctl", payload)
        for i, payload in enumerate(payloads[:count])
    ]


def row(event: Event, previous: str) -> dict[str, object]:
    """Return the event as a row of its table, after the event with the digest `previous`."""
    found: dict[str, object] = {
        "seq": event.seq,
        "stream": event.stream,
        "subject": event.subject,
        "kind": event.kind.value,
        "version": 1,
        "at": event.at.isoformat(),
        "run": event.run,
        "actor": event.actor,
        "data": payload_to_json(event.payload),
        "evidence": "[]",
        "idempotency_key": None,
        "previous": previous,
    }
    return found | {"digest": event_digest(previous, found)}


def rows(written: list[Event], previous: str) -> list[dict[str, object]]:
    """Return the events as rows, chained."""
    found: list[dict[str, object]] = []
    for each in written:
        found.append(row(each, str(found[-1]["digest"]) if found else previous))
    return found


def build(folder: Path, nodes: int, count: int) -> Path:
    write_ready_site(folder)
    lines = [
        f"node{i:04d},10.{20 + i // 65536}.{i // 256 % 256}.{i % 256},,A{i // 4},{4 + i % 4 * 8}" for i in range(nodes)
    ]
    (folder / "bmcs.csv").write_text("name,bmc_address,serial,rack,unit\n" + "\n".join(lines) + "\n")
    url = f"sqlite:///{folder}/state/journal.db"
    open_journal(url, Clock()).close()
    engine = create_engine(url)
    last = ""
    for i in range(nodes):
        node = f"id{i:04d}"
        written = story(node, f"node{i:04d}", count, i * count + 1)
        state = fold(written, NodeId(node))
        summary, whole, chained = summary_to_json(state), state_to_json(state), rows(written, last)
        last = str(chained[-1]["digest"])
        with engine.begin() as connection:
            connection.execute(insert(events), chained)
            connection.execute(
                insert(node_state).values(
                    node=node,
                    name=state.name,
                    stage=state.stage.value,
                    last_seq=state.last_seq,
                    summary=summary,
                    state=whole,
                    summary_digest=text_digest(summary),
                    state_digest=text_digest(whole),
                )
            )
    with engine.begin() as connection:
        connection.execute(insert(stream_head), [{"stream": Stream.NODE.value, "digest": last}])
    engine.dispose()
    return folder / "state" / "journal.db"


def median_s(argv: list[str]) -> float:
    times = []
    for _ in range(6):
        began = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--events", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "site"
        began = time.perf_counter()
        file = build(folder, options.nodes, options.events)
        size = file.stat().st_size >> 20
        print(
            f"{options.nodes} nodes × {options.events} events, {size} MiB, built in {time.perf_counter() - began:.0f} s"
        )
        command = [sys.executable, "-m", "clusterctl_cli.main"]
        baseline = median_s([sys.executable, "-c", "pass"])
        print(f"python -c pass                 {baseline:6.3f} s")
        where = ["--site", str(folder)]
        for words in (["--help"], ["nodes", *where], ["nodes", "--json", *where], ["plan", *where]):
            took = median_s(command + words)
            shown = " ".join(word for word in words if word not in where)
            print(f"clusterctl {shown:18s}  {took:6.3f} s   {took / baseline:5.1f} ×")


if __name__ == "__main__":
    main()

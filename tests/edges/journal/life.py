"""A journal's life with everything in it, for the tests of it and for the versions to come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.codec import inventory_to_data, report_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId, Stage
from tests.events import advances, new_event
from tests.steps.fakes import inventory

N1 = NodeId("n1")
AT = datetime(2026, 1, 1, tzinfo=UTC)
EVIDENCE = Evidence("ibstat", "node-n1", AT, Origin.SIMULATED, b"CA 'mlx5_0'\n\x00" * 3)


class StepClock:
    """A clock that moves one second a look."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def fill(book: SqlJournal) -> None:
    """A life with everything in it: a node that became gold, a quarantined and a held one, parts, runs, claims."""
    book.store([EVIDENCE])
    held = book.claim([NodeId("n1"), NodeId("n2")], "r1").granted
    book.append([new_event("run", "r1", Kind.RUN_STARTED, {"steps": ["discover"]})])
    for events in _life():
        book.append(events)
    book.append([new_event("run", "r1", Kind.RUN_FINISHED)])
    book.release([held[NodeId("n1")]])


def _life() -> Iterator[list[NewEvent]]:
    for number in (1, 2, 3):
        data = {"name": f"node-n{number}", "bmc": f"192.0.2.{number}", "serial": "", "rack": "A01", "unit": number}
        yield [new_event("node", f"n{number}", Kind.NODE_DESCRIBED, data)]
    known = {"inventory": inventory_to_data(inventory("S1")), "sku": "lab", "root_disk": "DISK-S1"}
    yield [
        new_event("node", "n1", Kind.STEP_STARTED, {"step": "discover"}),
        new_event("node", "n1", Kind.NODE_IDENTIFIED, known),
        report("n1", "discover", Verdict.PASS),
        new_event("node", "n1", Kind.STAGE_ADVANCED, {"to": "discovered", "verdict": "pass"}),
    ]
    yield [new_event("node", "n1", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"})]
    yield [new_event("node", "n1", Kind.ACT_INTENDED, {"act": "install.start", "target": "S1"})]
    yield [new_event("node", "n1", Kind.ACT_OBSERVED, {"act": "install.start", "message": "installing"})]
    yield [new_event("node", "n1", Kind.NODE_ADDRESSED, {"address": "192.0.2.101"})]
    yield advances("n1", Stage.GOLD, Stage.DISCOVERED)
    yield [new_event("node", "n2", Kind.ACT_INTENDED, {"act": "install.start", "target": "S2"})]
    stop = {"step": "install", "cause": "“no” disk", "remedy": "replace it", "verdict": "fail"}
    yield [report("n2", "install", Verdict.FAIL), new_event("node", "n2", Kind.NODE_QUARANTINED, stop)]
    yield [new_event("node", "n3", Kind.NODE_HELD, {**stop, "verdict": "inconclusive"})]
    yield [new_event("node", "n3", Kind.NODE_RELEASED, {"to": "seen", "reason": "cable replaced"})]
    yield [new_event("part", "GPU1", Kind.ACT_OBSERVED, {"act": "log.clear", "result": "done"})]


def report(node: str, step: str, verdict: Verdict) -> NewEvent:
    finding = Finding(
        check="x",
        verdict=verdict,
        code=Code.GPU_ECC_UNCORRECTABLE,
        cause="seen",
        remedy="repair",
        evidence=(EVIDENCE.digest,),
    )
    report = Report(step, "", (finding,), frozenset({Origin.SIMULATED}))
    data = {"report": report_to_data(report)}
    return new_event("node", node, Kind.REPORT_RECORDED, data, (EVIDENCE.digest,))


def added(node: str = "n1") -> NewEvent:
    data = {"name": f"node-{node}", "bmc": "192.0.2.1", "rack": "A01", "unit": 4}
    return new_event("node", node, Kind.NODE_DESCRIBED, data)


def started(node: str = "n1", step: str = "discover") -> NewEvent:
    return new_event("node", node, Kind.STEP_STARTED, {"step": step})

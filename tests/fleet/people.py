"""A node's life in a few words, for tests of what people decide."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.codec import inventory_to_data, report_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Finding, Origin, Report, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.fold import apply
from clusterctl.fleet.node import PATH, Drive, Gpu, Inventory, Mac, Nic, NodeId, Serial, Stage
from clusterctl.fleet.state import NodeState
from tests.events import advances, new_event, written

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATER = NOW + timedelta(days=30)
PROOF = Digest("ab" * 32)
MACHINE = Inventory(
    "Dell Inc.",
    "PowerEdge XE9680",
    Serial("S1"),
    gpus=(Gpu("Video.Slot.21-1", "H100", Serial("GPU-21")),),
    nics=(Nic("nic0", Mac("02:00:00:00:00:01"), boots=True),),
    drives=(Drive("0", "M.2", 480_000_000_000, Serial("DISK-0")),),
)
WARM = Finding(
    check="gpu_ecc",
    verdict=Verdict.FAIL,
    code=Code.GPU_ECC_UNCORRECTABLE,
    subject="gpu 3",
    cause="2 uncorrectable errors",
    remedy="replace GPU 3",
    serial="GPU-3",
)
FINE = passed("gpu_count", "8 of 8 GPUs")


def after(state: NodeState, events: Iterable[NewEvent], actor: str = "alice", at: datetime = NOW) -> NodeState:
    """The state once the node's own of `events` are written."""
    for new in events:
        if (new.stream, new.subject) == ("node", state.id):
            state = apply(state, written(new, state.last_seq + 1, at, actor))
    return state


def node(stage: Stage = Stage.GOLD, name: str = "n1", serial: str = "S1") -> NodeState:
    """A node that was discovered and has come to `stage`."""
    machine = NodeState(NodeId(f"id-{name}"))
    inventory = inventory_to_data(MACHINE) | {"serial": serial}
    state = after(
        machine,
        [
            _event(machine, Kind.NODE_DESCRIBED, name=name, bmc="192.0.2.1", rack="A01", unit=4),
            _event(machine, Kind.NODE_IDENTIFIED, inventory=inventory, sku="lab", root_disk="DISK-0"),
            *advances(machine.id, stage if stage in PATH else Stage.CABLED),
        ],
        actor="clusterctl",
    )
    return stopped(state, "burnin") if stage is Stage.QUARANTINED else state


def reported(state: NodeState, step: str, *findings: Finding) -> NodeState:
    """With a report of `step`, none of it simulated."""
    report = Report(step, "bootstrap", findings, frozenset({Origin.REAL}))
    return after(state, [_event(state, Kind.REPORT_RECORDED, report=report_to_data(report))], actor="clusterctl")


def stopped(state: NodeState, step: str, kind: Kind = Kind.NODE_QUARANTINED) -> NodeState:
    """Stopped at `step` by the gate."""
    event = _event(state, kind, step=step, cause="2 uncorrectable errors", remedy="replace GPU 3", verdict="fail")
    return after(state, [event], actor="clusterctl")


def _event(state: NodeState, kind: Kind, **data: object) -> NewEvent:
    return new_event("node", state.id, kind, data)

"""Work orders: every root finding of a stopped node once, in the order of the technician's walk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.decision import waive
from clusterctl.fleet.event import Kind
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName
from clusterctl.fleet.finding import Digest, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Location, Stage
from clusterctl.fleet.payloads.hardware import FabricFault
from clusterctl.fleet.reporting.work_orders import WorkOrder, work_orders
from clusterctl.fleet.state import NodeState
from tests.fleet.people import LATER, NOW, PROOF, WARM, after, node, reported, stopped

GPU = replace(WARM, subject="gpu 3", serial="GPU-21", evidence=(PROOF,))
SWAPPED = Finding(
    check="cable",
    verdict=Verdict.FAIL,
    code=Code.CABLING_SWAPPED,
    fault="swapped\nn1 mlx5_0\nn2 mlx5_0",
    subject="mlx5_0",
    cause="n1 mlx5_0 and n2 mlx5_0 are swapped",
    remedy="swap the plugs",
)
OTHER_PROOF = Digest("cd" * 32)


def broken(name: str, *findings: Finding, step: str = "burnin", kind: Kind = Kind.NODE_QUARANTINED) -> NodeState:
    """A node that the gate has stopped."""
    return stopped(reported(node(Stage.CABLED, name, f"S-{name}"), step, *findings), step, kind)


def at(state: NodeState, rack: str, unit: int | None) -> NodeState:
    return replace(state, location=Location(rack, unit))


def one(*nodes: NodeState, **more: Any) -> WorkOrder:
    (order,) = work_orders(nodes, NOW, **more)
    return order


def places(orders: Iterable[WorkOrder]) -> list[tuple[str, int | None]]:
    return [(order.location.rack, order.location.unit) for order in orders]


def test_an_order_has_all_that_is_needed() -> None:
    """Node, serials, the part as people and as the BMC name it, what was found, what to do, evidence, what to run."""
    order = one(broken("n1", GPU))
    (concerned,) = order.nodes
    assert (concerned.name, concerned.serial, concerned.location) == ("n1", "S-n1", Location("A01", 4))
    assert (order.number, order.part, order.slot, order.serial) == (1, "gpu 3", "Video.Slot.21-1", "GPU-21")
    assert order.findings == (GPU,)
    assert order.remedies == (GPU.remedy,)
    assert order.evidence == (PROOF,)
    assert order.write_back == "clusterctl release n1 --reason 'gpu 3, serial GPU-21: …'"


def test_one_walk_covers_all_orders() -> None:
    """Racks as they are counted, from below; then nodes without a known place. The numbers follow the way."""
    stand = [("A10", 4), ("", None), ("A2", 20), ("A2", None), ("A2", 4), ("B1", 1)]
    nodes = [at(broken(f"n{i}", GPU), *place) for i, place in enumerate(stand)]
    found = work_orders(nodes, NOW)
    assert places(found) == [("A2", 4), ("A2", 20), ("A2", None), ("A10", 4), ("B1", 1), ("", None)]
    assert [order.number for order in found] == [1, 2, 3, 4, 5, 6]


def test_one_order_for_each_part() -> None:
    """Two findings on one GPU are one order, whatever they call it; another part of the node is another, the worse first.

    The node is written back once, by the last of its orders, with what was done for both.
    """
    xid = Finding(
        check="kernel_log",
        verdict=Verdict.FAIL,
        code=Code.KERNEL_MESSAGE,
        subject="gpu 0000:c3:00.0",
        cause="Xid 48",
        remedy="reset it",
        serial="GPU-21",
    )
    slow = Finding(
        check="ib_write_bw",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_MEASURED,
        subject="mlx5_1",
        cause="not measured",
        remedy="look at the cable",
    )
    first, second = work_orders([broken("n1", slow, GPU, xid)], NOW)
    assert (first.part, first.findings) == ("gpu 3 / gpu 0000:c3:00.0", (GPU, xid))
    assert first.remedies == (GPU.remedy, "reset it")
    assert second.part == "mlx5_1"
    assert (first.write_back, first.later) == ("", (("n1", 2),))
    both = "gpu 3 / gpu 0000:c3:00.0, serial GPU-21: …; mlx5_1: …"
    assert (second.write_back, second.later) == (f"clusterctl release n1 --reason '{both}'", ())


def test_parts_are_distinguished_by_node() -> None:
    """The same part and words on two nodes are two orders."""
    down = Finding(
        check="docker",
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        cause="docker.service is inactive",
        remedy="start it",
    )
    found = work_orders([broken("n1", down), broken("n2", down)], NOW)
    assert [(order.nodes[0].name, order.part, order.later) for order in found] == [
        ("n1", "machine", ()),
        ("n2", "machine", ()),
    ]


def test_consequences_and_what_passed_are_no_orders() -> None:
    """Only roots."""
    follows = Finding(
        check="nvlink", verdict=Verdict.FAIL, code=Code.NVLINK_DOWN, subject="gpu 3", cause="no links", root=GPU.key
    )
    assert one(broken("n1", GPU, follows, replace(GPU, subject="gpu 4", verdict=Verdict.WARN))).findings == (GPU,)


def test_what_waits_for_a_later_step_is_no_work() -> None:
    """No walk is ordered for what the burn-in will measure; where that alone stopped the node, it is reported."""
    unseen = Finding(
        check="memory_size",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_MEASURED,
        cause="the BMC does not report it",
        settled_by="burnin",
    )
    assert one(broken("n1", GPU, unseen, step="discover")).findings == (GPU,)
    assert one(broken("n1", unseen, step="discover", kind=Kind.NODE_HELD)).findings == (unseen,)


def test_a_cable_is_one_order_for_both_ends() -> None:
    """Its nodes in walking order, its evidence once, both ends of the planned cables, one line to write back."""
    cables = [PlannedCable(PortName("leaf", str(n)), PortName(f"n{n}", "mlx5_0"), f"{n}/1", f"C{n}", 3) for n in (1, 2)]
    planned = {end: cable for cable in cables for end in cable.ends}
    near = broken("n2", replace(SWAPPED, evidence=(PROOF,)), step="cable")
    far = at(broken("n1", replace(SWAPPED, evidence=(PROOF, OTHER_PROOF)), step="cable"), "A02", 4)
    order = one(far, near, planned=planned)
    assert [concerned.name for concerned in order.nodes] == ["n2", "n1"]
    assert (order.part, order.location) == ("cable at n2 mlx5_0 and n1 mlx5_0", Location("A01", 4))
    assert order.cables[0] == "leaf port 2 (cage 2/1) – n2 mlx5_0, serial C2, 3 m"
    assert order.evidence == (PROOF, OTHER_PROOF)
    assert order.write_back == "clusterctl release n2 n1 --reason 'cable at n2 mlx5_0 and n1 mlx5_0: …'"


def test_each_node_is_written_back_once() -> None:
    """Where a cable's nodes have further orders, each is released by the last one of its own."""
    both = [broken("n1", SWAPPED, step="cable"), at(broken("n2", SWAPPED, GPU, step="cable"), "A02", 4)]
    cable, gpu = work_orders(both, NOW)
    assert cable.write_back == "clusterctl release n1 --reason 'cable at n1 mlx5_0 and n2 mlx5_0: …'"
    assert cable.later == (("n2", 2),)
    parts = "cable at n1 mlx5_0 and n2 mlx5_0: …; gpu 3, serial GPU-21: …"
    assert gpu.write_back == f"clusterctl release n2 --reason '{parts}'"


def test_the_cable_at_a_port_is_reported() -> None:
    """Also where a burn-in's check names only the node's side."""
    cable = PlannedCable(PortName("n1", "mlx5_6"), PortName("leaf", "7"))
    port = Finding(
        check="hca_errors",
        verdict=Verdict.FAIL,
        code=Code.HCA_ERRORS,
        subject="mlx5_6",
        cause="errors",
        remedy="reseat the cable at both ends",
    )
    assert one(broken("n1", port), planned=dict.fromkeys(cable.ends, cable)).cables == ("n1 mlx5_6 – leaf port 7",)


def test_what_the_gate_only_holds_is_tried_again() -> None:
    """No release is needed: the step that held it measures again. Many nodes of one cause are not all named."""
    unread = Finding(
        check="cable",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.FABRIC_UNREADABLE,
        fault="fabric",
        cause="the fabric could not be read",
        remedy="look at it",
    )
    held = [broken(f"n{i}", unread, step="cable", kind=Kind.NODE_HELD) for i in range(1, 7)]
    assert one(*held[:2]).write_back == "clusterctl cable --limit n1 --limit n2"
    order = one(*held)
    assert (order.part, order.write_back, len(order.nodes)) == ("cabling", "clusterctl cable", 6)


def test_a_persons_quarantine_is_an_order() -> None:
    """It has no finding: the operator's reason is the finding, with the name."""
    sound = node(Stage.CABLED)
    order = one(after(sound, orders.quarantine(sound, "smells burnt", "Video.Slot.21-1", None).events))
    (found,) = order.findings
    assert "smells burnt (Video.Slot.21-1, serial GPU-21) (decided by alice)" in found.cause
    assert found.remedy.startswith("repair it, then clusterctl release n1")


def test_what_is_to_be_known_first() -> None:
    """An operator holds the node; an operator answers for the finding."""
    state = broken("n1", GPU)
    state = after(state, orders.hold(state, "the vendor comes on Monday", None).events)
    state = after(state, waive(state, "gpu_ecc", "gpu 3", "known", LATER).events)
    held, waived = one(state).notes
    assert held == "n1 is held by alice until released: the vendor comes on Monday"
    assert waived.startswith("gpu_ecc of n1 is waived by alice until")


@pytest.mark.parametrize("state", [node(), node(Stage.CABLED), NodeState(node().id, "n1", stage=Stage.RETIRED)])
def test_a_node_that_is_not_stopped_has_none(state: NodeState) -> None:
    """Gold, on its way, retired."""
    assert work_orders([state], NOW) == ()


def test_the_fabrics_own_faults_are_orders() -> None:
    """At their rack, behind its nodes; no node is released, the fabric is read again."""
    fault = FabricFault("missing_link", ("leaf port 40", "spine port 1"), "the trunk is dark", "reseat it", "A01", 1)
    first, second = work_orders([broken("n1", GPU)], NOW, [(fault, (PROOF,))])
    assert first.nodes
    assert (second.location, second.part, second.nodes) == (Location("A01"), "leaf port 40, spine port 1", ())
    assert (second.remedies, second.evidence) == (("reseat it",), (PROOF,))
    assert second.write_back == "clusterctl cable observe"


def test_a_fault_that_keeps_nodes_back_is_one_order() -> None:
    """At its own place, not at the nodes'."""
    dark = Finding(
        check="cable",
        verdict=Verdict.FAIL,
        code=Code.CABLING_ABSENT_DEVICE,
        fault="absent_device\nleaf",
        subject="mlx5_0",
        cause="leaf is dark",
        remedy="power it on",
        evidence=(PROOF,),
    )
    fault = FabricFault("absent_device", ("leaf",), dark.cause, dark.remedy, "S01", 2, ("n1", "n2"))
    order = one(broken("n1", dark, step="cable"), broken("n2", dark, step="cable"), faults=[(fault, (PROOF,))])
    assert (order.part, order.location, len(order.nodes)) == ("leaf", Location("S01"), 2)
    assert order.write_back == "clusterctl release n1 n2 --reason 'leaf: …'"

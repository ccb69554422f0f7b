"""The history of a part follows the part, by its serial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterctl.fleet.event import Kind
from clusterctl.fleet.hardware.parts import part_changes
from clusterctl.fleet.node import Dimm, Gpu, Hca, Inventory, NodeId, Psu, Serial
from clusterctl.fleet.state import NodeState
from tests.events import data_of

GPUS = (Gpu("GPU1", "H100", Serial("G1")), Gpu("GPU2", "H100", Serial("G2")))
FIRST = Inventory("Example", "GX", Serial("S1"), gpus=GPUS, psus=(Psu("PS1", Serial("P1")), Psu("PS2")))
NODE = NodeState(NodeId("id1"), "n1", inventory=FIRST)
Line = tuple[Kind, str, str, str]


def changes(node: NodeState = NODE, **changed: Any) -> list[Line]:
    """Kind, subject, slot, and the other part of each event."""
    events = part_changes(node, replace(FIRST, **changed))
    return [(e.kind, e.subject, data_of(e)["slot"], data_of(e).get("other", data_of(e).get("new", ""))) for e in events]


def test_nothing_changed() -> None:
    """Nothing is written again and again."""
    assert changes() == []


def test_first_sight() -> None:
    """Each part with a serial is seen once; nothing was replaced, for nothing was known."""
    assert changes(replace(NODE, inventory=None)) == [
        (Kind.PART_SEEN, "G1", "GPU1", ""),
        (Kind.PART_SEEN, "G2", "GPU2", ""),
        (Kind.PART_SEEN, "P1", "PS1", ""),
    ]


def test_a_replaced_part() -> None:
    """The new one, the old one and the node each have their event, and each names the other."""
    assert changes(gpus=(GPUS[0], Gpu("GPU2", "H100", Serial("G9")))) == [
        (Kind.PART_SEEN, "G9", "GPU2", "G2"),
        (Kind.PART_GONE, "G2", "GPU2", "G9"),
        (Kind.PART_REPLACED, "id1", "GPU2", "G9"),
    ]


def test_a_part_in_another_slot() -> None:
    """It is seen there; it is not gone."""
    moved = (replace(GPUS[0], slot="GPU2"), replace(GPUS[1], slot="GPU1"))
    assert changes(gpus=moved) == [(Kind.PART_SEEN, "G1", "GPU2", ""), (Kind.PART_SEEN, "G2", "GPU1", "")]


def test_what_was_not_read_is_not_gone() -> None:
    """A BMC that reports no GPUs today has lost sight of them; they were not taken out."""
    assert changes(gpus=None) == []
    assert changes(gpus=()) == []
    assert [line[0] for line in changes(gpus=GPUS[:1])] == [Kind.PART_GONE, Kind.PART_REPLACED]


def test_parts_of_every_kind() -> None:
    """Modules, adapters and supplies too; both ports of an adapter are one part."""
    hcas = (Hca("IB1-1", "CX7", Serial("H1")), Hca("IB1-2", "CX7", Serial("H1")))
    found = changes(hcas=hcas, dimms=(Dimm("A1", 65536, "x", Serial("M1")),), psus=(Psu("PS1", Serial("P2")),))
    assert [line[:2] for line in found] == [
        (Kind.PART_SEEN, "H1"),
        (Kind.PART_SEEN, "P2"),
        (Kind.PART_SEEN, "M1"),
        (Kind.PART_GONE, "P1"),
        (Kind.PART_REPLACED, "id1"),
    ]

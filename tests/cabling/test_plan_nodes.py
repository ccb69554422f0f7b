"""A wiring plan against the nodes of a site."""

from __future__ import annotations

import pytest

from clusterctl.cabling.plan_nodes import GapKind, wiring_gaps
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan

PLAN = WiringPlan(
    tuple(
        PlannedCable(PortName(f"leaf-{rail}", str(host)), PortName(f"Node{host:03d}.site.example", f"mlx5_{rail}"))
        for host in (1, 2, 3)
        for rail in range(8)
        if (host, rail) != (3, 5)
    ),
    frozenset(f"Node{host:03d}.site.example" for host in (1, 2, 3)),
)


@pytest.mark.parametrize(
    ("adapters", "kinds", "stops"),
    [
        ({"node001": 8, "node002": 8, "node003": 7}, [], False),
        ({"node001": 8, "node002": 8, "node003": 8}, [GapKind.ADAPTER_COUNT], True),  # 8 in its SKU, 7 in the plan
        ({"node001": 8, "node002": 8, "node003": None}, [], False),  # its SKU is not known yet
        ({"node001": 8, "node002": 8, "node003": 7, "node004": 8}, [GapKind.NO_CABLES], True),
        ({"node001": 8, "node002": 8, "node003": 7, "node004": None}, [GapKind.NO_CABLES], True),
        ({"node001": 8, "node002": 8, "node003": 7, "login": 0}, [], False),  # its SKU has no adapter
        ({"node001": 8, "node002": 8}, [GapKind.NO_NODE], False),
    ],
)
def test_gaps(adapters, kinds, stops):
    """Each gap is named with its hosts; case and domain do not matter; hosts that are no node stop nothing."""
    gaps = wiring_gaps(PLAN, adapters)
    assert [gap.kind for gap in gaps] == kinds
    assert any(gap.stops for gap in gaps) == stops
    assert all(any(host in gap.message for host in gap.hosts) for gap in gaps)

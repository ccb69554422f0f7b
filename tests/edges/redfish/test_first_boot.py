"""The real client and the real step on a BMC that has never seen its machine running."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Claim, Deadline, Journal
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from tests.edges.redfish.replay import Bmc, Handler
from tests.steps.discover.test_discover import SKU
from tests.steps.discover.test_inventory_boot import Book

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
DRIVES = "/redfish/v1/Systems/1/Storage"
SMALL = replace(
    SKU,
    manufacturer="Example",
    model="GX-8000",
    gpu_count=2,
    hca_count=2,
    memory_gib=512,
    data_drive_count=1,
    root_disk=RootDisk(serial="ROOT1"),
)
NODE = NodeState(NodeId("id1"), "n1", bmc="127.0.0.1")


def test_on_read_again_and_off(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """It lists no drive and no collected inventory while off; after its boot it does, and is off again."""
    server, address = served
    known: dict[str, Any] = dict(server.tree[DRIVES])
    server.tree[SYSTEM] |= {"PowerState": "Off", "Oem": {"Dell": {"DellSystem": {"LastSystemInventoryTime": None}}}}
    server.tree[DRIVES] |= {"Members": [], "Members@odata.count": 0}

    def boot(handler: Handler) -> None:
        collected = {"DellSystem": {"LastSystemInventoryTime": "2026-05-01T00:00:00+00:00"}}
        server.tree[SYSTEM] |= {"PowerState": "On", "Oem": {"Dell": collected}}
        server.tree[DRIVES] |= known
        handler.reply(204, None)

    server.faults["POST", RESET] = [boot]
    book = Book()
    acts = IntentLog(cast("Journal", book), {NODE.id: Claim(NODE.id, "r1", 1)})
    step = Discover(DiscoverServices(bmcs, lambda _: address, dict), DiscoverPlan([SMALL], workers=1, poll_s=0.01))
    (outcome,) = step.run([NODE], acts, Deadline.after(60))
    verdicts = {finding.check: finding.verdict for finding in outcome.findings}
    assert verdicts["root_disk"] is verdicts["drive_count"] is Verdict.PASS
    assert server.tree[SYSTEM]["PowerState"] == "Off"
    assert [act for _, act in book.written] == ["discover.boot"] * 2
    assert server.open_sessions == 0

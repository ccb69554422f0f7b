"""Who takes part in a burn of the fabric, what an operator approves, and what becomes of the nodes afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.edges.site import Site
from clusterctl.fleet.acts import Act
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.port_acts import DisabledPort, intended, observed
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Hca
from clusterctl.fleet.payloads.hardware import FabricTransceiverSeen
from clusterctl.fleet.payloads.runs import BurnEnded, BurnStarted
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.operations import cable_burn as operation
from clusterctl.operations.burn_work import work_after
from clusterctl.operations.cable_burn import CableBurnRequest
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.steps.fabric_burn import BurnSettings, FabricBurn
from tests.cabling.burn.tree import Tree
from tests.cli.nights import FakeScheduler
from tests.edges.site.ready import write_ready_site
from tests.events import advances, new_event
from tests.steps.fabric_burn.test_burn import Diary, run
from tests.steps.fabric_burn.world import Bad, FabricWorld
from tests.steps.fakes import inventory

NAMES = tuple(f"node{number}" for number in range(9))
STAGES = {"node6": "installed", "node7": "gold", "node8": "gold"}
"""The others are cabled."""
SKU = "dell-xe9680-h100"


@dataclass
class Outside:
    """The adapters of a burn: one world is hosts, fabric, tables and counters."""

    site: Site
    world: FabricWorld
    scheduler: FakeScheduler | None
    closed: list[bool] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name in ("shell", "fabric", "tables", "counters"):
            return self.world
        raise AssertionError(f"a burn has no use for {name}")

    def close(self) -> None:
        self.closed.append(True)


@pytest.fixture
def world() -> FabricWorld:
    tree = Tree(leaves=3, hosts=3)
    return FabricWorld(tree.fabric(), tree.tables())


@pytest.fixture
def context(tmp_path: Path, world: FabricWorld) -> Iterator[SiteContext]:
    write_ready_site(tmp_path)
    rows = [f"{name},10.0.0.{at},SN-{name},A01,{at}" for at, name in enumerate(NAMES, start=1)]
    (tmp_path / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    context = open_site(tmp_path)
    for name in NAMES:
        subject = f"id-{name}"
        seen = {"inventory": inventory_to_data(inventory(f"SN-{name}")), "sku": SKU, "root_disk": f"D-{name}"}
        described = {"name": name, "bmc": "192.0.2.1", "rack": "A01", "unit": 1}
        context.journal.append(
            [
                new_event("node", subject, Kind.NODE_DESCRIBED, described),
                new_event("node", subject, Kind.NODE_IDENTIFIED, seen),
                new_event("node", subject, Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
                new_event("node", subject, Kind.NODE_ADDRESSED, {"address": name}),
                *advances(subject, STAGES.get(name, "cabled")),
            ]
        )
    yield context
    context.journal.close()


def connected(context: SiteContext, world: FabricWorld, scheduler: FakeScheduler | None = None) -> SiteContext:
    return replace(context, connect=lambda site, _access: Outside(site, world, scheduler))  # type: ignore[arg-type, return-value]


def previewed(context: SiteContext, *nodes: str) -> tuple[list[str], dict[str, str]]:
    found = operation.preview(context, CableBurnRequest(nodes=nodes))
    return [effect.node for effect in found.effects], dict(found.skipped)


def test_free_hosts_take_part_and_the_others_are_left_out_with_the_reason(context, world):
    world.dead.add("node5")
    taking_part, skipped = previewed(connected(context, world))
    assert taking_part == list(NAMES[:5])
    assert "no route" in skipped["node5"]
    assert "it is installed" in skipped["node6"]
    assert "names no scheduler" in skipped["node7"]


def test_gold_nodes_take_part_where_the_scheduler_has_no_work_for_them(context, world):
    scheduler = FakeScheduler(NAMES, busy={"node8", "node0"})
    taking_part, skipped = previewed(connected(context, world, scheduler))
    assert "node7" in taking_part
    assert "allocated" in skipped["node8"]
    assert "allocated" in skipped["node0"]
    assert scheduler.calls == []


def test_a_named_node_takes_part_at_any_stage(context, world):
    taking_part, skipped = previewed(connected(context, world), "node6", "node1")
    assert taking_part == ["node1", "node6"]
    assert skipped == {}


def test_a_host_that_reports_the_adapter_of_another_host_takes_no_part(context, world):
    """node2 reports node1's adapter, which node1's BMC has too: node1 and all others take part."""
    (guid,) = world.hosts()["node1"].rails
    world.reports_of["node2"] = "node1"
    known = replace(inventory("SN-node1"), hcas=(Hca(slot="Slot 1", model="ConnectX-7", guid=guid),))
    data = {"inventory": inventory_to_data(known), "sku": SKU, "root_disk": "D-node1"}
    context.journal.append([new_event("node", "id-node1", Kind.NODE_IDENTIFIED, data)])
    taking_part, skipped = previewed(connected(context, world))
    assert taking_part == ["node0", "node1", "node3", "node4", "node5"]
    assert "so does another host" in skipped["node2"]


def test_one_host_is_too_few(context, world):
    with pytest.raises(UsageError, match="a burn needs two"):
        previewed(connected(context, world), "node1")


def test_the_preview_names_what_no_flow_can_load(context, world):
    """Of the whole fabric; a burn of named nodes is about the links that they can load."""
    world.dead |= set(NAMES[2:])
    found = operation.preview(connected(context, world), CableBurnRequest())
    assert "directed links are loaded by no flow of these hosts" in found.warnings[0]
    found = operation.preview(connected(context, world), CableBurnRequest(nodes=("node0", "node1")))
    assert found.warnings == ()


def test_the_burn_of_one_link_takes_hosts_with_packets_on_it(context, world):
    """Spine 2 leads to the third host of each leaf: node5 below leaf-1, from and to hosts of other leaves. No more hosts
    than two sets of these lose their jobs; a port without a link is refused.
    """
    found = operation.preview(connected(context, world), CableBurnRequest(links=("leaf-1:6",)))
    taking_part = {effect.node for effect in found.effects}
    assert {"node2", "node5"} <= taking_part
    assert len(taking_part) <= 4
    assert found.warnings == ()
    with pytest.raises(UsageError, match="no link is up"):
        operation.preview(connected(context, world), CableBurnRequest(links=("leaf-1:60",)))


def test_what_no_free_host_can_load_of_a_link_is_named(context, world):
    """node5 is the one host that spine 2 leads to below leaf-1: while it has work, one direction is left."""
    scheduler = FakeScheduler(NAMES, busy={"node5"})
    found = operation.preview(connected(context, world, scheduler), CableBurnRequest(links=("leaf-1:6",)))
    assert "node5" not in {effect.node for effect in found.effects}
    assert "spine-2 port 2 → leaf-1 port 6" in found.warnings[0]


def test_the_burn_of_one_link_leaves_other_burns_and_drains_alone(context, world):
    """A burn of the fabric that was stopped goes on later; nodes of a night stay out; those of a killed burn come back."""
    started = BurnStarted(hosts=(), rails=(), stage_s=60, adaptive=False, limits="ndr")
    context.journal.append([NewEvent(Stream.CAMPAIGN, "earlier", started)])
    nightly = "clusterctl:nightly:run-1"
    scheduler = FakeScheduler(NAMES, reasons={"node7": "clusterctl:cable-burn:run-0", "node8": nightly})
    control = Control()
    control.cancelled.set()
    request = CableBurnRequest(links=("leaf-1:6",), stage_s=60)
    result = operation.run(connected(context, world, scheduler), request, control)
    assert scheduler.reasons == {"node8": nightly}
    assert "drained" in result.skipped["node8"]
    unfinished = operation._unfinished(context)
    assert unfinished is not None
    assert unfinished.subject == "earlier"


def test_what_a_killed_burn_left_drained_is_given_back(context, world):
    """Gold nodes only, and none while a burn runs; drains of others stay."""
    nightly, own = "clusterctl:nightly:run-1", "clusterctl:cable-burn:run-0"
    scheduler = FakeScheduler(NAMES, reasons={"node6": own, "node7": own, "node8": nightly})
    site = connected(context, world, scheduler)
    claims = context.journal.claim([operation.CLAIM], "another-run")
    assert operation.give_back_left(site) == {}
    assert "node7" in scheduler.reasons
    context.journal.release(claims.granted.values())
    assert operation.give_back_left(site) == {}
    assert scheduler.reasons == {"node6": own, "node8": nightly}


def test_gold_nodes_have_jobs_again_after_a_burn_that_was_stopped(context, world):
    scheduler = FakeScheduler(NAMES)
    control = Control()
    control.cancelled.set()
    result = operation.run(connected(context, world, scheduler), CableBurnRequest(stage_s=60), control)
    assert result.cancelled
    assert scheduler.reasons == {}
    assert ("take", ("node7", "node8")) in scheduler.calls


def test_a_node_of_another_run_takes_no_part(context, world):
    subject = next(node.id for node in context.journal.summaries() if node.name == "node3")
    context.journal.claim([subject], "another-run")
    control = Control()
    control.cancelled.set()
    result = operation.run(connected(context, world), CableBurnRequest(stage_s=60), control)
    assert "node3" in result.skipped
    assert "node3" not in result.hosts


def test_a_burn_that_never_ended_goes_on_and_one_that_ended_does_not(context, world):
    control = Control()
    control.cancelled.set()
    operation.run(connected(context, world), CableBurnRequest(stage_s=60), control)
    operation.run(connected(context, world), CableBurnRequest(stage_s=60), control)
    (first,) = subjects(context)
    context.journal.append([NewEvent(Stream.CAMPAIGN, first, BurnEnded())])
    operation.run(connected(replace(context, run="later"), world), CableBurnRequest(stage_s=60), control)
    assert set(subjects(context)) == {first, "later"}


@pytest.mark.parametrize(
    "request_", [CableBurnRequest(rails=(1,)), CableBurnRequest(leaves=("leaf1",)), CableBurnRequest(nodes=("node*",))]
)
def test_a_burn_of_another_scope_does_not_go_on(context, world, request_):
    """Stages that loaded other links prove nothing for it: the earlier burn ends, with the reason."""
    started = BurnStarted(hosts=(), rails=(), stage_s=60, adaptive=False, limits="ndr")
    context.journal.append([NewEvent(Stream.CAMPAIGN, "earlier", started)])
    printed, claim = [], context.journal.claim([operation.CLAIM], context.run).granted[operation.CLAIM]
    assert operation._going_on(context, request_, claim, printed.append) is None
    assert "another scope" in printed[0]
    assert operation._unfinished(context) is None


def test_a_burn_that_was_stopped_days_ago_does_not_go_on(context, world):
    """Cables may have been replaced in the same ports since then."""
    started = BurnStarted(hosts=(), rails=(), stage_s=60, adaptive=False, limits="ndr")
    context.journal.append([NewEvent(Stream.CAMPAIGN, "earlier", started)])
    found = operation._unfinished(context)
    assert found is not None
    assert found.hindrance(CableBurnRequest(stage_s=900, for_s=3600.0)) == ""
    old = replace(found, last=found.last - timedelta(days=3, minutes=1))
    assert "days ago" in old.hindrance(CableBurnRequest())


def test_the_burn_has_the_serials_of_the_fabrics_history(context, world, monkeypatch):
    """A cable that is gone has none; one serial may be at both ends."""
    context.journal.append(
        [
            NewEvent(Stream.FABRIC, "MT2243VS01234", FabricTransceiverSeen(part="MCP4Y10", ports=("00a1/3", "00b1/1"))),
            NewEvent(Stream.FABRIC, "MT2243VS09999", FabricTransceiverSeen(seen=False)),
        ]
    )
    made: list[BurnSettings] = []

    class Watched(FabricBurn):
        def __post_init__(self) -> None:
            made.append(self.settings)
            super().__post_init__()

    monkeypatch.setattr(operation, "FabricBurn", Watched)
    operation.preview(connected(context, world), CableBurnRequest())
    assert {port.number: part.serial for port, part in made[0].modules.items()} == {
        3: "MT2243VS01234",
        1: "MT2243VS01234",
    }


def subjects(context: SiteContext) -> Sequence[str]:
    events = context.journal.latest(Stream.CAMPAIGN, Kind.BURN_STARTED)
    return [event.subject for event in events if isinstance(event.payload, BurnStarted)]


def test_at_its_end_each_bad_link_has_its_work(context):
    """One may be disabled under the budget; the others stay in use, with the reason. A repaired link that is bad again
    is replaced, not cleaned.
    """
    tree = Tree(leaves=4, hosts=4)
    errors = {"SymbolErrorCounter": 2.0}
    bad = [Bad(PortId(tree.leaf(leaf), leaf + 5), per_s=errors) for leaf in (0, 1)]
    world = FabricWorld(tree.fabric(), tree.tables(), [*bad, Bad(PortId(tree.leaf(2), 8), lost_at_s=300.0)])
    link = next(link for link in world.fabric.links if bad[1].port in (link.a, link.b))
    peer = link.b if link.a == bad[1].port else link.a
    enabled = DisabledPort(bad[1].port, peer, "leaf-1 port 6", "bit errors", sure=True)
    context.journal.append([intended(Act.PORT_ENABLE, enabled), observed(Act.PORT_ENABLE, enabled, "LinkUp")])
    _, report = run(world, Diary())
    now = parse_ibnetdiscover(world.ibnetdiscover(Deadline.after(1)).value, file="ibnetdiscover")
    work = work_after(context, now, report.health)
    assert [one.subjects for one in work.clean] == [("leaf-0 port 5", "spine-0 port 1")]
    assert [one.subjects for one in work.replace] == [("leaf-1 port 6", "spine-1 port 2")]
    assert [one.kind for one in work.check] == [HealthKind.LOST]
    assert (work.budget, work.out) == (1, 0)
    assert [one["port"] for one in work.disable] == ["leaf-0 port 5"]
    assert ["budget" in reason for reason in work.kept.values()].count(True) >= 1

"""Adapters' firmware within a rolling change: under the plan's hold, before the steps that prove the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.maintenance.plan import Change, MaintenancePlan
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import ActIntended
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.maintenance_change import NodeChanger
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl.steps.settings.nic_firmware import PLAYBOOK
from tests.cli.nights import NAMES, write
from tests.events import new_event
from tests.steps.fakes import seen

PLAN = MaintenancePlan(name="nics", reason="ticket 8", change=Change(nic_firmware=True))
IMAGES = {"nic_firmware_images": {"MT_0000000838": {"version": "28.43.1014"}}}


@dataclass
class FakeAdapters:
    """Meets `Adapters`: plays are recorded, `fails` are nodes without new firmware, `killed` ends the firmware's play."""

    rest: Adapters
    context: SiteContext
    fails: frozenset[str] = frozenset()
    killed: bool = False
    plays: list[tuple[str, str]] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)

    @property
    def playbooks(self) -> FakeAdapters:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rest, name)

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        for host in hosts:
            self.plays.append((playbook, host.name))
            hold = self.context.node(host.name).hold
            self.held[playbook] = "" if hold is None else hold.plan
            if self.killed:
                raise EdgeError("ansible-playbook was killed")
            ok = playbook != PLAYBOOK or host.name not in self.fails
            play = PlayOutcome(host.name, ok, 1, "" if ok else "Burn it", "", reboot_for=("ofed",), boot_id="b")
            yield Observed(play, seen(f"{playbook} {host.name}"))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """Gold nodes, on a site that leaves the reboots of roles to an operator: `configure` stops there."""
    found = open_site(write(tmp_path))
    events: list[NewEvent] = []
    for at, name in enumerate(NAMES, start=1):
        events.append(new_event("node", f"id-{name}", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}))
        events.append(new_event("node", f"id-{name}", Kind.NODE_ADDRESSED, {"address": f"192.0.2.{at}"}))
    found.journal.append(events)
    settings = found.site.settings
    configure = replace(settings.configure, reboots=False, variables=IMAGES)
    with closing(found.journal):
        yield replace(found, site=replace(found.site, settings=replace(settings, configure=configure)))


def change(context: SiteContext, adapters: FakeAdapters, *names: str) -> Mapping[str, str]:
    return NodeChanger(context=context, adapters=adapters, plan=PLAN, control=Control()).change(names, ())


def kinds(context: SiteContext, name: str) -> list[str]:
    """Return the decisions and acts of a node since it became gold."""
    wanted = (Kind.HOLD_SET, Kind.ACT_INTENDED, Kind.ACT_OBSERVED, Kind.REVALIDATION_ORDERED, Kind.HOLD_LIFTED)
    found = []
    for event in context.journal.histories([NodeId(f"id-{name}")], wanted):
        act = event.payload.act.value if isinstance(event.payload, ActIntended) else ""
        found.append(f"{event.kind.value} {act}".strip())
    return found


def test_firmware_is_burnt_under_the_plans_hold_and_then_proven(context: SiteContext) -> None:
    """The hold ends with the order to prove the node; a node whose play failed stays held, and is not proven."""
    with closing(context.adapters()) as rest:
        adapters = FakeAdapters(rest, context, fails=frozenset({"n2"}))
        left = change(context, adapters, "n1", "n2")

    assert list(left) == ["n2"]
    assert "Burn it" in left["n2"]
    assert adapters.plays[:3] == [(PLAYBOOK, "n1"), (PLAYBOOK, "n2"), ("configure.yml", "n1")]
    assert adapters.held == {PLAYBOOK: "nics", "configure.yml": ""}
    assert kinds(context, "n1")[:5] == [
        "hold.set",
        f"act.intended {Act.NIC_FIRMWARE_PLAY.value}",
        "act.observed",
        "revalidation.ordered",
        "hold.lifted",
    ]
    hold = context.node("n2").hold
    assert hold is not None
    assert hold.plan == "nics"


def test_a_killed_play_is_repeated_under_the_same_hold(context: SiteContext) -> None:
    """The play looks before it burns; the node is held once, and then proven."""
    with closing(context.adapters()) as rest:
        with pytest.raises(EdgeError):
            change(context, FakeAdapters(rest, context, killed=True), "n1")
        assert [act.act for act in context.node("n1").open_acts] == [Act.NIC_FIRMWARE_PLAY]
        assert change(context, FakeAdapters(rest, context), "n1") == {}

    found = kinds(context, "n1")
    assert found.count("hold.set") == 1
    assert found.count("revalidation.ordered") == 1
    assert found.index("revalidation.ordered") > found.index("act.observed")

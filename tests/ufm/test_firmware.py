"""`fabric firmware`: versions by model, a fleet that is half updated, and waves by the live fabric and the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.alarms import ManagedSystem
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.fabric import FabricMasterSeen
from clusterctl.fleet.payloads.hardware import FabricDeviceSeen, FabricTransceiverSeen
from clusterctl.operations import fabric_firmware
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.fabric_firmware import FirmwareRequest, FirmwareResult
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from tests.cli.nights import FakeScheduler
from tests.ufm.watch_world import SiteAdapters, Tools, Watched, fat_tree, watched

TREE = fat_tree(3, 2, 1)
NAMES = ("node0001", "node0002", "node0003")
OLD, NEW = "31.2010.4100", "31.2012.1024"


@dataclass
class Systems:
    """A UFM that has these switches."""

    systems_: tuple[ManagedSystem, ...]

    def systems(self, deadline: Deadline) -> Observed[tuple[ManagedSystem, ...]]:
        deadline.check("reading")
        return Observed(self.systems_)


@dataclass
class Outside(SiteAdapters):
    scheduler: FakeScheduler | None = None


def managed(new: int, model: str = "QM9700") -> Systems:
    """So many switches of the tree run the new version, the others the old one."""
    guids = [guid for guid, one in TREE.devices.items() if one.description.startswith(("leaf", "spine"))]
    return Systems(
        tuple(
            ManagedSystem(guid=guid, kind="switch", model=model, firmware=NEW if at < new else OLD)
            for at, guid in enumerate(guids)
        )
    )


@pytest.fixture
def site(tmp_path: Path) -> Watched:
    made = watched(tmp_path / "site", TREE)
    rows = [f"{name},10.0.0.{at},SN-{name},A01,{at}" for at, name in enumerate(NAMES, start=1)]
    (made.folder / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    return watched_again(made)


def watched_again(made: Watched) -> Watched:
    from clusterctl.edges.site import load_site

    return Watched(made.folder, made.world, load_site(made.folder))


def asked(site: Watched, systems: Systems | None, busy: set[str] | None = None, **wanted: object) -> FirmwareResult:
    context = site.opened()
    outside = Outside(Tools(site.world), scheduler=FakeScheduler(NAMES, busy=busy or set()))
    context = replace(context, connect=lambda _site, _access: cast("Adapters", outside))
    try:
        return fabric_firmware.run(context, FirmwareRequest(**wanted), Control(), systems)  # type: ignore[arg-type]
    finally:
        context.journal.close()


def written(site: Watched, *events: NewEvent) -> None:
    context = site.opened()
    context.journal.append(list(events))
    context.journal.close()


def test_a_model_that_is_half_updated(site: Watched) -> None:
    """Its versions are counted, and those that differ from most are named; one version for all is well."""
    result = asked(site, managed(2))
    (model,) = result.switches
    assert (model.model, model.versions, result.exit_code) == ("QM9700", {OLD: 3, NEW: 2}, 1)
    assert model.odd == ("leaf-1", "leaf-2")
    assert asked(site, managed(5)).exit_code == 0
    assert result.waves == ()


def test_waves_leave_hosts_with_jobs_alone(site: Watched) -> None:
    """Switches that run the version already have no turn; a leaf with a busy host waits, and is named with it."""
    result = asked(site, managed(1), busy={"node0002"}, to=NEW)
    assert result.waves == (("spine-1",), ("spine-2", "leaf-3"))
    assert result.refusals == {"leaf-2": "node0002 is behind it: the scheduler reports it as allocated"}
    assert result.exit_code == 1


def test_the_master_that_the_watch_saw(site: Watched) -> None:
    """Its leaf stays in service."""
    adapter = next(guid for guid, one in TREE.devices.items() if one.description.startswith("node0003"))
    written(site, NewEvent(Stream.FABRIC, "master", FabricMasterSeen(guid=adapter, lid=3, priority=14)))
    result = asked(site, managed(0), to=NEW, switches=("leaf-*",))
    assert list(result.refusals) == ["leaf-3"]
    assert "subnet manager" in result.refusals["leaf-3"]


def test_without_ufm_the_history_has_the_versions(site: Watched) -> None:
    """By the last db_csv, transceivers too; a switch without a version is named, and is not taken for an old one."""
    first, second = (guid for guid, one in TREE.devices.items() if one.description in ("leaf-1", "leaf-2"))
    events = [
        NewEvent(Stream.FABRIC, str(guid), FabricDeviceSeen(device="switch", firmware=OLD)) for guid in (first, second)
    ]
    modules = [
        NewEvent(
            Stream.FABRIC,
            f"MT{at}",
            FabricTransceiverSeen(part="MMA4Z00-NS", firmware=version, ports=(f"{first}/{at}",)),
        )
        for at, version in enumerate(("46.120.0", "46.120.0", "46.90.0"), start=3)
    ]
    written(site, *events, *modules)
    result = asked(site, None, to=NEW)
    (switches,), (transceivers,) = result.switches, result.transceivers
    assert (switches.versions, switches.unknown) == ({OLD: 2}, ("leaf-3", "spine-1", "spine-2"))
    assert (transceivers.versions, transceivers.odd) == ({"46.120.0": 2, "46.90.0": 1}, ("leaf-1 port 5",))
    assert result.refusals == dict.fromkeys(("leaf-3", "spine-1", "spine-2"), "its firmware is unknown")
    assert result.waves == (("leaf-1",), ("leaf-2",))


def test_a_version_belongs_to_one_model(site: Watched) -> None:
    """Switches of two models are refused, and so is a switch that is not there."""
    mixed = managed(0).systems_
    mixed = (replace(mixed[0], model="QM9790"), *mixed[1:])
    with pytest.raises(UsageError, match="of 2 models: QM9700, QM9790"):
        asked(site, Systems(mixed), to=NEW)
    assert asked(site, Systems(mixed), to=NEW, switches=("leaf-1",)).waves == (("leaf-1",),)
    with pytest.raises(UsageError):
        asked(site, Systems(mixed), to=NEW, switches=("leaf-9",))


def test_an_adapter_of_an_unknown_host(site: Watched) -> None:
    """A host that the site does not name holds its leaf back: it is unknown whether it has jobs."""
    (site.folder / "bmcs.csv").write_text("name,bmc_address,serial,rack,unit\nnode0001,10.0.0.1,SN-1,A01,1\n")
    result = asked(watched_again(site), managed(0), to=NEW, switches=("leaf-*",))
    assert sorted(result.refusals) == ["leaf-2", "leaf-3"]
    assert all(reason.startswith("it is unknown which host") for reason in result.refusals.values())
    assert Guid("00000000000b0002") in TREE.devices

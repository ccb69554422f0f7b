"""The emulated tree against the recorded one of a real Dell R750, and against itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from clusterctl_lab.boot import BootTarget, Medium
from clusterctl_lab.emulators.redfish.dell import DELL
from clusterctl_lab.emulators.redfish.view import LogRecord, SessionView, TaskState, TaskView, View
from clusterctl_lab.faults import inject
from clusterctl_lab.machine import Machine
from lab.tests.emulators.redfish.bmc_kit import world_of
from lab.tests.emulators.redfish.shapes import Shape, counts, links, properties, recorded, schema_of

NOT_RECORDED = {
    (
        "ServiceRoot",
        "Oem.Clusterctl",
    ): "ours: marks a simulated BMC (DSP0266 leaves the names below Oem to their owner)",
    ("ServiceRoot", "Oem.Clusterctl.Simulated"): "ours",
    ("NetworkDeviceFunction", "InfiniBand"): "DMTF NetworkDeviceFunction v1_5_0; the recorded adapter leaves it out",
    ("NetworkDeviceFunction", "InfiniBand.NodeGUID"): "DMTF NetworkDeviceFunction v1_5_0",
    ("NetworkDeviceFunction", "InfiniBand.PortGUID"): "DMTF NetworkDeviceFunction v1_5_0",
    ("NetworkDeviceFunction", "Ethernet.MACAddress"): "null: DMTF NetworkDeviceFunction, an NDR port has no MAC",
    ("NetworkDeviceFunction", "Ethernet.PermanentMACAddress"): "null: likewise",
    ("ComputerSystem", "Boot.HttpBootUri"): "DMTF ComputerSystem v1_9_0",
    ("ComputerSystem", "BootProgress"): "DMTF ComputerSystem v1_13_0; iDRAC9 of an R750, younger than the recording",
    ("ComputerSystem", "BootProgress.LastState"): "likewise",
    **{
        ("Chassis", f"Actions{name}"): "Dell iDRAC9 Redfish API guide, DellOemChassis: younger than the recording"
        for name in (
            ".Oem",
            ".Oem.#DellOemChassis.ExtendedReset",
            ".Oem.#DellOemChassis.ExtendedReset.FinalPowerState@Redfish.AllowableValues",
            ".Oem.#DellOemChassis.ExtendedReset.ResetType@Redfish.AllowableValues",
            ".Oem.#DellOemChassis.ExtendedReset.target",
        )
    },
    **{
        ("Task", name): "DMTF Task v1_5_1; no task was there when it was recorded"
        for name in (
            *("@odata.context", "@odata.id", "@odata.type", "Id", "Name", "Messages", "Messages.Message"),
            *("Messages.Severity", "PercentComplete", "StartTime", "EndTime", "TaskState", "TaskStatus"),
        )
    },
    ("TaskCollection", "Members.@odata.id"): "DMTF TaskCollection; likewise",
    **{
        (schema, name): f"DMTF {schema} v1_1_0; the recording has the registry itself, not the list of them"
        for schema, own in (
            ("MessageRegistryFile", ("Id", "Languages", "Location", "Location.Language", "Location.Uri", "Registry")),
            ("MessageRegistryFileCollection", ("Members", "Members.@odata.id", "Members@odata.count")),
        )
        for name in ("@odata.context", "@odata.id", "@odata.type", "Name", *own)
    },
}


def view_of(machine: Machine) -> View:
    """A view in which everything that may be there is there."""
    record = LogRecord("2026-01-01T00:00:00+00:00", "OK", "System is turning on.", "IDRAC.2.7.SYS1000", ("a",))
    return View(
        machine=machine,
        power=True,
        running=True,
        boot_target=BootTarget.PXE,
        boot_once=True,
        sel=(record,),
        lifecycle_log=(record,),
        sessions=(SessionView("1", "root", "127.0.0.1"),),
        boot_uri="http://192.0.2.1/boot.efi",
        pending=(("ProcCStates", "Enabled"),),
        bios=(("ProcCStates", "Disabled"), ("AcPwrRcvryUserDelay", 120)),
        media=((DELL.paths.media[0], Medium("http://192.0.2.1/some.iso")),),
        tasks=tuple(
            TaskView(str(number), "FirmwareUpdate", "BIOS", state, 50, "words", record.at, record.at)
            for number, state in enumerate(TaskState)
        ),
    )


def tree_of(machine: Machine) -> dict[str, Any]:
    return DELL.tree(view_of(machine))


def healthy() -> Machine:
    return world_of().machines["node001"]


def looks() -> Iterator[Machine]:
    """A healthy machine, and one with each fault that changes what a BMC reports."""
    whole = healthy()
    yield whole
    for fault in (
        "dead-nvme",
        "failed-dimm",
        "failed-fan",
        "failed-psu",
        "missing-gpu",
        "missing-hca",
        "over-temperature",
    ):
        yield inject({whole.name: whole}, fault, whole.name)


@pytest.fixture(scope="module")
def recording() -> Shape:
    """Schema → property path → JSON types, over all recorded resources."""
    return recorded("dell")


def test_every_property_was_recorded_or_cites_its_schema(recording: Shape) -> None:
    """Nothing in the emulated tree is invented: each property stands in the recording, with a type seen there, or is
    named above with its source.
    """
    unknown = set()
    compared = 0
    for resource in (resource for machine in looks() for resource in tree_of(machine).values()):
        schema = schema_of(resource)
        for path, type_ in properties(resource):
            compared += 1
            seen = recording.get(schema, {}).get(path, set())
            if (schema, path) not in NOT_RECORDED and (not seen or (type_ not in seen and seen != {"NoneType"})):
                unknown.add((schema, path, type_, tuple(sorted(seen))))
    assert unknown == set()
    assert compared > 1000


def test_exceptions_are_needed(recording: Shape) -> None:
    """No entry of the list of exceptions outlives its reason."""
    ours = {(schema_of(r), path) for r in tree_of(healthy()).values() for path, _ in properties(r)}
    assert set(NOT_RECORDED) <= ours


def test_no_link_leads_nowhere() -> None:
    """A client that walks the tree meets no 404 that a real BMC would not give: all links and members are served."""
    tree = tree_of(healthy())
    embedded = "/Oem/Dell/"
    dangling = {link for r in tree.values() for link in links(r) if link.split("#")[0] not in tree}
    assert {link for link in dangling if embedded not in link} == set()


def test_ids_are_the_last_segment_and_paths_their_own() -> None:
    """Each resource is at the path that it names."""
    for path, resource in tree_of(healthy()).items():
        assert resource.get("@odata.id", path) == path


def test_counts_agree_with_lists() -> None:
    """`X@odata.count` is the length of `X`, everywhere."""
    reported = [agrees for resource in tree_of(healthy()).values() for agrees in counts(resource)]
    assert all(reported)
    assert len(reported) > 100


def test_missing_gpu_is_missing_everywhere() -> None:
    """A GPU that is taken out leaves no trace: not as processor, PCIe device, link, slot id or serial."""
    machine = healthy()
    gone = machine.gpus[3]
    before = json.dumps(tree_of(machine))
    after = json.dumps(tree_of(replace(machine, gpus=tuple(g for g in machine.gpus if g is not gone))))
    for trace in (gone.serial, "Video.Slot.24-1", "PCIeDevices/97-0"):
        assert trace in before
        assert trace not in after
    assert after.count('"ProcessorType": "GPU"') == 7


def test_unplugged_cable_is_seen_by_the_adapter() -> None:
    """The BMC shows a port whose cable is out as down, and only that one."""
    machine = healthy()
    unplugged = replace(machine, hcas=(replace(machine.hcas[0], cable=None), *machine.hcas[1:]))
    tree = tree_of(unplugged)
    ports = {path: r["LinkStatus"] for path, r in tree.items() if schema_of(r) == "NetworkPort"}
    assert [path.rsplit("/", 1)[-1] for path, link in ports.items() if link == "Down"] == ["InfiniBand.Slot.31-1"]


def test_identities_are_dells() -> None:
    """The service tag is in SKU, the board's serial differs, adapters pad theirs, GUIDs are written with colons."""
    machine = healthy()
    tree = tree_of(machine)
    system = tree["/redfish/v1/Systems/System.Embedded.1"]
    assert system["SKU"] == machine.serial != system["SerialNumber"]
    adapter = tree["/redfish/v1/Chassis/System.Embedded.1/NetworkAdapters/InfiniBand.Slot.31"]
    assert adapter["SerialNumber"].strip() == machine.hcas[0].serial != adapter["SerialNumber"]
    function = tree[f"{adapter['@odata.id']}/NetworkDeviceFunctions/InfiniBand.Slot.31-1"]
    assert function["InfiniBand"]["NodeGUID"].replace(":", "").lower() == machine.hcas[0].guid


def test_uuid_is_woven_from_the_tag_as_recorded() -> None:
    """The recorded machine's tag gives the recorded machine's UUID."""
    system = tree_of(replace(healthy(), serial="F54P1G3"))["/redfish/v1/Systems/System.Embedded.1"]
    assert system["UUID"] == "4c4c4544-0035-3410-8050-c6c04f314733"

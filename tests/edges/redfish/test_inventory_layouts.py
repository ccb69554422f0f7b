"""Inventories of BMCs that lay things out in other ways, and what reading them costs."""

from __future__ import annotations

import pytest

from clusterctl.fleet.bmc.boot import Post
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Firmware, Inventory, Rollup, Temperature
from clusterctl.formats.redfish.inventory import InventoryReading, read_inventory
from clusterctl.formats.redfish.power import read_power
from clusterctl.formats.redfish.system import read_post
from tests.edges.redfish.trees import Manner, Tree, ask, asked, dgx, recorded, small

DGX = "/redfish/v1/Systems/DGX"
VENDORS = ["dgx", "dell", "hpe", "supermicro"]


def tree_of(vendor: str) -> Tree:
    return dgx() if vendor == "dgx" else recorded(vendor)


def reading(tree: Tree, manner: Manner = Manner.PLAIN) -> InventoryReading:
    return ask(read_inventory, tree, manner)


def read(tree: Tree) -> Inventory:
    return reading(tree).inventory


def test_two_systems_and_new_resources() -> None:
    """An AMI BMC with an HGX board: its GPUs, its host's CPUs and memory, sensors that stand by themselves."""
    inventory = read(dgx())
    assert [gpu.slot for gpu in inventory.gpus or ()] == [f"GPU_SXM_{n}" for n in range(1, 5)]
    assert [cpu.cores for cpu in inventory.cpus or ()] == [72, 72]
    assert [dimm.slot for dimm in inventory.dimms or ()] == ["CPU_0_DIMM_0", "CPU_1_DIMM_0"]
    assert [psu.slot for psu in inventory.psus or ()] == ["PSU_0", "PSU_1"]
    assert (inventory.temperatures or ())[:2] == (
        Temperature("TEMP Inlet", 24.5, 45, "OK", intake=True),
        Temperature("GPU_SXM_1_TEMP_0", 34, 92, "OK"),
    )
    assert inventory.firmware == (Firmware("BMC_0", "24.09.1"), Firmware("HGX_FW_GPU_SXM_1", "97.00.82.00.18"))


def test_a_serial_that_only_the_assembly_has() -> None:
    """The assembly of the system's own model; where none or several fit, the machine has no identity."""
    tree = dgx()
    assemblies = tree["/redfish/v1/Chassis/DGX/Assembly"]["Assemblies"]
    assert read(tree).serial == ask(read_power, tree).serial == "1820325000042"
    assemblies[0]["Model"] = assemblies[1]["Model"]
    with pytest.raises(ParseError) as caught:
        read(tree)
    assert caught.value.where == f"{DGX} SerialNumber"
    assemblies.clear()
    with pytest.raises(ParseError):
        read(tree)


@pytest.mark.parametrize(
    ("names", "reported"),
    [
        ([{"DurableNameFormat": "NAA", "DurableName": "5000C500A0000001"}], "5000C500A0000001"),
        (
            [{"DurableNameFormat": "UUID", "DurableName": "x"}, {"DurableNameFormat": "EUI", "DurableName": "0025"}],
            "0025",
        ),
        ([{"DurableNameFormat": None, "DurableName": None}], ""),
        ([{"DurableNameFormat": "NAA", "DurableName": "N/A"}], ""),
        (None, ""),
    ],
)
def test_a_drives_world_wide_name(names: list[dict[str, str | None]] | None, reported: str) -> None:
    """The first name that a kernel would report too (DMTF DSP0268, Identifiers); many BMCs have none."""
    tree = dgx()
    tree["/redfish/v1/Systems/DGX/Storage/1/Drives/NVMe_1"]["Identifiers"] = names
    assert [drive.wwn for drive in read(tree).drives or ()] == ["", reported, ""]


def test_a_host_with_ethernet_ports_that_the_bmc_does_not_see() -> None:
    """They are unmeasured, not absent (GH200, GB200)."""
    found = reading(dgx())
    assert found.inventory.nics is None
    assert any(problem.startswith("nics: ") for problem in found.problems)


def test_one_of_two_lists_of_ethernet_ports() -> None:
    """Whichever there is counts; that the other is missing stands in the evidence."""
    tree = small()
    del tree["/redfish/v1/Chassis/1"]["NetworkAdapters"]
    found = reading(tree)
    assert [nic.mac for nic in found.inventory.nics or ()] == ["02:aa:00:00:00:01"]
    assert any("ports that only they list are missing" in problem for problem in found.problems)
    assert found.inventory.hcas is None


def test_a_gpu_that_host_and_board_list_is_one() -> None:
    """By its serial; two without serial are two, and so are two of one list with the same serial."""
    tree = dgx()
    gpu, listed = "/redfish/v1/Systems/DGX/Processors/GPU1", tree[f"{DGX}/Processors"]
    tree[gpu] = {"@odata.id": gpu, "ProcessorType": "GPU", "Model": "GB", "SerialNumber": "176001"}
    listed["Members"].append({"@odata.id": gpu})
    listed["Members@odata.count"] += 1
    assert len(read(tree).gpus or ()) == 4
    tree[gpu]["SerialNumber"] = None
    assert len(read(tree).gpus or ()) == 5
    tree["/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_SXM_2"]["SerialNumber"] = "176001"
    assert len(read(tree).gpus or ()) == 5


@pytest.mark.parametrize(("health", "model", "count"), [("OK", "", 4), ("Critical", "", 8), ("OK", "L40S", 8)])
def test_a_host_that_lists_its_boards_gpus_without_serials(health: str, model: str, count: int) -> None:
    """Under other names, and as many: they are the board's, unless one fails or is another product."""
    tree = dgx()
    members = [f"{DGX}/Processors/Card{n}" for n in range(4)]
    for path in members:
        status = {"State": "Enabled", "Health": health}
        tree[path] = {"@odata.id": path, "ProcessorType": "GPU", "Model": model, "Status": status}
    listed = tree[f"{DGX}/Processors"]
    listed["Members"] += [{"@odata.id": path} for path in members]
    listed["Members@odata.count"] += 4
    gpus = read(tree).gpus or ()
    assert len(gpus) == count
    assert sum(gpu.serial is not None for gpu in gpus) == 4


@pytest.mark.parametrize("manner", list(Manner), ids=lambda manner: manner.name.lower())
@pytest.mark.parametrize("vendor", VENDORS)
def test_whatever_a_bmc_does_with_expand_the_inventory_is_the_same(vendor: str, manner: Manner) -> None:
    """A BMC that lacks what it claims costs a few requests more, and no part is lost."""
    plain, paths = asked(read_inventory, tree_of(vendor))
    found, more = asked(read_inventory, tree_of(vendor), manner)
    assert found == plain
    assert len(more) <= 1.3 * len(paths)


@pytest.mark.parametrize(("vendor", "most"), [("dgx", 29), ("dell", 21), ("hpe", 36), ("supermicro", 33)])
def test_requests_of_one_inventory(vendor: str, most: int) -> None:
    """Where the BMC expands collections; a slow one needs seconds for each."""
    _, paths = asked(read_inventory, tree_of(vendor), Manner.EXPANDS)
    assert len(paths) <= most


def test_collections_are_not_expanded_where_the_bmc_does_not_offer_it() -> None:
    """No BMC is asked for what it reports as unsupported."""
    tree = dgx()
    tree["/redfish/v1"]["ProtocolFeaturesSupported"]["ExpandQuery"] |= {"NoLinks": False}
    assert any("$expand=*" in path for path in asked(read_inventory, tree)[1])
    tree["/redfish/v1"]["ProtocolFeaturesSupported"]["ExpandQuery"] |= {"ExpandAll": False}
    assert not any("$expand" in path for path in asked(read_inventory, tree)[1])


@pytest.mark.parametrize(
    ("reported", "why"),
    [
        ({}, ""),
        ({"Oem": {"Hpe": {"DeviceDiscoveryComplete": {"DeviceDiscovery": "vMainDeviceDiscoveryComplete"}}}}, ""),
        ({"Oem": {"Hpe": {"DeviceDiscoveryComplete": {"DeviceDiscovery": "Initial"}}}}, "(Initial)"),
        ({"Oem": {"Dell": {"DellSystem": {"LastSystemInventoryTime": "2026-01-01T00:00:00+00:00"}}}}, ""),
        ({"Oem": {"Dell": {"DellSystem": {"LastSystemInventoryTime": None}}}}, "never collected"),
        ({"PowerState": "Off"}, ""),
        ({"PowerState": "Off", "MemorySummary": {"TotalSystemMemoryGiB": 0}}, "its memory yet"),
        ({"PowerState": "Off", "ProcessorSummary": {"Count": None, "Model": ""}}, "its processors yet"),
    ],
)
def test_an_inventory_that_may_be_older_than_the_machine(reported: dict[str, object], why: str) -> None:
    """Vendors' own word on it, and what a machine that was never on cannot know."""
    tree = small()
    tree["/redfish/v1/Systems/1"] |= reported
    stale = read(tree).stale
    assert why in stale
    assert bool(stale) is bool(why)


@pytest.mark.parametrize(
    ("reported", "post"),
    [
        ({}, Post.UNKNOWN),
        ({"BootProgress": {"LastState": "MemoryInitializationStarted"}}, Post.RUNNING),
        ({"BootProgress": {"LastState": "OSRunning"}}, Post.DONE),
        ({"BootProgress": {"LastState": "OSRunning"}, "PowerState": "Off"}, Post.RUNNING),
        ({"Oem": {"Hpe": {"PostState": "InPost"}}}, Post.RUNNING),
        ({"Oem": {"Hpe": {"PostState": "FinishedPost"}}}, Post.DONE),
    ],
)
def test_how_far_the_self_test_is(reported: dict[str, object], post: Post) -> None:
    """HPE's PostState, else BootProgress; the state of a machine that is off is of its last boot."""
    tree = small()
    tree["/redfish/v1/Systems/1"] |= reported
    assert ask(read_post, tree) is post


def test_roll_ups() -> None:
    """By kind, in one vocabulary; what is well or unknown is not named. The recorded DL385 has a failing drive."""
    tree = small()
    tree["/redfish/v1/Systems/1"]["MemorySummary"]["Status"] = {"HealthRollup": "Warning"}
    dell = {
        "FanRollupStatus": "OK",
        "PSRollupStatus": "Error",
        "CurrentRollupStatus": "Error",
        "SDCardRollupStatus": None,
    }
    tree["/redfish/v1/Systems/1"]["Oem"] = {"Dell": {"DellSystem": dell}}
    assert read(tree).rollups == (Rollup("Memory", "Warning"), Rollup("PS", "Critical"))
    assert read(recorded("hpe")).rollups == (Rollup("Storage", "Critical"),)
    assert read(recorded("dell")).rollups == read(recorded("supermicro")).rollups == ()


def test_the_parts_that_the_recorded_bmcs_report() -> None:
    """All modules, fans and running firmware of the three recorded machines."""
    found = {vendor: read(recorded(vendor)) for vendor in ("dell", "hpe", "supermicro")}
    assert {name: len(one.dimms or ()) for name, one in found.items()} == {"dell": 16, "hpe": 16, "supermicro": 32}
    assert {name: len(one.fans or ()) for name, one in found.items()} == {"dell": 6, "hpe": 6, "supermicro": 6}
    assert {(one.stale, one.cpu_count) for one in found.values()} == {("", 2)}
    assert ("BIOS (BIOS.Setup.1-1)", "1.8.2") in {(f.component, f.version) for f in found["dell"].firmware or ()}
    assert ("System ROM (System Board)", "A42 v2.60 (08/11/2022)") in {
        (f.component, f.version) for f in found["hpe"].firmware or ()
    }
    assert "Staging_BIOS" not in str(found["supermicro"].firmware)

"""From resources to an inventory."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.hardware.temperatures import judge_temperatures
from clusterctl.fleet.node import Dimm, Fan, Firmware, Gpu, Hca, Inventory, Psu, Serial, Temperature
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.tree import Unreadable
from tests.edges.redfish.trees import Tree, ask, recorded, small

SYSTEM = "/redfish/v1/Systems/1"
ADAPTERS = "/redfish/v1/Chassis/1/NetworkAdapters"
DRIVES = "/redfish/v1/Chassis/Disks/Drives"


def read(tree: Tree) -> Inventory:
    return ask(read_inventory, tree).inventory


def test_a_whole_machine() -> None:
    """Empty sockets and bays do not count, padding goes, one port listed twice is one port, IPoIB MACs are no NICs."""
    found = ask(read_inventory, small())
    inventory = found.inventory
    assert found.problems == ()
    assert (inventory.manufacturer, inventory.model, inventory.serial) == ("Example Inc.", "GX-8000", "EX00042")
    assert (inventory.bios_version, inventory.bmc_firmware, inventory.health) == ("3.1", "7.01", "OK")
    assert (inventory.cpu_count, inventory.memory_gib) == (2, 512.0)
    assert inventory.gpus is not None
    assert [(gpu.slot, gpu.serial) for gpu in inventory.gpus] == [
        ("GPU_SXM_1", "165000001"),
        ("GPU_SXM_2", "165000002"),
    ]
    assert inventory.hcas == (
        Hca("IB1", "Example ConnectX-7 NDR", "MT0001", "a088c20300000101", "28.39.1002", 1),
        Hca("IB2", "Example ConnectX-7 NDR", "MT0002", "a088c20300000102", "28.39.1002", 1),
    )
    assert inventory.nics is not None
    assert [(nic.mac, nic.boots) for nic in inventory.nics] == [
        ("02:aa:00:00:00:01", True),
        ("02:aa:00:00:00:02", True),
    ]
    assert inventory.drives is not None
    assert [(drive.slot, drive.serial, drive.healthy) for drive in inventory.drives] == [
        ("Bay 0", "ROOT1", True),
        ("Bay 1", "DATA1", True),
    ]


def test_more_of_a_machine() -> None:
    """CPUs, memory modules without empty sockets, fans, and the firmware that runs."""
    inventory = read(small())
    assert [cpu.slot for cpu in inventory.cpus or ()] == ["CPU1", "CPU2"]
    assert inventory.dimms == (
        Dimm("DIMM A1", 262144, "EX-256", Serial("M1"), healthy=True),
        Dimm("DIMM A2", 262144, "EX-256", Serial("M2"), healthy=True),
    )
    assert inventory.fans == (Fan("FAN1", healthy=True), Fan("FAN2", healthy=True))
    assert inventory.firmware == (Firmware("BIOS", "3.1"), Firmware("BMC", "7.01"))


def test_dell() -> None:
    """The recorded PowerEdge R750: its service tag (not the board's serial), one H100, a dual-port HCA, 3 NVMe."""
    inventory = read(recorded("dell"))
    assert (inventory.manufacturer, inventory.model, inventory.serial) == ("Dell Inc.", "PowerEdge R750", "F54P1G3")
    assert (inventory.bios_version, inventory.bmc_firmware) == ("1.8.2", "6.00.30.00")
    assert (inventory.cpu_count, inventory.memory_gib, inventory.health) == (2, 512.0, "OK")
    assert inventory.gpus == (Gpu("Video.Slot.2-1", "NVIDIA H100 PCIe", "1654422007043", "0000:17:00.0", healthy=True),)
    assert inventory.hcas is not None
    assert [(hca.slot, hca.guid, hca.firmware, hca.port) for hca in inventory.hcas] == [
        ("InfiniBand.Slot.7-1", None, "20.31.10.14", 1),
        ("InfiniBand.Slot.7-2", None, "20.31.10.14", 2),
    ]
    assert inventory.nics is not None
    assert {nic.mac for nic in inventory.nics} == {
        "70:b5:e8:f0:52:dc",
        "70:b5:e8:f0:52:dd",
        "e4:3d:1a:13:27:f0",
        "e4:3d:1a:13:27:f1",
        "b8:3f:d2:90:97:c4",
    }
    assert inventory.drives is not None
    assert {drive.serial for drive in inventory.drives} == {"61X0A002TCD8", "61M0A08ZTCD8", "61P0A06CTCD8"}
    assert {drive.size_bytes for drive in inventory.drives} == {1920383410176}


def test_hpe() -> None:
    """The recorded DL385: no GPU (its video controller is none), HCAs with GUIDs, a failing drive among 18, Critical."""
    inventory = read(recorded("hpe"))
    assert (inventory.manufacturer, inventory.serial, inventory.health) == ("HPE", "MXQ302099S", "Critical")
    assert inventory.bmc_firmware == "iLO 5 v2.72"
    assert inventory.gpus == ()
    assert inventory.hcas is not None
    assert [hca.guid for hca in inventory.hcas] == ["88e9a4ffff8742c8", "88e9a4ffff809da2"]
    assert inventory.nics is not None
    assert [nic.mac for nic in inventory.nics] == [
        "50:7c:6f:11:f2:a6",
        "50:7c:6f:11:f2:a7",
        "50:7c:6f:11:f2:a8",
        "50:7c:6f:11:f2:a9",
        "b8:3f:d2:d7:f7:4a",
    ]
    assert inventory.drives is not None
    assert len(inventory.drives) == 18
    assert [(drive.slot, drive.serial) for drive in inventory.drives if not drive.healthy] == [
        ("Box 2:Bay 5", "S6C1NA0TA04209")
    ]


def test_supermicro() -> None:
    """The recorded 821GE: 8 H100 that are PCIe devices only, 8 ConnectX-7, drives that only links lead to."""
    inventory = read(recorded("supermicro"))
    assert (inventory.model, inventory.serial) == ("SYS-821GE-TNHR", "S889914X3710910")
    assert (inventory.cpu_count, inventory.memory_gib) == (2, 2048.0)
    assert inventory.gpus is not None
    assert [gpu.slot for gpu in inventory.gpus] == [f"GPU{n}" for n in range(1, 9)]
    assert inventory.gpus[5].serial == "1652323053976"
    assert inventory.hcas is not None
    assert [hca.slot for hca in inventory.hcas] == [f"PCIe Slot {n} ({n})" for n in range(1, 9)]
    assert {hca.model for hca in inventory.hcas} == {"MCX75310AAS-NEAT"}
    assert inventory.nics is not None
    assert len(inventory.nics) == 11
    assert "be:3a:f2:b6:05:9f" not in {nic.mac for nic in inventory.nics}
    assert inventory.drives is not None
    assert len(inventory.drives) == 8
    assert "S6CKNN0W502286" in {drive.serial for drive in inventory.drives}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{SYSTEM}/Processors/GPU_SXM_2", "gpus"),
        (f"{SYSTEM}/Processors", "gpus"),
        (f"{SYSTEM}/Processors/CPU1", "cpu_count"),
        (f"{ADAPTERS}/IB2", "hcas"),
        (f"{ADAPTERS}/IB1/NetworkDeviceFunctions/0", "hcas"),
        (f"{SYSTEM}/EthernetInterfaces/1", "nics"),
        (f"{DRIVES}/1", "drives"),
        ("/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/2", "psus"),
        ("/redfish/v1/Chassis", "drives"),
    ],
)
def test_one_unreadable_resource_loses_nothing_else(path: str, field: str) -> None:
    """What was read stays; a list of which something could not be read is never taken for a whole one."""
    whole, tree = read(small()), small()
    tree[path] = Unreadable("HTTP 500")
    found = ask(read_inventory, tree)
    assert not found.inventory.complete(field)
    assert any(path in problem for problem in found.problems)
    for name in ("cpus", "dimms", "gpus", "hcas", "nics", "drives", "psus", "fans"):
        assert getattr(found.inventory, name) == getattr(whole, name) or not found.inventory.complete(name)


@pytest.mark.parametrize(("field", "value"), [("SerialNumber", None), ("SerialNumber", "To Be Filled By O.E.M.")])
def test_a_machine_without_identity_is_refused(field: str, value: str | None) -> None:
    """Without a serial nothing is known of the machine; the error names resource and field."""
    tree = small()
    tree[SYSTEM][field] = value
    with pytest.raises(ParseError) as caught:
        read(tree)
    assert caught.value.where == f"{SYSTEM} {field}"


def test_an_unreadable_system_is_an_error() -> None:
    """A BMC that does not give its system is not understood as an empty machine."""
    tree = small()
    tree[SYSTEM] = Unreadable("HTTP 403")
    with pytest.raises(EdgeError, match="HTTP 403"):
        read(tree)


def test_a_collection_that_lists_fewer_than_it_counts() -> None:
    """The count next to the members is believed: a member that is not listed is not lost silently."""
    tree = small()
    tree[f"{SYSTEM}/Processors"]["Members"].pop()
    assert not read(tree).complete("gpus")


def test_pages_of_a_collection() -> None:
    """Members on later pages count; pages that lead back to themselves end in an unmeasured list."""
    tree = small()
    page = tree[f"{SYSTEM}/Processors"]
    tree[f"{SYSTEM}/Processors?$skip=4"] = {"Members": page["Members"][4:]}
    page["Members"] = page["Members"][:4]
    page["Members@odata.nextLink"] = f"{SYSTEM}/Processors?$skip=4"
    assert len(read(tree).gpus or ()) == 2
    page["Members@odata.nextLink"] = f"{SYSTEM}/Processors"
    assert read(tree).gpus is None


def test_links_out_of_the_service_are_not_followed() -> None:
    """A path that would carry our token elsewhere is an error of the BMC, not a request."""
    tree = small()
    tree[f"{SYSTEM}/Processors"]["Members"][0] = {"@odata.id": "@elsewhere.example/redfish/v1"}
    found = ask(read_inventory, tree)
    assert found.inventory.gpus is None
    assert "leads out of the Redfish service" in " ".join(found.problems)


def test_versions_from_the_firmware_inventory() -> None:
    """Where system and manager keep silent, the firmware inventory is asked."""
    tree = small()
    del tree[SYSTEM]["BiosVersion"], tree["/redfish/v1/Managers/1"]["FirmwareVersion"]
    inventory = read(tree)
    assert (inventory.bios_version, inventory.bmc_firmware) == ("3.1", "7.01")


def test_a_second_system_for_the_gpu_baseboard() -> None:
    """An HGX board that is a system of its own gives GPUs; the machine's identity stays the host's."""
    tree = small()
    tree["/redfish/v1/Systems"]["Members"].insert(0, {"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"})
    tree["/redfish/v1/Systems"]["Members@odata.count"] = 2
    board = "/redfish/v1/Systems/HGX_Baseboard_0"
    tree[board] = {
        "SerialNumber": "BOARD",
        "Manufacturer": "NVIDIA",
        "Processors": {"@odata.id": f"{board}/Processors"},
    }
    tree[f"{board}/Processors"] = {"Members": [{"@odata.id": f"{board}/Processors/GPU_SXM_3"}]}
    tree[f"{board}/Processors/GPU_SXM_3"] = {"ProcessorType": "GPU", "Model": "Example H100"}
    inventory = read(tree)
    assert inventory.serial == "EX00042"
    assert len(inventory.gpus or ()) == 3


def test_power_supplies_by_slot_and_serial() -> None:
    """The label that the BMC gives each, its serial and health; empty bays are no supplies."""
    tree = small()
    supplies = "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies"
    tree[f"{supplies}/1"] |= {"Name": "PS1 Status", "SerialNumber": "P-1 "}
    tree[f"{supplies}/2"] |= {"Status": {"State": "Enabled", "Health": None}}
    assert read(tree).psus == (Psu("PS1", Serial("P-1"), healthy=True), Psu("2"))
    tree[f"{supplies}/1"]["Status"]["Health"] = "Critical"
    assert [psu.healthy for psu in read(tree).psus or ()] == [False, None]


@pytest.mark.parametrize(
    ("vendor", "psus"),
    [
        ("dell", [("PS1", "PHARP0016L008V"), ("PS2", "PHARP0016L008W")]),
        ("hpe", [("bay 1", "5XLNR0LLLH764F"), ("bay 2", "5XLNR0LLLH7645")]),
        ("supermicro", [("Power Supply Bay 1", "P3K6GCN25IB0914"), ("Power Supply Bay 2", "P3K6GCN25IB0915")]),
    ],
)
def test_recorded_power_supplies(vendor: str, psus: list[tuple[str, str]]) -> None:
    """Each vendor's own label, no two alike; all of them are well."""
    found = read(recorded(vendor)).psus or ()
    assert [(psu.slot, psu.serial) for psu in found][:2] == psus
    assert len({psu.slot for psu in found}) == len(found)
    assert all(psu.healthy for psu in found)


@pytest.mark.parametrize(
    ("vendor", "intake", "reading"),
    [("dell", "System Board Inlet Temp", 25), ("hpe", "01-Inlet Ambient", 20), ("supermicro", "Inlet Temp", 21)],
)
def test_recorded_temperatures(vendor: str, intake: str, reading: float) -> None:
    """One sensor measures the air that comes in; nothing recorded is too hot, absent sensors are left out."""
    inventory = read(recorded(vendor))
    found = inventory.temperatures or ()
    assert [(one.sensor, one.celsius, one.critical) for one in found if one.intake] == [(intake, reading, 42)]
    assert {one.verdict for one in judge_temperatures(inventory)} == {Verdict.PASS}
    assert all(one.celsius > 0 for one in found)


def test_temperatures() -> None:
    """Readings with their thresholds and the BMC's word; what does not read now is left out."""
    tree = small()
    thermal = "/redfish/v1/Chassis/1/Thermal"
    tree["/redfish/v1/Chassis/1"]["Thermal"] = {"@odata.id": thermal}
    tree[thermal] = {
        "Temperatures": [
            {"Name": "GPU Inlet Temp", "ReadingCelsius": 34, "UpperThresholdFatal": 90, "Status": {"Health": "OK"}},
            {"Name": "Ambient", "ReadingCelsius": 21.5, "PhysicalContext": "Intake"},
            {"Name": "CPU1 Temp", "ReadingCelsius": None, "UpperThresholdCritical": 99},
            {"Name": "M2 Temp", "ReadingCelsius": 0, "Status": {"State": "Absent"}},
        ]
    }
    assert read(tree).temperatures == (
        Temperature("GPU Inlet Temp", 34, 90, "OK"),
        Temperature("Ambient", 21.5, intake=True),
    )
    tree[thermal] = Unreadable("HTTP 500")
    assert read(tree).temperatures is None


def test_a_bmc_without_temperatures() -> None:
    """It has none: that is not the same as one that does not report it."""
    assert read(small()).temperatures == ()

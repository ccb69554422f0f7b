"""The rendered trees of the vendors other than Dell: against real machines' recordings, and against themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.redfish.vendors import PROFILES
from clusterctl_lab.emulators.redfish.view import LogRecord, SessionView, View
from clusterctl_lab.event_texts import BmcEvent, log_entry
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from lab.tests.emulators.redfish.shapes import counts, links, properties, recorded, schema_of

LAYOUT = Layout(IPv4Network("127.88.0.0/16"))
OTHERS = (Vendor.SUPERMICRO, Vendor.HPE, Vendor.OPENBMC)
SERVICES = {"AccountService", "ManagerAccount", "SessionService", "Session", "Bios", "BootOption", "VirtualMedia"}
"""Rendered alike for all vendors from the DMTF's schemas (`services/`, `standard.py`)."""
LAB = {("ServiceRoot", "Oem.Clusterctl"), ("ServiceRoot", "Oem.Clusterctl.Simulated")}
"""Ours: marks a simulated BMC (DSP0266 leaves the names below Oem to their owner)."""
_COUNTED = ("ComputerSystem", "Boot.BootOrder@odata.count")
_AUTHORITIES = "DMTF ComputerSystem schema, Boot; newer firmware than the recorded one has it"
NOT_RECORDED = {
    Vendor.SUPERMICRO: {
        _COUNTED: "DSP0266, 'Count property'",
        ("ComputerSystem", "Boot.Certificates"): _AUTHORITIES,
        ("ComputerSystem", "Boot.Certificates.@odata.id"): _AUTHORITIES,
    },
    Vendor.HPE: {_COUNTED: "DSP0266, 'Count property'"},
}


def machine_of(vendor: Vendor) -> Machine:
    return build(1, LAYOUT, "of-no-use-elsewhere", vendor=vendor)


def tree_of(machine: Machine, *, power: bool = True) -> dict[str, Any]:
    """With everything in it that may be there."""
    record = LogRecord("2026-01-01T00:00:00+00:00", "OK", "Something was.", "Event.1.0.Something", ("a", "b"))
    view = View(
        machine=machine,
        power=power,
        running=power,
        boot_target=BootTarget.PXE,
        boot_once=True,
        sel=(record,),
        lifecycle_log=(record,),
        sessions=(SessionView("1", "root", "127.0.0.1"),),
    )
    return dict(PROFILES[machine.bmc.vendor].tree(view))


def looks(vendor: Vendor) -> Iterator[Machine]:
    """A healthy machine, and one with each fault that changes what a BMC reports."""
    whole = machine_of(vendor)
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


@pytest.mark.parametrize("vendor", [Vendor.SUPERMICRO, Vendor.HPE])
def test_every_property_was_recorded_or_cites_its_schema(vendor: Vendor) -> None:
    """Nothing is invented: each property of the machine's resources stands in that vendor's recording, with a type seen
    there, or is named above with its source.
    """
    shape = recorded(vendor.value)
    allowed = LAB | set(NOT_RECORDED[vendor])
    unknown = set()
    compared = 0
    for resource in (resource for machine in looks(vendor) for resource in tree_of(machine).values()):
        schema = schema_of(resource)
        if schema in SERVICES or schema.startswith("Task"):
            continue
        for path, type_ in properties(resource):
            compared += 1
            seen = shape.get(schema, {}).get(path, set())
            if (schema, path) not in allowed and (not seen or (type_ not in seen and seen != {"NoneType"})):
                unknown.add((schema, path, type_, tuple(sorted(seen))))
    assert unknown == set()
    assert compared > 1000


@pytest.mark.parametrize("vendor", list(NOT_RECORDED))
def test_exceptions_are_needed(vendor: Vendor) -> None:
    """No entry of the list of exceptions outlives its reason."""
    shape = recorded(vendor.value)
    ours = {(schema_of(found), path) for found in tree_of(machine_of(vendor)).values() for path, _ in properties(found)}
    needed = {(schema, path) for schema, path in ours if not shape.get(schema, {}).get(path)}
    assert set(NOT_RECORDED[vendor]) <= needed


@pytest.mark.parametrize("vendor", OTHERS)
def test_no_link_leads_nowhere(vendor: Vendor) -> None:
    """A client that walks the tree meets no 404: all links and members are served, each resource at its own path."""
    tree = tree_of(machine_of(vendor))
    dangling = {link for resource in tree.values() for link in links(resource) if link.split("#")[0] not in tree}
    assert dangling == set()
    assert all(resource.get("@odata.id", path) == path for path, resource in tree.items())


@pytest.mark.parametrize("vendor", OTHERS)
def test_counts_agree_with_lists(vendor: Vendor) -> None:
    """`X@odata.count` is the length of `X`, everywhere."""
    found = [right for resource in tree_of(machine_of(vendor)).values() for right in counts(resource)]
    assert all(found)
    assert len(found) > 30


@pytest.mark.parametrize("vendor", OTHERS)
def test_parts_that_are_gone_leave_no_trace(vendor: Vendor) -> None:
    """A missing GPU's serial and a missing HCA's are nowhere in the tree, and were in it before (but where this BMC
    reports no serial of its HCAs).
    """
    whole = machine_of(vendor)
    for fault, part in (("missing-gpu", whole.gpus[-1]), ("missing-hca", whole.hcas[0])):
        broken = inject({whole.name: whole}, fault, whole.name)
        reported = vendor is not Vendor.OPENBMC or fault == "missing-gpu"
        assert (part.serial in json.dumps(tree_of(whole))) is reported
        assert part.serial not in json.dumps(tree_of(broken))
        assert len(tree_of(broken)) < len(tree_of(whole))


@pytest.mark.parametrize("vendor", OTHERS)
def test_power_shows_everywhere(vendor: Vendor) -> None:
    """Off is off at the system and its chassis; fans stand still, and no CPU reports a temperature."""
    tree = tree_of(machine_of(vendor), power=False)
    profile = PROFILES[vendor]
    system = tree[profile.paths.system]
    chassis = tree[system["Links"]["Chassis"][0]["@odata.id"]]
    thermal = tree[chassis["Thermal"]["@odata.id"]]
    assert (system["PowerState"], chassis["PowerState"]) == ("Off", "Off")
    assert {fan["Reading"] for fan in thermal["Fans"]} == {0}
    reading = {sensor["Name"] for sensor in thermal["Temperatures"] if sensor["Status"]["State"] == "Enabled"}
    assert not any("CPU" in name for name in reading)
    assert reading


@pytest.mark.parametrize("vendor", list(Vendor))
def test_what_can_be_written_to_is_there(vendor: Vendor) -> None:
    """Each path that the engine takes writes at is a resource of the tree, or an action that a resource names."""
    paths, tree = PROFILES[vendor].paths, tree_of(machine_of(vendor))
    resources = (paths.sessions, paths.system, paths.boot_patch, paths.accounts, paths.bios, paths.bios_settings)
    assert [path for path in (*resources, *paths.media, paths.tasks) if path and path not in tree] == []
    text = json.dumps(tree)
    actions = (paths.reset, paths.manager_reset, paths.multipart_push, paths.simple_update, *paths.clear_log)
    assert [action for action in actions if action and f'"{action}"' not in text] == []


@pytest.mark.parametrize("vendor", list(Vendor))
def test_modules_add_up(vendor: Vendor) -> None:
    """The system links to its modules, those that are there are as many as its memory needs, each with a serial of its
    own; only an iLO lists empty sockets.
    """
    machine = machine_of(vendor)
    tree = tree_of(machine)
    system = tree[PROFILES[vendor].paths.system]
    modules = [tree[member["@odata.id"]] for member in tree[system["Memory"]["@odata.id"]]["Members"]]
    filled = [module for module in modules if module["Status"]["State"] == "Enabled"]
    assert sum(module["CapacityMiB"] for module in modules) == system["MemorySummary"]["TotalSystemMemoryGiB"] * 1024
    assert {module["SerialNumber"] for module in filled} == {dimm.serial for dimm in machine.dimms}
    assert len(modules) - len(filled) == (16 if vendor is Vendor.HPE else 0)


@pytest.mark.parametrize("vendor", list(Vendor))
def test_a_failed_module_or_fan_shows_in_one_place(vendor: Vendor) -> None:
    """It alone is Critical, the machine with it, memory's summary for a module; a fan that stands still reads 0."""
    machine = machine_of(vendor)
    module = tree_of(inject({machine.name: machine}, "failed-dimm", f"{machine.name}:{machine.dimms[5].slot}"))
    critical = {one["SerialNumber"] for one in module.values() if schema_of(one) == "Memory" and _critical(one)}
    assert critical == {machine.dimms[5].serial}
    fan = tree_of(inject({machine.name: machine}, "failed-fan", f"{machine.name}:{machine.fans[2].slot}"))
    fans = [one for thermal in fan.values() if schema_of(thermal) == "Thermal" for one in thermal["Fans"]]
    assert [one["Name"] for one in fans if _critical(one)] == [machine.fans[2].slot]
    assert [one["Name"] for one in fans if one["Reading"] == 0] == [machine.fans[2].slot]
    for tree, memory in ((module, "Critical"), (fan, "OK")):
        system = tree[PROFILES[vendor].paths.system]
        assert (system["Status"]["Health"], system["MemorySummary"]["Status"]["HealthRollup"]) == ("Critical", memory)


def _critical(resource: dict[str, Any]) -> bool:
    return resource["Status"]["Health"] == "Critical"


def test_identities_are_woven_as_recorded() -> None:
    """HPE's UUID is made of product number and serial, Supermicro's of the BMC's MAC: as in the recordings."""
    hpe = replace(machine_of(Vendor.HPE), serial="MXQ302099S")
    assert tree_of(hpe)["/redfish/v1/Systems/1"]["UUID"] == "34383350-3131-584D-5133-303230393953"
    smc = machine_of(Vendor.SUPERMICRO)
    smc = replace(smc, bmc=replace(smc.bmc, mac="7c:c2:55:50:a8:ff"))
    assert tree_of(smc)["/redfish/v1/Systems/1"]["UUID"] == "00000000-0000-0000-0000-7CC25550A8FF"


@pytest.mark.parametrize("vendor", list(Vendor))
def test_every_event_has_words(vendor: Vendor) -> None:
    """Each vendor's BMC has a text for each event, with its arguments, and no two texts are equal."""
    machine = machine_of(vendor)
    lines = [log_entry(machine, event, 3, "Bay 3") for event in BmcEvent]
    assert len({line.message for line in lines}) == len(BmcEvent)
    assert all("{" not in line.message for line in lines)
    failed = log_entry(machine, BmcEvent.SUPPLY_FAILED, 3)
    assert (failed.severity, "3" in failed.message) == ("Critical", True)

"""Which machine it is, from few resources: what is read, what is made of it, and of whatever else comes back."""

from __future__ import annotations

from typing import Any

import pytest

from clusterctl.fleet.bmc.observation import Identity
from clusterctl.formats.redfish.identity import is_service_root, next_path, read_greeting, read_identity
from clusterctl.formats.redfish.tree import Answer, Unreadable
from tests.edges.redfish.trees import recorded
from tests.edges.sweep.shapes import ROOT, SHAPES, Tree, links, openbmc

ADDRESS = "10.0.0.7"
MAC = "02:00:00:00:00:07"
READS = 5
"""Of eight requests three are the anonymous root, login and logout."""
JUNK: tuple[Any, ...] = (None, 7, 1.5, True, "text", "", [], {}, [None], [{}], {"@odata.id": 5}, {"@odata.id": "/x"})


def walk(tree: Tree, *, address: str = ADDRESS, reads: int = READS) -> tuple[Identity, list[str]]:
    """The identity that is known after so many reads, and what was read for it."""
    answers: dict[str, Answer] = {ROOT: tree[ROOT]}
    while len(answers) <= reads and (path := next_path(answers, address)) is not None:
        answers[path] = _get(tree, path)
    return read_identity(answers, address), list(answers)[1:]


def _get(tree: Tree, asked: str) -> Answer:
    path, expand, _ = asked.partition("?$expand")
    found = tree.get(path)
    if found is None:
        return Unreadable("HTTP 404")
    members = found.get("Members") if isinstance(found, dict) else None
    if not (expand and isinstance(members, list)):
        return found if isinstance(found, dict) else Unreadable("no JSON object")
    return {**found, "Members": [_member(tree, item) for item in members]}


def _member(tree: Tree, item: Any) -> Any:
    path = item.get("@odata.id") if isinstance(item, dict) else None
    return tree.get(path, item) if isinstance(path, str) else item


@pytest.mark.parametrize(
    ("vendor", "address", "serial", "mac"),
    [
        ("dell", "192.168.247.199", "F54P1G3", "b0:7b:25:d6:51:82"),
        ("hpe", "192.168.198.84", "MXQ302099S", "5c:ed:8c:34:c2:94"),
        ("supermicro", "192.168.133.92", "S889914X3710910", "7c:c2:55:50:a8:ff"),
    ],
)
def test_recorded_machines(vendor: str, address: str, serial: str, mac: str) -> None:
    """What real BMCs answered: serial and BMC MAC within the requests that a sweep may spend."""
    identity, read = walk(recorded(vendor), address=address)
    assert (identity.serial, identity.bmc_mac, identity.problems) == (serial, mac, ())
    assert identity.bmc_firmware
    assert len(read) <= READS


@pytest.mark.parametrize("vendor", SHAPES)
def test_any_field_replaced_by_junk(vendor: str) -> None:
    """Never an exception, never endless; a serial is right or missing, and each missing one is among the problems."""
    sound = SHAPES[vendor](ADDRESS, "SER0007", MAC)
    for path, resource in sound.items():
        for name in resource:
            for junk in JUNK:
                identity, read = walk({**sound, path: {**resource, name: junk}}, reads=50)
                assert len(read) < 20
                assert identity.serial in {"SER0007", None} or name in {"SKU", "SerialNumber", "Manufacturer"}
                assert identity.serial or identity.problems


def test_a_missing_resource_is_named() -> None:
    """What the BMC refused is reported, with the resource."""
    tree = SHAPES["HPE"](ADDRESS, "SER0007", MAC)
    del tree[f"{ROOT}/Managers/1"]
    identity, _ = walk(tree)
    assert identity.serial == "SER0007"
    assert identity.problems == (f"{ROOT}/Managers/1: HTTP 404",)


def test_expand_that_is_offered_and_refused() -> None:
    """The interfaces are then read one by one."""
    tree = SHAPES["HPE"](ADDRESS, "SER0007", MAC)
    tree[ROOT]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True}}
    answers: dict[str, Answer] = {ROOT: tree[ROOT]}
    while (path := next_path(answers, ADDRESS)) is not None:
        answers[path] = Unreadable("HTTP 400") if "?" in path else tree[path]
    assert read_identity(answers, ADDRESS).bmc_mac == MAC


def test_the_port_that_answers_is_chosen() -> None:
    """Of several interfaces the one with the address that was called; without one, none that leads into the machine."""
    tree = SHAPES["Supermicro"](ADDRESS, "SER0007", MAC)
    assert walk(tree)[0].bmc_mac == MAC
    assert walk(tree, address="10.9.9.9")[0].bmc_mac == MAC


def test_the_host_is_no_board_inside_it() -> None:
    """An HGX board is a system of its own, listed first: it is not even asked."""
    identity, read = walk(openbmc(ADDRESS, "SER0007", MAC))
    assert identity.serial == "SER0007"
    assert not [path for path in read if "HGX" in path]


def test_a_serial_from_the_chassis() -> None:
    """Where the system has no serial (GB200) the assembly of its model in its chassis gives it."""
    tree = openbmc(ADDRESS, "", MAC)
    tree[f"{ROOT}/Systems/DGX"]["Links"]["Chassis"] = links(f"{ROOT}/Chassis/C")
    tree[f"{ROOT}/Chassis/C"] = {"Assembly": {"@odata.id": f"{ROOT}/Chassis/C/Assembly"}}
    tree[f"{ROOT}/Chassis/C/Assembly"] = {"Assemblies": [{"Model": "DGXH100", "SerialNumber": "ASM0007"}]}
    assert walk(tree)[0].serial == "ASM0007"


@pytest.mark.parametrize("serial", ["To be filled by O.E.M.", "\x1b[31mred", "=1+1", "a" * 65, "x,y"])
def test_what_is_no_serial(serial: str) -> None:
    """Placeholders, and text that would harm a terminal or spreadsheet, count as missing."""
    identity, _ = walk(SHAPES["HPE"](ADDRESS, serial, MAC))
    assert identity.serial is None
    assert identity.problems


def test_words_are_printable() -> None:
    """No control characters from an unknown machine reach a terminal."""
    tree = SHAPES["HPE"](ADDRESS, "SER0007", MAC)
    tree[f"{ROOT}/Systems/1"]["Model"] = "\x1b]0;owned\x07Model\n"
    assert walk(tree)[0].model == r"\x1b]0;owned\x07Model"


@pytest.mark.parametrize(
    ("root", "vendor"),
    [
        ({"Vendor": "Dell Inc."}, "Dell"),
        ({"Vendor": "Hewlett Packard", "Oem": {"Hpe": {}}}, "HPE"),
        ({"Oem": {"Supermicro": {}}}, "Supermicro"),
        ({"Vendor": "Contoso"}, "Contoso"),
        ({"Vendor": 7, "Oem": []}, ""),
        ({}, ""),
    ],
)
def test_vendors(root: dict[str, Any], vendor: str) -> None:
    """By the root's own word, else by the vendor's part of it; who is unknown keeps the name it gives."""
    assert read_greeting(root).vendor == vendor


@pytest.mark.parametrize(
    ("uuid", "reported"),
    [
        ("00000000-0000-0000-0000-000000000000", ""),
        ("12345678-0000-4000-8000-00000000000A", "12345678-0000-4000-8000-00000000000a"),
    ],
)
def test_uuids_that_mean_nothing(uuid: str, reported: str) -> None:
    """The defaults of unconfigured boards are no identity."""
    assert read_greeting({"UUID": uuid}).uuid == reported


@pytest.mark.parametrize(
    ("root", "is_one"),
    [({"RedfishVersion": "1.0"}, True), ({"@odata.type": "#ServiceRoot.v1.ServiceRoot"}, True), ({"a": 1}, False)],
)
def test_service_roots(root: dict[str, Any], is_one: bool) -> None:
    """By its type or version; other JSON is something else."""
    assert is_service_root(root) is is_one

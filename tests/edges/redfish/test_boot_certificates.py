"""The authority for a boot over HTTPS: enrolled where the BMC offers it, seen there, and refused clearly elsewhere.

Facts. Dell: iDRAC9's recorded ComputerSystem links `Boot.Certificates`, allows `UefiHttp` and shows no `HttpBootUri`
(recordings of 1.12.0 and newer in public tools); Dell's own script BiosHttpCertSupportREDFISH.py POSTs CertificateType
and CertificateString to that collection and expects 201. Supermicro: `/redfish/v1/Systems/1/Boot/Certificates`, the same
body. HPE: no such collection; `HpeTlsConfig` below the BIOS instead (HPE's iLO documentation, "HTTPS Boot TLS
Configuration").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot_certificates import fingerprint, read_boot_authorities
from clusterctl.ports import BmcAddress, Deadline
from clusterctl_lab.healthy import build
from clusterctl_lab.vendor import Vendor
from tests.edges.pxe.tls_kit import BootAuthority
from tests.edges.redfish.replay import Bmc, Handler, merge
from tests.edges.redfish.test_against_lab import LAYOUT, PASSWORD, lab
from tests.edges.redfish.trees import ask, recorded
from tests.faulty import status

Served = tuple[Bmc, BmcAddress]
SYSTEM = "/redfish/v1/Systems/1"
COLLECTION = f"{SYSTEM}/Boot/Certificates"
SERIAL = Serial("EX00042")
PEM = BootAuthority().pem


class Enrolling:
    """A BMC's collection. `shows`: the fields of a new member; none: it answers 201 and keeps nothing."""

    def __init__(self, *, shows: str = "CertificateString") -> None:
        self.shows = shows
        self.posted: list[dict[str, Any]] = []

    def __call__(self, handler: Handler) -> bool:
        if handler.command != "POST" or handler.path != COLLECTION:
            return False
        body = handler.body
        self.posted.append(body)
        if self.shows:
            tree = handler.server.tree
            path = f"{COLLECTION}/{len(tree[COLLECTION]['Members']) + 1}"
            hexed = fingerprint(body["CertificateString"]).upper()
            colons = ":".join(hexed[at : at + 2] for at in range(0, 64, 2))
            shown = {"CertificateString": body["CertificateString"], "Fingerprint": colons}[self.shows]
            tree[path] = {"@odata.id": path, "CertificateType": "PEM", self.shows: shown}
            tree[COLLECTION]["Members"].append({"@odata.id": path})
            tree[COLLECTION]["Members@odata.count"] += 1
        handler.reply(201, {})
        return True


@pytest.fixture
def server(served: Served) -> Bmc:
    merge(served[0].tree[SYSTEM], {"Boot": {"Certificates": {"@odata.id": COLLECTION}}})
    served[0].tree[COLLECTION] = {"@odata.id": COLLECTION, "Members": [], "Members@odata.count": 0}
    return served[0]


def enroll(bmcs: RedfishBmcs, served: Served, pem: str = PEM, serial: Serial = SERIAL) -> list[str]:
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        observed = bmc.enroll_boot_authority(pem, serial, Deadline.after(60))
    return list(json.loads(observed.evidence[0].content)["steps"])


@pytest.mark.parametrize("shows", ["CertificateString", "Fingerprint"])
def test_it_is_enrolled_once(bmcs: RedfishBmcs, served: Served, server: Bmc, shows: str) -> None:
    """One POST as Dell and Supermicro take it, read back by its content or its fingerprint; the second time nothing."""
    server.manner = bmc = Enrolling(shows=shows)
    steps = enroll(bmcs, served)
    assert bmc.posted == [{"CertificateString": PEM, "CertificateType": "PEM"}]
    assert steps[0] == "boot authorities none"
    assert steps[-1] == f"boot authorities {fingerprint(PEM)[:16]}"
    enroll(bmcs, served)
    assert len(bmc.posted) == 1


def test_other_authorities_stay(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Another site authority is no proof of this one, and is not removed."""
    server.manner = bmc = Enrolling()
    enroll(bmcs, served, BootAuthority(1).pem)
    enroll(bmcs, served)
    assert [body["CertificateString"] for body in bmc.posted] == [BootAuthority(1).pem, PEM]
    assert len(server.tree[COLLECTION]["Members"]) == 2


def test_accepted_and_not_there(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """201 is no proof: an error that names what it shows, and the way by hand."""
    server.manner = Enrolling(shows="")
    with pytest.raises(EdgeError, match="then shows: boot authorities none") as caught:
        enroll(bmcs, served)
    assert "enroll: by-hand" in caught.value.remedy


def test_a_bmc_that_refuses(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Its own words."""
    server.faults["POST", COLLECTION] = [status(400)] * 9
    with pytest.raises(EdgeError, match="refuses enroll the boot authority"):
        enroll(bmcs, served)


def test_a_bmc_without_the_collection(bmcs: RedfishBmcs, served: Served) -> None:
    """As at HPE: refused with both remedies, and nothing is sent."""
    with pytest.raises(EdgeError, match=r"enrolls no authority .*Boot.Certificates") as caught:
        enroll(bmcs, served)
    assert "update its firmware" in caught.value.remedy
    assert "enroll: by-hand" in caught.value.remedy
    assert [method for method, _ in served[0].asked if method in ("POST", "PATCH")] == ["POST"]  # its login


def test_another_machine_is_not_touched(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The serial is proven in the same session before anything is sent."""
    server.manner = bmc = Enrolling()
    with pytest.raises(EdgeError, match="belongs to machine EX00042, not to EX99999"):
        enroll(bmcs, served, serial=Serial("EX99999"))
    assert bmc.posted == []


def test_the_labs_bmc_is_ready_for_a_boot_over_https(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The emulated Supermicro: authority and URI are taken and read back; text that is no certificate is refused."""
    machine = build(1, LAYOUT, PASSWORD, vendor=Vendor.SUPERMICRO)
    wish = BootOnce(BootSource.UEFI_HTTP, "https://192.0.2.1:8080/efi/x.efi")
    with lab([machine], tmp_path) as found, bmcs.open(found[machine.name], Deadline.after(60)) as bmc:
        for _ in range(2):
            bmc.enroll_boot_authority(PEM, Serial(machine.serial), Deadline.after(60))
        bmc.boot_once(wish, Serial(machine.serial), Deadline.after(60))
        state = found.world.states[machine.name]
        assert (state.boot_authorities, state.boot_uri) == ((PEM,), wish.uri)
        broken = PEM.replace("A", "B")
        with pytest.raises(EdgeError, match="refuses enroll the boot authority"):
            bmc.enroll_boot_authority(broken, Serial(machine.serial), Deadline.after(60))
        assert state.boot_authorities == (PEM,)


def test_a_bmc_that_ignores_the_uri(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """As recorded at Dell, whose `Boot` has no HttpBootUri: without it firmware would boot what DHCP names, over plain
    HTTP too. It is refused, though the target itself was taken.
    """
    boot = {
        "BootSourceOverrideEnabled": "Disabled",
        "BootSourceOverrideTarget": "None",
        "BootSourceOverrideMode": "UEFI",
        "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd", "UefiHttp"],
    }
    merge(server.tree[SYSTEM], {"Boot": boot})

    def ignore_uri(handler: Handler) -> None:
        path, body = handler.server.patched[-1]
        assert body["Boot"]["HttpBootUri"] == "https://192.0.2.1:8080/efi/x.efi"  # never without it
        merge(handler.server.tree[path], {"Boot": {k: v for k, v in body["Boot"].items() if k != "HttpBootUri"}})
        handler.reply(200, {})

    server.faults["PATCH", SYSTEM] = [ignore_uri] * 9
    with (
        bmcs.open(served[1], Deadline.after(60)) as bmc,
        pytest.raises(EdgeError, match="accepted boot once from uefi"),
    ):
        bmc.boot_once(BootOnce(BootSource.UEFI_HTTP, "https://192.0.2.1:8080/efi/x.efi"), SERIAL, Deadline.after(60))


def test_recorded_bmcs() -> None:
    """A Dell links the collection, empty; an HPE and a Supermicro of 2022 have none, though all allow UefiHttp."""
    found = ask(read_boot_authorities, recorded("dell"))
    assert found.collection == "/redfish/v1/Systems/System.Embedded.1/Boot/Certificates"
    assert (found.fingerprints, found.hidden) == (frozenset(), 0)
    for vendor in ("hpe", "supermicro"):
        with pytest.raises(EdgeError, match="enrolls no authority"):
            ask(read_boot_authorities, recorded(vendor))

"""The screen through the BMC: a picture or console text where the BMC offers it, else nothing, and never an error."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.screen import MAX_CONSOLE, MAX_PICTURE, Screen, kind_of, picture
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Evidence, Origin
from clusterctl.ports import BmcAddress, Deadline
from clusterctl_lab.healthy import build
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import PASSWORD, Handler, serve
from tests.edges.redfish.test_against_lab import LAYOUT, lab
from tests.edges.redfish.test_against_lab import PASSWORD as LAB_PASSWORD
from tests.edges.redfish.trees import Tree, small

PNG = b"\x89PNG\r\n\x1a\n and the rest"
SERVICE = "/redfish/v1/Managers/1/Oem/Dell/DellLCService"
TARGET = f"{SERVICE}/Actions/DellLCService.ExportServerScreenShot"
LOGS = "/redfish/v1/Systems/1/LogServices"


def dell() -> Tree:
    tree = small()
    tree["/redfish/v1"]["Vendor"] = "Dell"
    tree[SERVICE] = {
        "@odata.id": SERVICE,
        "Actions": {"#DellLCService.ExportServerScreenShot": {"target": TARGET}},
    }
    return tree


def openbmc(*lines: str) -> Tree:
    """As bmcweb has it: a log service of the System, whose entries are the console's lines."""
    tree = small()
    service = f"{LOGS}/HostLogger"
    entries = [{"@odata.id": f"{service}/Entries/{n}", "Id": str(n), "Message": line} for n, line in enumerate(lines)]
    tree[LOGS] = {"@odata.id": LOGS, "Members": [{"@odata.id": service}], "Members@odata.count": 1}
    tree[service] = {"@odata.id": service, "Id": "HostLogger", "Entries": {"@odata.id": f"{service}/Entries"}}
    tree[f"{service}/Entries"] = {
        "@odata.id": f"{service}/Entries",
        "Members": entries,
        "Members@odata.count": len(entries),
    }
    return tree


def answering(status: int, body: Any) -> Callable[[Handler], bool]:
    """A manner that answers the action, and leaves all else to the tree."""

    def manner(handler: Handler) -> bool:
        if handler.path != TARGET:
            return False
        handler.reply(status, body)
        return True

    return manner


def shown(bmcs: RedfishBmcs, address: BmcAddress) -> tuple[Screen | None, tuple[Evidence, ...]]:
    with bmcs.open(address, Deadline.after(60)) as bmc:
        observed = bmc.screen(Deadline.after(60))
    return observed.value, observed.evidence


def test_dells_picture_is_evidence(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Its kind by its first bytes; the evidence is the picture itself."""
    with serve(dell(), tmp_path) as (server, address):
        server.manner = answering(200, {"ServerScreenShotFile": base64.b64encode(PNG).decode()})
        found, (evidence,) = shown(bmcs, address)
    assert found == Screen("PNG", PNG)
    assert (evidence.source, evidence.content) == ("redfish screen (PNG)", PNG)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "Base.1.0.GeneralError", "message": "the server is off"}}),
        (404, None),
        (200, {"ServerScreenShotFile": ""}),
        (200, {"ServerScreenShotFile": "no Base64 !"}),
        (200, {"ServerScreenShotFile": "été"}),
        (200, {"ServerScreenShotFile": 7}),
        (200, {"ServerScreenShotFile": base64.b64encode(b"<html><script>").decode()}),
        (200, {"ServerScreenShotFile": base64.b64encode(PNG + bytes(MAX_PICTURE)).decode()}),
        (200, ["a list"]),
    ],
)
def test_an_answer_that_is_no_picture_is_nothing(status: int, body: Any, bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Whatever a BMC answers in its place: no picture, no evidence, no error."""
    with serve(dell(), tmp_path) as (server, address):
        server.manner = answering(status, body)
        assert shown(bmcs, address) == (None, ())


def test_a_bmc_without_the_action_is_asked_for_nothing_else(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Neither a Dell of older firmware nor another vendor, who has no such service."""
    tree = dell()
    tree[SERVICE] = {"@odata.id": SERVICE}
    for one in (tree, small()):
        with serve(one, tmp_path) as (server, address):
            server.manner = answering(500, None)
            assert shown(bmcs, address) == (None, ())


def test_a_run_that_only_reads_takes_no_picture(tmp_path: Path) -> None:
    """The action is a POST: it is not sent."""
    bmcs = RedfishBmcs(FixedClock(), QUICK, read_only=True)
    with serve(dell(), tmp_path) as (server, address):
        server.manner = answering(200, {"ServerScreenShotFile": base64.b64encode(PNG).decode()})
        assert shown(bmcs, address) == (None, ())


def test_the_console_of_openbmc_is_text(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The lines in their order; a password that one of them has is redacted."""
    lines = ("GRUB loading.", f"login with {PASSWORD}", "error: no such device")
    with serve(openbmc(*lines), tmp_path) as (_, address):
        found, (evidence,) = shown(bmcs, address)
    assert found is not None
    assert found.kind == "text"
    assert evidence.content.decode().splitlines()[::2] == ["GRUB loading.", "error: no such device"]
    assert PASSWORD not in evidence.content.decode()


def test_a_long_console_is_cut_at_its_beginning(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """What came last is what shows how the boot failed."""
    with serve(openbmc(*(f"line {n} {'x' * 900}" for n in range(200)), "the end"), tmp_path) as (_, address):
        found, _ = shown(bmcs, address)
    assert found is not None
    assert len(found.content) == MAX_CONSOLE
    assert found.content.endswith(b"the end")


def test_an_empty_console_is_nothing(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    with serve(openbmc(), tmp_path) as (_, address):
        assert shown(bmcs, address) == (None, ())


def test_a_cancelled_run_does_not_wait_for_it(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The cancellation is reported."""
    with serve(dell(), tmp_path) as (_, address), bmcs.open(address, Deadline.after(60)) as bmc:
        deadline = Deadline.after(60)
        deadline.cancelled.set()
        with pytest.raises(CancelledError):
            bmc.screen(deadline)


@pytest.mark.parametrize("vendor", Vendor)
def test_the_labs_bmcs(vendor: Vendor, bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The lab's Dell has a picture while its machine is on; the others offer none, and no error."""
    machine = build(1, LAYOUT, LAB_PASSWORD, vendor=vendor)
    with lab([machine], tmp_path) as site:
        off = shown(bmcs, site[machine.name])
        site.world.states[machine.name].power = True
        found, evidence = shown(bmcs, site[machine.name])
    assert off == (None, ())
    assert (found.kind if found else "") == ("PNG" if vendor is Vendor.DELL else "")
    assert {item.origin for item in evidence} <= {Origin.SIMULATED}


def test_kinds_by_their_first_bytes() -> None:
    """Nothing else is a picture, and none that is too large."""
    assert [kind_of(begin + b"x") for begin in (PNG, b"\xff\xd8\xff\xe0", b"BM")] == ["PNG", "JPEG", "BMP"]
    assert kind_of(b"GIF89a") == kind_of(b"") == ""
    assert picture(PNG + bytes(MAX_PICTURE)) is None

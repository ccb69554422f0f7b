"""Boot settings: asked for as this BMC wants it, and believed only when they are seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.replay import SESSIONS, Bmc, Handler, error, merge
from tests.faulty import Fault, drop, status

Served = tuple[Bmc, BmcAddress]
SYSTEM = "/redfish/v1/Systems/1"
SETTINGS = f"{SYSTEM}/SD"
ATTRIBUTES = "/redfish/v1/Managers/1/Attributes"
SERIAL = Serial("EX00042")
PXE = BootOnce(BootSource.PXE)
USUAL = {
    "BootSourceOverrideTarget": "Pxe",
    "BootSourceOverrideEnabled": "Once",
    "BootSourceOverrideMode": "UEFI",
}
IDLE = {
    "BootSourceOverrideEnabled": "Disabled",
    "BootSourceOverrideTarget": "None",
    "BootSourceOverrideMode": "UEFI",
    "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd", "UsbCd", "UefiHttp"],
    "BootOrder": ["Boot0001"],
}


@pytest.fixture
def server(served: Served) -> Bmc:
    served[0].tree[SYSTEM]["Boot"] = dict(IDLE)
    return served[0]


def once(bmcs: RedfishBmcs, served: Served, wish: BootOnce = PXE, serial: Serial = SERIAL) -> Any:
    """Choose the next boot; what was asked and seen, from the evidence."""
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        observed = bmc.boot_once(wish, serial, Deadline.after(60))
    return json.loads(observed.evidence[0].content)["steps"]


def if_matches(server: Bmc) -> list[str | None]:
    """The If-Match header of each PATCH, in order."""
    pairs = zip(server.asked, server.headers, strict=True)
    return [headers.get("If-Match") for (method, _), headers in pairs if method == "PATCH"]


def wanting(*accepted: str | None, code: int = 412) -> Fault:
    """A BMC that takes a PATCH with one of these If-Match headers only."""

    def judge(handler: Handler) -> None:
        if handler.headers.get("If-Match") not in accepted:
            handler.reply(code, error("Base.1.0.PreconditionFailed", "The ETag does not match."))
            return
        path, body = handler.server.patched[-1]
        merge(handler.server.tree[path], body)
        handler.reply(200, {})

    return judge


def test_pxe_once_is_seen(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """One PATCH with target, once and UEFI mode, then read back; a second call changes nothing."""
    steps = once(bmcs, served)
    assert server.patched == [(SYSTEM, {"Boot": USUAL})]
    assert steps[-1] == "boot override target Pxe, enabled Once, mode UEFI"
    once(bmcs, served)
    assert len(server.patched) == 1


@pytest.mark.parametrize(
    ("wish", "target", "uri"),
    [
        (BootOnce(BootSource.DISK), "Hdd", None),
        (BootOnce(BootSource.CD), "UsbCd", None),
        (BootOnce(BootSource.UEFI_HTTP), "UefiHttp", None),
        (BootOnce(BootSource.UEFI_HTTP, "http://192.0.2.1/x.efi"), "UefiHttp", "http://192.0.2.1/x.efi"),
    ],
)
def test_each_source(
    bmcs: RedfishBmcs, served: Served, server: Bmc, wish: BootOnce, target: str, uri: str | None
) -> None:
    """Each source by the name that this BMC gives it, and the image by its URI."""
    once(bmcs, served, wish)
    boot = server.tree[SYSTEM]["Boot"]
    assert (boot["BootSourceOverrideTarget"], boot.get("HttpBootUri")) == (target, uri)


def test_a_source_that_the_bmc_does_not_have(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The error names what it has; nothing is sent."""
    server.tree[SYSTEM]["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] = ["None", "Hdd"]
    with pytest.raises(EdgeError, match="boots from Hdd, None, not from pxe"):
        once(bmcs, served)
    assert server.patched == []


def test_another_machine_is_not_touched(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The serial is proven in the same session before anything is sent."""
    with pytest.raises(EdgeError, match="belongs to machine EX00042, not to EX99999"):
        once(bmcs, served, serial=Serial("EX99999"))
    assert server.patched == []


def test_accepted_and_reverted(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """200 and nothing changed: an error that names what was asked and what was found."""
    server.faults["PATCH", SYSTEM] = [status(200)] * 9
    with pytest.raises(EdgeError) as caught:
        once(bmcs, served)
    assert "accepted boot once from pxe but then shows: boot override target None, enabled Disabled" in str(
        caught.value
    )


def test_accepted_and_reverted_a_moment_later(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """One good look is not enough: what is taken back at once was not done."""

    def flicker(handler: Handler) -> None:
        shown = {**server.tree[SYSTEM], "Boot": {**IDLE, **USUAL}}
        server.faults["GET", SYSTEM] = [status(200, shown)]
        handler.reply(200, {})

    server.faults["PATCH", SYSTEM] = [flicker] * 9
    with pytest.raises(EdgeError, match="but then shows: boot override target None"):
        once(bmcs, served)


def test_a_fall_back_to_legacy_is_seen(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Right target, wrong mode: not what was asked for."""

    def legacy(handler: Handler) -> None:
        merge(server.tree[SYSTEM], {"Boot": {**USUAL, "BootSourceOverrideMode": "Legacy"}})
        handler.reply(200, {})

    server.faults["PATCH", SYSTEM] = [legacy] * 9
    with pytest.raises(EdgeError, match="mode Legacy"):
        once(bmcs, served)


def test_a_mode_that_cannot_be_written(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """HPE may refuse the mode: the same is asked without it."""
    refused = error("iLO.2.8.PropertyNotWritableOrUnknown", "BootSourceOverrideMode")
    server.faults["PATCH", SYSTEM] = [status(400, refused)]
    once(bmcs, served)
    assert "BootSourceOverrideMode" not in server.patched[-1][1]["Boot"]


def test_the_whole_boot_object(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """AMI wants all that Boot holds: no annotations, no links, what was there before."""
    server.tree["/redfish/v1"]["Vendor"] = "AMI"
    once(bmcs, served)
    assert server.patched == [(SYSTEM, {"Boot": {"BootOrder": ["Boot0001"], **USUAL}})]


def test_the_settings_object(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Where the System advertises one that takes a Boot, that is what changes and what is read back."""
    server.tree[SYSTEM]["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": SETTINGS}}
    server.tree[SETTINGS] = {"@odata.etag": '"s1"', "Boot": {"BootSourceOverrideEnabled": "Disabled"}}
    once(bmcs, served)
    assert [path for path, _ in server.patched] == [SETTINGS]
    assert if_matches(server) == ['"s1"']
    assert server.tree[SYSTEM]["Boot"] == IDLE


def test_a_settings_object_that_refuses(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Then the System is asked."""
    server.tree[SYSTEM]["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": SETTINGS}}
    server.tree[SETTINGS] = {"Boot": {"BootSourceOverrideEnabled": "Disabled"}}
    server.faults["PATCH", SETTINGS] = [status(403)]
    once(bmcs, served)
    assert [path for path, _ in server.patched] == [SETTINGS, SYSTEM]


@pytest.mark.parametrize(
    ("etag", "accepted", "code", "sent"),
    [
        ("", None, 412, [None]),
        ('"a"', '"a"', 412, ['"a"']),
        ('W/"a"', 'W/"a"', 412, ['W/"a"']),
        ('W/"a"', '"a"', 412, ['W/"a"', '"a"']),
        ('W/"a"', None, 412, ['W/"a"', '"a"', None]),
        ("", "*", 428, [None, "*"]),
        ("", "*", 412, [None, "*"]),
        ('"a"', "*", 428, ['"a"', None, "*"]),
    ],
)
def test_the_ladder_of_etags(  # noqa: PLR0917 — one row of the table of what BMCs want
    bmcs: RedfishBmcs, served: Served, server: Bmc, etag: str, accepted: str | None, code: int, sent: list[str | None]
) -> None:
    """As given, as a strong one, as any where it is demanded, as none; never more protection lost than needed."""
    if etag:
        server.tree[SYSTEM]["@odata.etag"] = etag
    server.faults["PATCH", SYSTEM] = [wanting(accepted, code=code)] * 9
    once(bmcs, served)
    assert if_matches(server) == sent


def test_an_etag_that_fits_nowhere(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """A BMC that answers 412 to everything is given up on after each way was tried once."""
    server.tree[SYSTEM]["@odata.etag"] = 'W/"a"'
    server.faults["PATCH", SYSTEM] = [wanting("never")] * 40
    with pytest.raises(EdgeError, match="HTTP 412"):
        once(bmcs, served)
    assert if_matches(server) == ['W/"a"', '"a"', None]


def test_a_new_etag_is_taken_up(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Another client changed the System meanwhile: its new ETag is sent, from the top of the ladder."""
    server.tree[SYSTEM]["@odata.etag"] = '"old"'

    def changed(handler: Handler) -> None:
        server.tree[SYSTEM]["@odata.etag"] = '"new"'
        handler.reply(412, {})

    server.faults["PATCH", SYSTEM] = [changed, wanting('"new"')]
    once(bmcs, served)
    assert if_matches(server) == ['"old"', '"new"']


def test_an_etag_in_the_header_only(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """It counts as well."""
    answer = status(200, server.tree[SYSTEM], ETag='"h"')
    server.faults["GET", SYSTEM] = [answer] * 3
    server.faults["PATCH", SYSTEM] = [wanting('"h"')]
    once(bmcs, served)
    assert if_matches(server) == ['"h"']


@pytest.mark.parametrize(
    ("vendor", "refusal"),
    [
        ("HPE", status(400, error("iLO.2.15.UnableToModifyDuringSystemPOST", "in POST"))),
        ("Example", status(503, Retry_After="0")),
        ("Example", status(409, error("Base.1.8.ResourceInUse", "in transition"))),
        ("Example", status(401)),
        ("Example", status(406)),
        ("Example", status(500)),
    ],
)
def test_refused_for_now(bmcs: RedfishBmcs, served: Served, server: Bmc, vendor: str, refusal: Fault) -> None:
    """A machine in POST, a busy BMC, a session that ended, a BMC that trips: asked again, and done."""
    server.tree["/redfish/v1"]["Vendor"] = vendor
    server.faults["PATCH", SYSTEM] = [refusal, refusal]
    once(bmcs, served)
    assert len(server.patched) == 3
    assert server.open_sessions == 0


def test_never_taken_while_in_post(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The wait ends, in the BMC's words."""
    server.tree["/redfish/v1"]["Vendor"] = "HPE"
    busy = status(400, error("iLO.2.15.UnableToModifyDuringSystemPOST", "in POST"))
    server.faults["PATCH", SYSTEM] = [busy] * 40
    with pytest.raises(EdgeError, match="UnableToModifyDuringSystemPOST"):
        once(bmcs, served)
    assert len(server.patched) == 6


def test_lockdown_is_reported_with_what_to_do(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """An iDRAC in System Lockdown Mode is not asked again and again; the remedy names the switch."""
    server.tree["/redfish/v1"]["Vendor"] = "Dell"
    server.tree[SYSTEM]["SKU"] = SERIAL
    locked = error("IDRAC.2.8.RAC0000", "The system is in lockdown mode.")
    server.faults["PATCH", SYSTEM] = [status(403, locked)]
    server.faults["PATCH", ATTRIBUTES] = [status(403, locked)]
    with pytest.raises(EdgeError) as caught:
        once(bmcs, served)
    assert "System Lockdown Mode" in caught.value.remedy


def test_through_the_attributes_of_an_idrac(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Where its System refuses, the manager's attributes choose the device, and are read back."""
    server.tree["/redfish/v1"]["Vendor"] = "Dell"
    server.tree[SYSTEM]["SKU"] = SERIAL
    server.tree[SYSTEM].update(Manufacturer="Dell Inc.")
    server.tree[ATTRIBUTES] = {"Attributes": {"ServerBoot.1.BootOnce": "Enabled", "Other.1.X": "1"}}
    server.faults["PATCH", SYSTEM] = [status(400)] * 3
    once(bmcs, served)
    assert server.tree[ATTRIBUTES]["Attributes"]["ServerBoot.1.FirstBootDevice"] == "PXE"


def test_the_answer_is_lost_and_it_is_done(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The machine is looked at first; what is there is not asked for again."""

    def lost(handler: Handler) -> None:
        merge(server.tree[SYSTEM], server.patched[-1][1])
        drop(handler)

    server.faults["PATCH", SYSTEM] = [lost]
    once(bmcs, served)
    assert len(server.patched) == 1


def test_the_answer_is_lost_and_it_is_not_done(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Asked for once more; lost again, the result is unknown."""
    server.faults["PATCH", SYSTEM] = [drop]
    once(bmcs, served)
    assert len(server.patched) == 2
    server.tree[SYSTEM]["Boot"] = dict(IDLE)
    server.faults["PATCH", SYSTEM] = [drop] * 9
    with pytest.raises(OutcomeUnknownError):
        once(bmcs, served)
    assert len(server.patched) == 4


def test_a_renewed_session_proves_the_machine_again(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The session ends, and behind the address stands another machine: it is not touched."""

    def swapped(handler: Handler) -> None:
        server.tree[SYSTEM]["SerialNumber"] = "EX77777"
        server.faults["GET", "/redfish/v1/Systems"] = [status(401)] * 2
        handler.reply(401, {})

    server.faults["PATCH", SYSTEM] = [swapped, swapped]
    with pytest.raises(EdgeError, match="belongs to machine EX77777"):
        once(bmcs, served)
    assert len(server.patched) == 2
    assert server.asked.count(("POST", SESSIONS)) == 2


def test_a_fence_stops_the_second_request(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """The right to act is looked at before each request, a repeated one too."""

    class GoneError(EdgeError):
        """The claim."""

    open_ = [True]

    def fence() -> None:
        if not open_[0]:
            raise GoneError("another run has it")

    def closing(handler: Handler) -> None:
        open_[0] = False
        handler.reply(503, {})

    server.faults["PATCH", SYSTEM] = [closing]
    with bmcs.open(served[1], Deadline.after(60)) as bmc, pytest.raises(GoneError):
        bmc.boot_once(PXE, SERIAL, Deadline.after(60).fenced(fence))
    assert len(server.patched) == 1


@pytest.mark.parametrize(
    "uri",
    ["http://user:secret@192.0.2.1/x", "ftp://192.0.2.1/x", "x", "http://", "http://192.0.2.1/\nx", "http://[x/"],
)
def test_a_uri_that_is_none(uri: str) -> None:
    """Refused before anything is asked; one with a login because BMCs show it."""
    with pytest.raises(UsageError):
        BootOnce(BootSource.UEFI_HTTP, uri)


def test_a_uri_for_a_disk() -> None:
    """It has no content, so it is a mistake."""
    with pytest.raises(UsageError):
        BootOnce(BootSource.DISK, "http://192.0.2.1/x")

"""What BMCs report of BIOS attributes, registries, firmware and tasks, as recorded and as they may."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.redfish.upload import multipart
from clusterctl.fleet.errors import CancelledError, EdgeError, OutcomeUnknownError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import FirmwareWish, Image
from clusterctl.fleet.settings.updates import TaskState
from clusterctl.formats.redfish.bios import read_bios, read_bios_thoroughly
from clusterctl.formats.redfish.tree import Unreadable
from clusterctl.formats.redfish.updates import accepted_task, read_updates, task_of
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import Bmc, Handler
from tests.edges.redfish.trees import Tree, ask, recorded, small
from tests.faulty import drop, status

SYSTEM = "/redfish/v1/Systems/1"
SERVICE = "/redfish/v1/UpdateService"
TASKS = "/redfish/v1/TaskService/Tasks"
SERIAL = Serial("EX00042")
Change = Callable[[Tree], None]


def tree() -> Tree:
    """The small machine with BIOS settings, a registry, an update service and a task service."""
    found = small()
    found[SYSTEM]["Bios"] = {"@odata.id": f"{SYSTEM}/Bios"}
    found[f"{SYSTEM}/Bios"] = {
        "AttributeRegistry": "R.v1_0_3",
        "Attributes": {"Turbo": "Enabled", "Cores": 64, "Quiet": True, "Nothing": None},
        "@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/Bios/Settings/"}},
    }
    found[f"{SYSTEM}/Bios/Settings"] = {"Attributes": {"Turbo": "Disabled"}}
    root = found["/redfish/v1"]
    root["Registries"] = {"@odata.id": "/redfish/v1/Registries"}
    members = [{"@odata.id": f"/redfish/v1/Registries/{name}"} for name in ("Base.1.12", "R.v1_0")]
    found["/redfish/v1/Registries"] = {"Members": members, "Members@odata.count": 2}
    found["/redfish/v1/Registries/R.v1_0"] = {
        "Id": "R.v1_0",
        "Name": "R",
        "Location": [{"Language": "de", "Uri": "/elsewhere"}, {"Language": "en-US", "Uri": "/redfish/v1/R.json"}],
    }
    entries = [{"AttributeName": "Turbo", "ReadOnly": True}, {"AttributeName": "Cores", "ReadOnly": False}]
    found["/redfish/v1/R.json"] = {"RegistryEntries": {"Attributes": entries}}
    root["Tasks"] = {"@odata.id": "/redfish/v1/TaskService"}
    found["/redfish/v1/TaskService"] = {"Tasks": {"@odata.id": TASKS}}
    found[TASKS] = {"Members": [], "Members@odata.count": 0}
    root["UpdateService"] = {"@odata.id": SERVICE}
    found.setdefault(f"{SERVICE}/FirmwareInventory", {"Members": [], "Members@odata.count": 0})
    found[SERVICE] = {
        "FirmwareInventory": {"@odata.id": f"{SERVICE}/FirmwareInventory"},
        "HttpPushUri": f"{SERVICE}/update",
    }
    return found


def add_task(found: Tree, number: str, **body: Any) -> None:
    path = f"{TASKS}/{number}"
    found[path] = {"@odata.id": path, "@odata.type": "#Task.v1_4_0.Task", "Id": number, "Name": "Task", **body}
    members = [*found[TASKS]["Members"], {"@odata.id": path}]
    found[TASKS] = {"Members": members, "Members@odata.count": len(members)}


@pytest.mark.parametrize(
    ("vendor", "registry", "attribute", "many"),
    [
        ("dell", "BiosAttributeRegistry.v1_0_3", ("AcPwrRcvryUserDelay", 120), 400),
        ("supermicro", "BiosAttributeRegistry.v1_0_0", ("Above4GDecoding_0041", "Enabled"), 100),
    ],
)
def test_recorded_settings(vendor: str, registry: str, attribute: tuple[str, Any], many: int) -> None:
    """Hundreds of attributes, what waits, and where changes go; Dell's wait for a job of its queue."""
    found = recorded(vendor)
    if vendor == "dell":
        found["/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs"] = {"Members": [], "Members@odata.count": 0}
    control = ask(read_bios, found)
    assert control.bios.registry == registry
    assert control.bios.current[attribute[0]] == attribute[1]
    assert len(control.bios.current) > many
    assert control.bios.pending == {}
    assert (control.on_reset, bool(control.jobs)) == ((True, True) if vendor == "dell" else (False, False))


@pytest.mark.parametrize(
    ("vendor", "multipart_", "push", "simple"),
    [("dell", True, True, True), ("supermicro", True, False, True), ("hpe", False, False, True)],
)
def test_recorded_update_services(vendor: str, multipart_: bool, push: bool, simple: bool) -> None:
    """How each takes an image; an iLO's form is none that the standard knows; its update is reported by its service."""
    found = recorded(vendor)
    found["/redfish/v1/TaskService"] = {"Tasks": {"@odata.id": TASKS}}
    found[TASKS] = {"Members": [], "Members@odata.count": 0}
    control = ask(read_updates, found)
    assert (bool(control.multipart), bool(control.push), bool(control.simple)) == (multipart_, push, simple)
    assert control.updates.firmware
    assert [task.state for task in control.updates.tasks] == ([TaskState.DONE] if vendor == "hpe" else [])


def test_the_registry() -> None:
    """Read only where it is asked for, in English; its id may leave the patch out; null is not reported."""
    control = ask(read_bios_thoroughly, tree())
    assert control.bios.read_only == {"Turbo"}
    assert control.bios.current == {"Turbo": "Enabled", "Cores": 64, "Quiet": True}
    assert control.bios.pending == {"Turbo": "Disabled"}
    assert ask(read_bios, tree()).bios.read_only is None


def no_registry(found: Tree) -> None:
    del found["/redfish/v1/R.json"]


def outside(found: Tree) -> None:
    found["/redfish/v1/Registries/R.v1_0"]["Location"] = [{"Language": "en", "Uri": "/registries/R.json"}]


def another(found: Tree) -> None:
    found[f"{SYSTEM}/Bios"]["AttributeRegistry"] = "Q.v1"


def garbled(found: Tree) -> None:
    found["/redfish/v1/R.json"] = {"RegistryEntries": {"Attributes": "none"}}


@pytest.mark.parametrize("change", [no_registry, outside, another, garbled])
def test_a_registry_that_cannot_be_had(change: Change) -> None:
    """Nothing is known of what is read-only; the attributes are."""
    found = tree()
    change(found)
    control = ask(read_bios_thoroughly, found)
    assert control.bios.read_only is None
    assert control.bios.current["Cores"] == 64


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{SYSTEM}/Bios", {"Attributes": {"A": "1"}}),
        (f"{SYSTEM}/Bios", {"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/Bios/Settings"}}}),
        (f"{SYSTEM}/Bios/Settings", {"Attributes": "none"}),
    ],
)
def test_what_is_no_bios(path: str, body: dict[str, Any]) -> None:
    """Nothing that takes changes, no attributes, a wrong shape: an error, never an empty list."""
    found = tree()
    found[path] = body
    with pytest.raises(ParseError):
        ask(read_bios, found)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ({"TaskState": "Running", "PercentComplete": 30}, TaskState.RUNNING),
        ({"TaskState": "Pending"}, TaskState.WAITING),
        (
            {"TaskState": "Starting", "Messages": [{"Message": "Task successfully scheduled.", "MessageId": "JCP001"}]},
            TaskState.WAITING,
        ),
        ({"TaskState": "New"}, TaskState.RUNNING),
        ({"TaskState": "Suspended"}, TaskState.RUNNING),
        ({"TaskState": "Something"}, TaskState.RUNNING),
        ({"TaskState": "Completed"}, TaskState.DONE),
        ({"TaskState": "Exception", "Messages": [{"Message": "bad image"}]}, TaskState.FAILED),
        ({"TaskState": "Killed"}, TaskState.FAILED),
        ({"TaskState": "Cancelled"}, TaskState.FAILED),
        ({"Oem": {"Hpe": {"State": "Updating"}}}, TaskState.RUNNING),
        ({"Oem": {"Hpe": {"State": "Error"}}}, TaskState.FAILED),
    ],
)
def test_tasks(body: dict[str, Any], state: TaskState) -> None:
    """What is not known to be over or waiting counts as running: nothing is switched off then."""
    task = task_of(f"{TASKS}/1", {"Id": "1", "Name": "t", **body})
    assert task.state is state
    assert "bad image" in task.message or state is not TaskState.FAILED or "Messages" not in body


def test_a_task_that_is_gone_and_one_that_cannot_be_read() -> None:
    """A 404 is an answer; a 503 is none."""
    assert task_of(f"{TASKS}/1", Unreadable("HTTP 404 gone")).state is TaskState.GONE
    with pytest.raises(EdgeError, match="could not be read: HTTP 503"):
        task_of(f"{TASKS}/1", Unreadable("HTTP 503 busy"))
    with pytest.raises(ParseError, match="has no state"):
        task_of(f"{TASKS}/1", {"Id": "1"})


@pytest.mark.parametrize(
    ("body", "location", "path"),
    [
        ({"@odata.id": f"{TASKS}/7", "@odata.type": "#Task.v1_4_3.Task"}, "/redfish/v1/TaskMonitor/7", f"{TASKS}/7"),
        ({}, "/redfish/v1/TaskService/TaskMonitors/7", f"{TASKS}/7"),
        ({}, f"https://10.0.0.1{TASKS}/7", f"{TASKS}/7"),
        ({"@odata.id": "/redfish/v1/Systems/1"}, "", ""),
        ({}, "/redfish/v1/UpdateService/FirmwareInventory/Available-1", ""),
        ({}, "", ""),
    ],
)
def test_where_the_task_is(body: dict[str, Any], location: str, path: str) -> None:
    """In the body, else in Location; a monitor stands for its task; anything else is none."""
    assert accepted_task(body, location) == path


def image(content: bytes) -> Any:
    descriptor = os.memfd_create("image")
    os.write(descriptor, content)
    return os.fdopen(descriptor, "rb")


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_the_form(size: int) -> None:
    """As long as it announces, in any blocks, twice the same; the parameters first, then the file as it is."""
    content = b"x" * size
    form = multipart({"Targets": []}, 'odd "name\r\n.bin', image(content), lambda: None)
    first = b"".join(form)
    assert len(first) == len(form)
    form.rewind()
    again = b""
    while block := form.read(7):
        again += block
    assert again == first
    assert first.index(b'name="UpdateParameters"') < first.index(b'name="UpdateFile"')
    assert b'\r\n\r\n{"Targets": []}\r\n' in first
    assert b'filename="odd__name__.bin"' in first
    assert first.count(content) >= 1


def test_a_form_that_is_stopped() -> None:
    """Between two blocks the run's end is seen."""

    def check() -> None:
        raise CancelledError("stopped")

    form = multipart({}, "a", image(b"x"), check)
    with pytest.raises(CancelledError):
        form.read()


WISH = FirmwareWish("*", "2", image=Image("i.bin", "0" * 64))
PUSH = ("POST", f"{SERVICE}/update")


def took(server: Bmc) -> Callable[[Handler], None]:
    """It makes a task of it, and reports it."""

    def reply(handler: Handler) -> None:
        add_task(server.tree, "9", TaskState="Running")
        handler.reply(202, {}, {"Location": f"{TASKS}/9"})

    return reply


def test_a_plain_push(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """`HttpPushUri` gets the image as the body; a busy BMC is waited for."""
    server, address = served
    server.tree = tree()
    server.faults[PUSH] = [status(503, Retry_After="0"), took(server)]
    with bmcs.open(address, Deadline.after(60)) as bmc:
        (task,) = bmc.push_firmware(WISH, image(b"{}"), SERIAL, Deadline.after(60)).value
    assert task.path == f"{TASKS}/9"
    sent = [dict(headers) for asked, headers in zip(server.asked, server.headers, strict=True) if asked == PUSH]
    assert [(one["Content-Type"], one["Content-Length"]) for one in sent] == [("application/octet-stream", "2")] * 2


def test_a_push_with_a_lost_answer(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """The task is found; where there is none, the result is unknown, and the image is not sent again."""
    server, address = served
    server.tree = tree()

    def lost(handler: Handler) -> None:
        add_task(server.tree, "9", TaskState="Running")
        drop(handler)

    server.faults[PUSH] = [lost]
    with bmcs.open(address, Deadline.after(60)) as bmc:
        (task,) = bmc.push_firmware(WISH, image(b"{}"), SERIAL, Deadline.after(60)).value
    assert task.path == f"{TASKS}/9"
    server.tree = tree()
    server.faults[PUSH] = [drop]
    with bmcs.open(address, Deadline.after(60)) as bmc, pytest.raises(OutcomeUnknownError, match="it is unknown"):
        bmc.push_firmware(WISH, image(b"{}"), SERIAL, Deadline.after(60))
    assert server.asked.count(PUSH) == 2


def test_a_push_that_is_refused(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """Once, in the BMC's words."""
    server, address = served
    server.tree = tree()
    server.faults[PUSH] = [status(400)] * 3
    with bmcs.open(address, Deadline.after(60)) as bmc, pytest.raises(EdgeError, match="refuses the image: HTTP 400"):
        bmc.push_firmware(WISH, image(b"{}"), SERIAL, Deadline.after(60))
    assert server.asked.count(PUSH) == 1


def test_attributes_that_are_taken_back(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """200, and not there on the next read: an error that has the request and the result."""
    server, address = served
    server.tree = tree()
    server.faults["PATCH", f"{SYSTEM}/Bios/Settings"] = [status(200)] * 9
    with (
        bmcs.open(address, Deadline.after(60)) as bmc,
        pytest.raises(EdgeError, match="then shows: the next boot brings"),
    ):
        bmc.set_bios({"Cores": 32}, SERIAL, Deadline.after(60))


def test_a_reader_sends_no_image(served: tuple[Bmc, BmcAddress]) -> None:
    """Nor attributes: nothing but reads and the log-in goes out."""
    server, address = served
    server.tree = tree()
    with RedfishBmcs(FixedClock(), QUICK, read_only=True).open(address, Deadline.after(60)) as bmc:
        with pytest.raises(EdgeError, match="this run only reads: POST was not sent"):
            bmc.push_firmware(WISH, image(b"{}"), SERIAL, Deadline.after(60))
        with pytest.raises(EdgeError, match="this run only reads: PATCH was not sent"):
            bmc.set_bios({"Cores": 32}, SERIAL, Deadline.after(60))
    assert PUSH not in server.asked
    assert server.patched == []

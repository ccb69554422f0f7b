"""Virtual media: put in, taken out, seen each time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot import read_tray
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.replay import Bmc
from tests.edges.redfish.trees import ask, recorded
from tests.faulty import status

Served = tuple[Bmc, BmcAddress]
MANAGER = "/redfish/v1/Managers/1"
SLOTS = f"{MANAGER}/VirtualMedia"
CD = f"{SLOTS}/CD"
INSERT = f"{CD}/Actions/VirtualMedia.InsertMedia"
SERIAL = Serial("EX00042")
IMAGE = "https://images.example.net/live.iso"


@pytest.fixture
def server(served: Served) -> Bmc:
    """A manager with a virtual CD and a virtual stick, both empty."""
    tree = served[0].tree
    tree[MANAGER]["VirtualMedia"] = {"@odata.id": SLOTS}
    tree[SLOTS] = {"Members": [{"@odata.id": f"{SLOTS}/Stick"}, {"@odata.id": CD}]}
    tree[f"{SLOTS}/Stick"] = {"MediaTypes": ["USBStick"], "Inserted": False}
    actions = {f"#VirtualMedia.{name}": {"target": f"{CD}/Actions/VirtualMedia.{name}"} for name in WORDS}
    tree[CD] = {"MediaTypes": ["CD", "DVD"], "Inserted": False, "Image": None, "Actions": actions}
    return served[0]


WORDS = ("InsertMedia", "EjectMedia")


def insert(bmcs: RedfishBmcs, served: Served, uri: str = IMAGE, serial: Serial = SERIAL) -> list[str]:
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        observed = bmc.insert_media(uri, serial, Deadline.after(60))
    steps: list[str] = json.loads(observed.evidence[0].content)["steps"]
    return steps


def eject(bmcs: RedfishBmcs, served: Served, uri: str = IMAGE) -> None:
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        bmc.eject_media(uri, SERIAL, Deadline.after(60))


def posts(server: Bmc) -> list[str]:
    return [path for method, path in server.asked if method == "POST" and "VirtualMedia" in path]


def test_in_and_out(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Into the drive for discs, seen; again changes nothing; out, seen; again changes nothing."""
    assert insert(bmcs, served)[-1] == f"virtual media: {CD} holds {IMAGE}"
    insert(bmcs, served)
    assert server.tree[f"{SLOTS}/Stick"]["Inserted"] is False
    eject(bmcs, served)
    eject(bmcs, served)
    assert server.tree[CD]["Inserted"] is False
    assert len(posts(server)) == 2


def test_a_drive_that_is_taken(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """What others put in stays in, and is named."""
    server.tree[CD].update(Image="http://192.0.2.7/other.iso", Inserted=True)
    with pytest.raises(EdgeError, match=r"holds http://192\.0\.2\.7/other\.iso"):
        insert(bmcs, served)
    eject(bmcs, served)
    assert posts(server) == []


def test_another_machine(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Gets no image."""
    with pytest.raises(EdgeError, match="belongs to machine"):
        insert(bmcs, served, serial=Serial("EX99999"))
    assert posts(server) == []


def test_accepted_and_not_there(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """An image that the BMC could not fetch is no success."""
    server.faults["POST", INSERT] = [status(204)] * 9
    with pytest.raises(EdgeError, match=f"accepted insert {IMAGE} .* holds nothing"):
        insert(bmcs, served)


def test_parameters_that_are_refused(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Some want more than the image: asked again with it."""
    server.faults["POST", INSERT] = [status(400), status(400)]
    insert(bmcs, served)
    assert len(posts(server)) == 3


def test_drives_without_actions(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Older BMCs take the image by PATCH."""
    server.tree[CD]["Actions"] = {}
    insert(bmcs, served)
    eject(bmcs, served)
    assert [body["Image"] for _, body in server.patched] == [IMAGE, None]


def test_a_uri_with_a_login(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Is refused: the BMC would show it."""
    with pytest.raises(UsageError):
        insert(bmcs, served, "https://user:secret@images.example.net/live.iso")
    assert posts(server) == []


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda tree: tree.pop(CD), CD),
        (lambda tree: tree.pop(SLOTS), SLOTS),
        (lambda tree: tree[CD].pop("MediaTypes"), f"{CD} MediaTypes"),
        (lambda tree: tree[CD].update(MediaTypes="CD"), f"{CD} MediaTypes"),
    ],
    ids=["unreadable", "list-unreadable", "kinds-missing", "kinds-mistyped"],
)
def test_drives_that_are_not_reported(
    bmcs: RedfishBmcs, served: Served, server: Bmc, spoil: Callable[[dict[str, Any]], object], where: str
) -> None:
    """A drive that cannot be read is not no drive: the error names resource and field."""
    spoil(server.tree)
    with pytest.raises(ClusterctlError) as caught:
        insert(bmcs, served)
    assert caught.value.where.endswith(where)
    assert "no free virtual drive" not in caught.value.message
    assert posts(server) == []


def test_one_drive_is_enough(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """What the others do not report does not matter any more."""
    server.tree[f"{SLOTS}/Stick"] = {"Inserted": False}
    insert(bmcs, served)
    assert server.tree[CD]["Inserted"] is True


@pytest.mark.parametrize(("vendor", "count"), [("dell", 2), ("hpe", 1), ("supermicro", 3)])
def test_recorded_drives(vendor: str, count: int) -> None:
    """The drives for discs of each recorded BMC, all empty."""
    tree: Any = recorded(vendor)
    tray = ask(read_tray, tree)
    assert [slot.inserted for slot in tray.slots] == [False] * count

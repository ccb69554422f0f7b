"""A machine with a System without serial (GB200): it is the same one to every reader and to every change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, BmcClient, Deadline
from tests.edges.redfish.replay import Bmc, serve
from tests.edges.redfish.trees import dgx

SERIAL = Serial("1820325000042")
SYSTEM = "/redfish/v1/Systems/DGX"
CD = f"{SYSTEM}/VirtualMedia/CD1"
IMAGE = "https://192.0.2.1/some.iso"
Change = Callable[[BmcClient, Serial, Deadline], object]
CHANGES: dict[str, Change] = {
    "boot-once": lambda bmc, serial, soon: bmc.boot_once(BootOnce(BootSource.PXE), serial, soon),
    "insert-media": lambda bmc, serial, soon: bmc.insert_media(IMAGE, serial, soon),
}


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[tuple[Bmc, BmcAddress]]:
    """Our DGX, with its null serial given by the chassis' assembly, and with a virtual drive."""
    tree = dgx()
    assert tree[SYSTEM].get("SerialNumber") is None
    tree[SYSTEM]["VirtualMedia"] = {"@odata.id": f"{SYSTEM}/VirtualMedia"}
    slot = {"MediaTypes": ["CD"], "Inserted": False, "Image": None}
    tree |= _collection(f"{SYSTEM}/VirtualMedia", {"CD1": slot})
    with serve(tree, tmp_path) as both:
        yield both


def _collection(path: str, members: dict[str, dict[str, Any]]) -> dict[str, Any]:
    listed = [{"@odata.id": f"{path}/{name}"} for name in members]
    own = {
        f"{path}/{name}": {"@odata.id": f"{path}/{name}", "Id": name, "Name": name, **body}
        for name, body in members.items()
    }
    return {path: {"@odata.id": path, "Members": listed, "Members@odata.count": len(listed)}, **own}


def test_the_identity_of_the_machine(bmcs: RedfishBmcs, silent: tuple[Bmc, BmcAddress]) -> None:
    """By the word of discover, by which all else is to go."""
    soon = Deadline.after(60)
    with bmcs.open(silent[1], soon) as bmc:
        assert bmc.inventory(soon).value.serial == SERIAL


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_it_is_changed(bmcs: RedfishBmcs, silent: tuple[Bmc, BmcAddress], change: Change) -> None:
    """By the serial that discover has found, and seen to be so."""
    server, address = silent
    soon = Deadline.after(60)
    with bmcs.open(address, soon) as bmc:
        change(bmc, SERIAL, soon)
    assert len(server.patched) == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_another_is_not_touched(bmcs: RedfishBmcs, silent: tuple[Bmc, BmcAddress], change: Change) -> None:
    """By any other serial it is not changed."""
    server, address = silent
    soon = Deadline.after(60)
    with bmcs.open(address, soon) as bmc, pytest.raises(EdgeError, match=f"belongs to machine {SERIAL}"):
        change(bmc, Serial("1820325000043"), soon)
    assert server.patched == []

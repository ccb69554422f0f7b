"""Event logs are cleared of what was read and kept, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.evidence import MAX_BYTES
from clusterctl.formats.redfish.logs import read_event_logs
from clusterctl.ports import BmcAddress, BmcClient, Deadline, Power
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.quirk_kit import machine, served
from tests.edges.redfish.replay import Bmc, Handler
from tests.edges.redfish.trees import ask, recorded
from tests.faulty import drop, status

SERIAL = Serial("EX00042")
SYSTEM = "/redfish/v1/Systems/1"
SERVICES = f"{SYSTEM}/LogServices"
SEL = f"{SERVICES}/SEL"
ENTRIES = f"{SEL}/Entries"
CLEAR = f"{SEL}/Actions/LogService.ClearLog"
Served = tuple[Bmc, BmcAddress]


def soon() -> Deadline:
    return Deadline.after(60)


def entry(number: int, message: str) -> dict[str, Any]:
    path = f"{ENTRIES}/{number}"
    return {"@odata.id": path, "Id": str(number), "Created": f"2026-01-01T00:00:0{number}Z", "Message": message}


def fill(server: Bmc, *messages: str) -> None:
    found = [entry(number, message) for number, message in enumerate(messages, 1)]
    server.tree[ENTRIES] = {"@odata.id": ENTRIES, "Members": found, "Members@odata.count": len(found)}


@pytest.fixture(name="there")
def _there(served: Served) -> Served:
    """A System with one log of two entries, which records that it was cleared."""
    server = served[0]
    server.tree[SYSTEM]["LogServices"] = {"@odata.id": SERVICES}
    server.tree[SERVICES] = {"Members": [{"@odata.id": SEL}], "Members@odata.count": 1}
    actions = {"#LogService.ClearLog": {"target": CLEAR}}
    server.tree[SEL] = {"@odata.id": SEL, "Id": "SEL", "Entries": {"@odata.id": ENTRIES}, "Actions": actions}
    fill(server, "A fan failed.", "A fan is well.")

    def cleared(handler: Handler) -> None:
        server.tree[ENTRIES] |= {"Members": [{**entry(1, "The log was cleared."), "Created": "2026-01-02T00:00:00Z"}]}
        server.tree[ENTRIES]["Members@odata.count"] = 1
        handler.reply(204, None)

    server.faults["POST", CLEAR] = [cleared]
    return served


def posts(server: Bmc) -> int:
    return server.asked.count(("POST", CLEAR))


def clear(bmc: BmcClient) -> LogArchive:
    archive = bmc.archive_log(soon()).value
    bmc.clear_log(archive, soon())
    return archive


def test_kept_then_cleared(bmcs: RedfishBmcs, there: Served) -> None:
    """The evidence holds every entry; cleared is what was kept, though the BMC notes that it was cleared."""
    with bmcs.open(there[1], soon()) as bmc:
        seen = bmc.archive_log(soon())
        assert (seen.value.serial, seen.value.count) == (SERIAL, 2)
        assert b"A fan failed." in seen.evidence[0].content
        done = bmc.clear_log(seen.value, soon())
    assert posts(there[0]) == 1
    assert "has 1 entries" in json.loads(done.evidence[0].content)["steps"][-1]


def test_a_new_entry_is_not_lost(bmcs: RedfishBmcs, there: Served) -> None:
    """What came after the archive was made stops it: nothing is cleared."""
    with bmcs.open(there[1], soon()) as bmc:
        archive = bmc.archive_log(soon()).value
        fill(there[0], "A fan failed.", "A fan is well.", "A GPU fell off the bus.")
        with pytest.raises(EdgeError, match="not kept") as caught:
            bmc.clear_log(archive, soon())
    assert caught.value.where.endswith(SEL)
    assert posts(there[0]) == 0


def test_another_machine(bmcs: RedfishBmcs, there: Served) -> None:
    """Its log stays."""
    with bmcs.open(there[1], soon()) as bmc:
        archive = bmc.archive_log(soon()).value
        with pytest.raises(EdgeError, match="belongs to machine"):
            bmc.clear_log(LogArchive(Serial("EX99999"), archive.entries), soon())
    assert posts(there[0]) == 0


def test_an_answer_that_is_lost(bmcs: RedfishBmcs, there: Served) -> None:
    """It is looked whether the log is empty; it was done, and is not asked for again."""
    server = there[0]

    def lost(handler: Handler) -> None:
        fill(server)
        drop(handler)

    server.faults["POST", CLEAR] = [lost]
    with bmcs.open(there[1], soon()) as bmc:
        clear(bmc)
    assert posts(server) == 1


def test_accepted_and_not_done(bmcs: RedfishBmcs, there: Served) -> None:
    """It is an error that names what is there."""
    there[0].faults["POST", CLEAR] = [status(204)] * 9
    with bmcs.open(there[1], soon()) as bmc, pytest.raises(EdgeError, match="has 2 entries"):
        clear(bmc)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tree: tree[ENTRIES].update({"Members@odata.count": 3}), "counts 3 entries but shows 2"),
        (lambda tree: tree.pop(ENTRIES), "could not be read"),
        (lambda tree: tree[SEL].pop("Entries"), "the link is missing"),
    ],
    ids=["fewer-than-counted", "unreadable", "no-entries"],
)
def test_what_cannot_be_read_to_its_end(bmcs: RedfishBmcs, there: Served, change: Any, words: str) -> None:
    """Cannot be kept, so it is not cleared; the resource is named."""
    change(there[0].tree)
    with bmcs.open(there[1], soon()) as bmc, pytest.raises(ClusterctlError, match=words) as caught:
        bmc.archive_log(soon())
    assert SEL in caught.value.where


def test_a_log_that_is_too_long_to_keep(bmcs: RedfishBmcs, there: Served) -> None:
    """Evidence is bounded; what it would leave out must not be lost."""
    fill(there[0], "x" * MAX_BYTES)
    with bmcs.open(there[1], soon()) as bmc, pytest.raises(EdgeError, match="longer than the evidence"):
        bmc.archive_log(soon())


def test_no_log_to_clear(bmcs: RedfishBmcs, there: Served) -> None:
    """Reported as such, with what to do."""
    del there[0].tree[SEL]["Actions"]
    with bmcs.open(there[1], soon()) as bmc, pytest.raises(EdgeError, match="no event log") as caught:
        bmc.archive_log(soon())
    assert caught.value.remedy


@pytest.mark.parametrize(("vendor", "logs"), [("dell", ["Sel"]), ("hpe", ["IML"])])
def test_recorded_logs(vendor: str, logs: list[str]) -> None:
    """The hardware's only: neither Dell's Lifecycle log nor HPE's logs of security and of the iLO."""
    found = ask(read_event_logs, recorded(vendor))
    assert [log.path.rsplit("/", 1)[-1] for log in found.logs] == logs
    assert found.archive.count == 5


def test_a_recorded_supermicro() -> None:
    """The System's log, and not the BMC's own of the same name."""
    (log,) = ask(read_event_logs, recorded("supermicro")).logs
    assert log.path == f"{SYSTEM}/LogServices/Log1"
    assert len(log.entries) == 82


def test_the_labs_bmcs(tmp_path: Path) -> None:
    """Of every vendor: what a boot has left is kept, cleared, and gone."""
    machines = {vendor.value: machine(number, vendor.value, vendor) for number, vendor in enumerate(Vendor, 1)}
    with served(machines, tmp_path) as site:
        for name, there in machines.items():
            with site.open(name) as bmc:
                bmc.set_power(Power.ON, Serial(there.serial), soon())
                archive = clear(bmc)
                assert archive.count, name
                assert not site.world.states[name].sel, name

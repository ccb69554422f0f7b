"""Whose address is whose: each kind of thing that does not fit, named once, and what may be written all the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clusterctl.fleet.bmc.observation import BmcObservation, Greeting, Identity, Lease, Listed, Planned, SweepOutcome
from clusterctl.fleet.bmc.reconciliation import ConflictKind, Reconciliation, join
from clusterctl.fleet.node import Mac, Serial

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
ASKED = frozenset({A, B, C})


def mac(last: int) -> Mac:
    return Mac(f"02:00:00:00:00:{last:02x}")


def seen(address: str, serial: str, last: int = 0) -> BmcObservation:
    bmc_mac = mac(last or int(address.rsplit(".", 1)[1]))
    return BmcObservation(address, SweepOutcome.IDENTIFIED, identity=Identity(serial=Serial(serial), bmc_mac=bmc_mac))


def plan(name: str, address: str, serial: str = "", rack: str = "", unit: int | None = None) -> Planned:
    return Planned(f"bmcs.csv:{name}", name, address, serial, rack, unit)


def kinds(joined: Reconciliation) -> list[ConflictKind]:
    return [conflict.kind for conflict in joined.conflicts]


def written(joined: Reconciliation) -> list[str]:
    return [entry.address for entry in joined.accepted]


def joined(observations: Sequence[BmcObservation], *planned: Planned, **more) -> Reconciliation:
    found = join(observations, asked=ASKED, planned=planned, **more)
    assert all(conflict.cause and conflict.remedy and conflict.subjects for conflict in found.conflicts)
    return found


def test_all_as_planned() -> None:
    """No problem is reported; a line without a serial is known by its address."""
    found = joined([seen(A, "S1"), seen(B, "S2")], plan("n1", A, "s1", "A01", 4), plan("n2", B))
    assert found.conflicts == ()
    assert [(entry.name, entry.place) for entry in found.entries] == [("n1", ("A01", 4)), ("n2", ("", None))]
    assert written(found) == [A, B]


def test_without_a_plan_no_bmc_is_unplanned() -> None:
    """The first sweep of a site finds no stranger."""
    assert joined([seen(A, "S1")]).conflicts == ()


def test_two_addresses_of_one_serial() -> None:
    """One BMC twice, or two machines with one serial: distinguished by the MAC; neither is written."""
    one = joined([seen(A, "S1", 1), seen(B, "S1", 1), seen(C, "S3")])
    two = joined([seen(A, "S1", 1), seen(B, "s1", 2)])
    assert kinds(one) == kinds(two) == [ConflictKind.TWO_ADDRESSES]
    assert "one BMC" in one.conflicts[0].cause
    assert "two machines" in two.conflicts[0].cause
    assert (written(one), written(two)) == ([C], [])


def test_another_machine_in_a_place() -> None:
    """Its address is the planned one's, so it is not written before an operator has checked it."""
    found = joined([seen(A, "S9")], plan("n1", A, "S1"))
    assert kinds(found) == [ConflictKind.OTHER_MACHINE, ConflictKind.UNPLANNED]
    assert written(found) == []


def test_two_machines_that_changed_addresses() -> None:
    """Both are found by serial: moved, and written; once they are, no problem is left."""
    found = joined([seen(A, "S2"), seen(B, "S1")], plan("n1", A, "S1"), plan("n2", B, "S2"))
    assert kinds(found) == [ConflictKind.MOVED, ConflictKind.MOVED]
    assert written(found) == [A, B]
    assert found.settled().conflicts == ()


def test_missing_and_silent() -> None:
    """Planned where no BMC answers, and where something else does; what was not swept is not missing."""
    web = BmcObservation(B, SweepOutcome.NO_REDFISH, cause="HTTP 404", remedy="switch it on")
    found = joined([web], plan("n1", A, "S1"), plan("n2", B, "S2"), plan("far", "10.9.9.9", "S9"))
    assert kinds(found) == [ConflictKind.NOT_FOUND, ConflictKind.NO_REDFISH]
    assert [conflict.subjects[0] for conflict in found.conflicts] == ["n1", "n2"]


@pytest.mark.parametrize("outcome", [SweepOutcome.REJECTED, SweepOutcome.CERTIFICATE_UNKNOWN, SweepOutcome.NO_ANSWER])
def test_a_bmc_that_answers_without_a_serial_is_not_missing(outcome: SweepOutcome) -> None:
    """Its outcome has what is wrong; it is unknown whether its machine is gone."""
    assert joined([BmcObservation(A, outcome)], plan("n1", A, "S1")).conflicts == ()


def test_the_claims_of_an_unproven_peer_move_no_machine() -> None:
    """The serial that a BMC without a proven certificate reports is not taken for a machine's."""
    stranger = BmcObservation(B, SweepOutcome.CERTIFICATE_UNKNOWN, Greeting(serial="S1", bmc_mac=mac(1)))
    found = joined([stranger], plan("n1", A, "S1"))
    assert kinds(found) == [ConflictKind.NOT_FOUND]
    assert found.entries[0].planned is None


def test_places_from_a_list() -> None:
    """By the MAC that DHCP saw, also for a BMC without a MAC of its own; where list and plan differ, neither is believed."""
    leases = [Lease(A, mac(1), "bmc1"), Lease(B, mac(2))]
    listed = [Listed("m.csv:2", "", mac(1), "x1", "A01", 4), Listed("m.csv:3", "S2", None, "", "A02", 8)]
    silent = BmcObservation(A, SweepOutcome.REJECTED)
    found = joined([silent, seen(B, "S2")], plan("n2", B, "S2", "A03", 8), leases=leases, listed=listed)
    assert [(entry.mac, entry.hostname, entry.name, entry.place) for entry in found.entries] == [
        (mac(1), "bmc1", "x1", ("A01", 4)),
        (mac(2), "", "n2", ("A03", 8)),
    ]
    assert kinds(found) == [ConflictKind.OTHER_PLACE]
    assert "A02 U8" in found.conflicts[0].cause
    assert written(found) == []


def test_a_list_that_has_another_serial_for_a_mac() -> None:
    """A board that was swapped, or a list that is wrong."""
    found = joined([seen(A, "S1")], listed=[Listed("v.csv:2", "S7", mac(1))])
    assert kinds(found) == [ConflictKind.OTHER_SERIAL]
    assert written(found) == []


def test_two_machines_in_one_place() -> None:
    """Of the lists, and of a list and the plan."""
    listed = [Listed("m:2", "S1", None, "", "A01", 4), Listed("m:3", "S2", None, "", "a01", 4)]
    assert kinds(joined([seen(A, "S1"), seen(B, "S2")], listed=listed)) == [ConflictKind.SAME_PLACE]
    found = joined([seen(A, "S1")], plan("n9", C, "S9", "A01", 4), listed=listed[:1])
    assert kinds(found) == [ConflictKind.SAME_PLACE, ConflictKind.NOT_FOUND, ConflictKind.UNPLANNED]
    assert written(found) == []


def test_what_a_bmc_claims_keeps_no_other_out() -> None:
    """Its serial is another's address, or a node's name; it has the MAC of another's line: only it is left out."""
    honest = [seen(A, "S1", 1), seen(B, "S2", 2)]
    listed = [Listed("v.csv:2", "S1", mac(1), "", "A01", 4), Listed("v.csv:3", "S2", mac(2), "", "A01", 8)]
    for claim in (A, "n1", "v.csv:2"):
        found = joined([*honest, seen(C, claim, 1)], plan("n1", A, "S1"), plan("n3", C, "S3"), listed=listed)
        assert {ConflictKind.OTHER_MACHINE, ConflictKind.OTHER_SERIAL} <= {*kinds(found)}
        assert written(found) == [A, B]


def test_a_stranger_that_reports_an_address_as_its_serial_stays_reported() -> None:
    """What was written to the sheet settles the conflicts of those machines, not of one that names their address."""
    web = seen(C, A)
    found = joined([seen(A, "S1"), web], plan("n1", A, "S1"), plan("n3", C, "S3")).settled()
    assert ConflictKind.UNPLANNED in kinds(found)

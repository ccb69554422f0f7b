"""Each host's finding on its network cables: the received neighbours, the missing ones, and no claim beyond that."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clusterctl.cabling.ethernet.findings import MissingReport, ethernet_findings
from clusterctl.cabling.ethernet.verify import verify_ethernet
from clusterctl.fleet.fabric.wiring import settle
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.network.lldp import LldpReport, Neighbour
from clusterctl.fleet.node import Mac
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv

HEADER = "source_device,source_port,destination_device,destination_port,source_rack,destination_rack\n"
PLAN = settle(
    read_ethernet_csv(
        HEADER
        + "".join(f"mgmt,swp{n},n{n},eth0,A01,A01\n" for n in (1, 2, 3))
        + "".join(f"mgmt,swp{n + 20},n{n},bmc,A01,A01\n" for n in (1, 2, 3))
        + "data,swp1,n1,eth1,A01,A01\n",
        "ethernet.csv",
    )
)
ALL = {"n1": {"eth0": "mgmt swp1", "eth1": "data swp1"}, "n2": {"eth0": "mgmt swp2"}, "n3": {"eth0": "mgmt swp3"}}


def reports(seen: Mapping[str, Mapping[str, str]]) -> dict[str, LldpReport]:
    return {
        host: LldpReport(tuple(Neighbour(nic, far.split()[0], (far.split()[1],)) for nic, far in nics.items()))
        for host, nics in seen.items()
    }


def judged(
    seen: Mapping[str, Mapping[str, str]], missing_reports: Mapping[str, MissingReport] | None = None
) -> Mapping[str, tuple[Finding, ...]]:
    silent = missing_reports or {}
    verification = verify_ethernet(PLAN, reports(seen), {name: why.reason for name, why in silent.items()})
    return ethernet_findings(PLAN, verification, ("n1", "n2", "n3"), silent)


def test_right():
    """All of a host's NICs have the planned neighbours; its BMC's cable, which it cannot see, is not claimed."""
    found = judged(ALL)
    assert [one.verdict for name in ("n1", "n2", "n3") for one in found[name]] == [Verdict.PASS] * 3
    assert (found["n1"][0].measured, found["n2"][0].expected) == ("2 cables right", "1 cable")


def test_swapped():
    """Two hosts on each other's port: both fail, with one line to do at the switch; the third does not."""
    found = judged(ALL | {"n2": {"eth0": "mgmt swp3"}, "n3": {"eth0": "mgmt swp2"}})
    assert [one.verdict for name in ("n2", "n3") for one in found[name]] == [Verdict.FAIL] * 2
    assert {found[name][0].remedy for name in ("n2", "n3")} == {"rack A01 mgmt: swap the cables in swp2 and swp3"}
    assert (found["n2"][0].subject, found["n2"][0].deterministic) == ("eth0", True)
    assert found["n1"][0].verdict is Verdict.PASS


def test_wrong_port():
    """A cable in a port that no device is planned on."""
    (found,) = judged(ALL | {"n2": {"eth0": "mgmt swp9"}})["n2"]
    assert found.verdict is Verdict.FAIL
    assert "move the plug in swp9 to swp2" in found.remedy


def test_missing():
    """A NIC without a neighbour, on a switch that others see: its cable is missing; the other NIC's stays right."""
    seen = {"n1": {"eth1": "data swp1"}, "n2": {"eth0": "mgmt swp2"}, "n3": {"eth0": "mgmt swp3"}}
    (found,) = judged(seen)["n1"]
    assert (found.verdict, found.subject, found.measured) == (Verdict.FAIL, "eth0", "1 cable right")
    assert "plug in" in found.remedy


def test_a_switch_without_a_report_proves_nothing():
    """Cables of a switch that no host sees are unmeasured: it may merely send no LLDP."""
    (found,) = judged(ALL | {"n1": {"eth0": "mgmt swp1"}})["n1"]
    assert (found.verdict, found.deterministic) == (Verdict.INCONCLUSIVE, False)
    assert "data" in found.cause
    blind = judged({name: {} for name in ALL})
    assert {one.verdict for findings in blind.values() for one in findings} == {Verdict.INCONCLUSIVE}


def test_a_host_that_cannot_be_asked_is_inconclusive():
    """Whatever others see: never missing; and no other host is affected."""
    gone = {"n2": MissingReport("lldpd is not installed on it", "install lldpd on n2")}
    found = judged({name: ALL[name] for name in ("n1", "n3")}, gone)
    (one,) = found["n2"]
    assert (one.verdict, one.deterministic, one.remedy) == (Verdict.INCONCLUSIVE, False, "install lldpd on n2")
    assert "lldpd is not installed on it" in one.cause
    assert [found[name][0].verdict for name in ("n1", "n3")] == [Verdict.PASS] * 2


def test_two_hosts_on_one_port():
    """Another host on a port where plan and report of its own host agree: only the other one is held back."""
    found = judged(ALL | {"n3": {"eth0": "mgmt swp2"}})
    assert [found[name][0].verdict for name in ("n1", "n2", "n3")] == [
        Verdict.PASS,
        Verdict.PASS,
        Verdict.INCONCLUSIVE,
    ]
    assert "n2 eth0 and n3 eth0 both receive LLDP from mgmt swp2" in found["n3"][0].cause


def test_an_invented_interface_is_a_finding_on_its_host_alone():
    """A host whose cables are as planned, and which reports another host's switch port too."""
    found = judged(ALL | {"n3": {"eth0": "mgmt swp3", "x0": "mgmt swp2", "x1": "data swp1", "x2": "n2 eth7"}})
    assert [found[name][0].verdict for name in ("n1", "n2")] == [Verdict.PASS] * 2
    assert [(one.verdict, one.subject) for one in found["n3"]] == [
        (Verdict.INCONCLUSIVE, port) for port in ("x0", "x1", "x2")
    ]


PORTS = [
    *((switch, f"swp{number}") for switch, number in itertools.product(("mgmt", "data"), (1, 2, 3, 9, 21, 22))),
    *((host, nic) for host, nic in itertools.product(("n1", "n2", "n3", "stranger"), ("eth0", "eth1", "bmc", "x0"))),
]
MACS = {("n1", "eth0"): Mac("02:00:00:00:00:01"), ("n2", "eth0"): Mac("02:00:00:00:00:02")}
CLAIMS = st.builds(
    lambda nic, port, by_mac: Neighbour(nic, port[0], (port[1],), MACS.get(port) if by_mac else None),
    st.sampled_from(["eth0", "eth1", "bmc", "x0", "x1"]),
    st.sampled_from(PORTS),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    claims=st.lists(CLAIMS, max_size=12),
    stolen=st.dictionaries(st.sampled_from(["eth0", "x0"]), st.sampled_from(list(MACS.values()))),
    switches=st.booleans(),
)
@example(
    claims=[
        Neighbour(f"x{n}", *port)
        for n, port in enumerate([("mgmt", ("swp1",)), ("mgmt", ("swp2",)), ("data", ("swp1",))])
    ],
    stolen={},
    switches=False,
)
@example(claims=[], stolen={"x0": MACS["n1", "eth0"], "eth0": MACS["n2", "eth0"]}, switches=True)
def test_one_hosts_report_changes_nothing_for_the_others(claims, stolen, switches):
    """Whatever n3 reports of neighbours and of its own MAC addresses, n1 and n2 have what they have without it."""
    seen = reports(ALL)
    for (host, nic), mac in MACS.items():
        seen[host] = replace(seen[host], interfaces={nic: mac})
    if switches:
        near = [Neighbour(f"swp{n}", host, ("eth0",), MACS.get((host, "eth0"))) for n, host in enumerate(ALL, 1)]
        seen |= {"mgmt": LldpReport(tuple(near)), "data": LldpReport((Neighbour("swp1", "n1", ("eth1",)),))}
    seen["n3"] = LldpReport(tuple(claims), stolen)
    found = ethernet_findings(PLAN, verify_ethernet(PLAN, seen), ("n1", "n2", "n3"), {})
    assert [(one.verdict, one.measured) for name in ("n1", "n2") for one in found[name]] == [
        (Verdict.PASS, "2 cables right"),
        (Verdict.PASS, "1 cable right"),
    ]


def test_a_host_that_the_plan_forgot():
    """Nothing was proven of it, and the finding reports that."""
    verification = verify_ethernet(PLAN, reports(ALL))
    (found,) = ethernet_findings(PLAN, verification, ["n9"], {})["n9"]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.remedy == "add the cables of n9 to the Ethernet plan"


@pytest.mark.parametrize(
    ("silent", "reason"),
    [
        ({}, "no LLDP report of mgmt or n2"),
        ({"n2": "no SSH"}, "n2: no SSH"),
    ],
)
def test_why_a_cable_was_not_measured(silent, reason):
    """The host's own reason where there is one; a BMC's cable waits for its switch."""
    verification = verify_ethernet(PLAN, reports({name: ALL[name] for name in ("n1", "n3")}), silent)
    reasons = {str(item.cable.destination): item.reason for item in verification.unmeasured}
    assert reasons["n2 eth0"] == reason
    assert reasons["n2 bmc"] == "no LLDP report of mgmt"

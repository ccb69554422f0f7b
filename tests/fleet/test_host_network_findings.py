"""A host's network, judged: each setting of the site that the host lacks is reported with what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.network.findings import judge_network
from clusterctl.fleet.network.host_network import (
    Addressing,
    DefaultRoute,
    HostIpoib,
    HostNetwork,
    HostNetworkInterface,
    HostPort,
    ObservedNetwork,
)
from clusterctl.formats.host.network import parse_default_routes, parse_ip_addr
from tests.formats.host_networks import BONDED, BOOT, DHCP, FIRST, SECOND
from tests.paths import ROOT

FAIL, WARN, INCONCLUSIVE = Verdict.FAIL, Verdict.WARN, Verdict.INCONCLUSIVE
RECORDED = ROOT / "tests" / "formats" / "data" / "ip" / "lacp_without_partner.json"
PARTNER = "aa:bb:cc:00:00:01"
RAIL = HostIpoib("rail0", connected=True, addressing=Addressing(("10.100.0.7/16",), mtu=65520), guid="a088c20300000101")
ON_RAIL = HostNetworkInterface("rail0", "00:00:10:49:fe:80", 65520, True, ("10.100.0.7/16",), ipoib_mode="connected")


def recorded() -> ObservedNetwork:
    """The output of a host with two ports in an LACP bond that no switch answers (virtual machine, Debian 12)."""
    route = '[{"dst":"default","gateway":"10.20.0.1","dev":"mgmt0","protocol":"static","flags":[]}]'
    return ObservedNetwork(parse_ip_addr(RECORDED.read_text()), parse_default_routes(route), ("10.20.0.2",))


def healthy() -> ObservedNetwork:
    """The same with a switch that answers."""
    bond = recorded().named("bond0")
    assert bond is not None
    assert bond.bond is not None
    return changed("bond0", bond=replace(bond.bond, partner=PARTNER, active=2))(recorded())


def changed(name: str, /, **changes: object) -> Callable[[ObservedNetwork], ObservedNetwork]:
    def change(seen: ObservedNetwork) -> ObservedNetwork:
        found = tuple(replace(one, **changes) if one.name == name else one for one in seen.interfaces)
        return replace(seen, interfaces=found)

    return change


def without(name: str) -> Callable[[ObservedNetwork], ObservedNetwork]:
    return lambda seen: replace(seen, interfaces=tuple(one for one in seen.interfaces if one.name != name))


def bad(wanted: HostNetwork, seen: ObservedNetwork) -> list[tuple[str, str, Verdict]]:
    return [(f.subject, f.cause, f.verdict) for f in judge_network(wanted, seen) if f.verdict is not Verdict.PASS]


def test_a_host_with_the_network_of_the_site_passes() -> None:
    """One finding for all of it."""
    (finding,) = judge_network(BONDED, healthy())
    assert (finding.check, finding.verdict, finding.remedy) == ("host_network", Verdict.PASS, "")


def test_a_recorded_bond_without_a_partner_is_reported() -> None:
    """As the kernel reported it; addresses and MTU over it are right all the same."""
    assert bad(BONDED, recorded()) == [("bond0", "no switch uses LACP with the bond", FAIL)]


@dataclass(frozen=True)
class Case:
    change: Callable[[ObservedNetwork], ObservedNetwork]
    subject: str
    expected: str
    verdict: Verdict = FAIL
    measured: str = ""


CASES = {
    "no card": Case(without("enp0s3"), "mac-5ced8c000003", f"no port with the MAC {SECOND}", measured="absent"),
    "no bond": Case(without("bond0"), "bond0", "has no bond bond0"),
    "no VLAN": Case(without("ipmi"), "ipmi", "has no VLAN ipmi"),
    "cable out of a member": Case(changed("data0", carrier=False), "data0", "a member of bond0 has no link"),
    "member down by MII": Case(changed("data0", member_up=False), "data0", "a member of bond0 has no link"),
    "cable out of a port": Case(changed("mgmt0", carrier=False), "mgmt0", "the port has no link", measured="down"),
    "not enslaved": Case(changed("data0", master=""), "data0", "no member of bond0", measured="no bond"),
    "one of two aggregated": Case(
        lambda seen: changed("bond0", bond=replace(seen.named("bond0").bond, active=1))(seen),  # type: ignore[union-attr,type-var]
        "bond0",
        "not every member",
        measured="1",
    ),
    "no bond at all": Case(changed("bond0", bond=None), "bond0", "bond0 is no bond"),
    "another VLAN": Case(changed("storage", vlan=121), "storage", "the VLAN is another", measured="121 on bond0"),
    "VLAN on another link": Case(changed("ipmi", parent="data0"), "ipmi", "the VLAN is another", measured="7 on data0"),
    "another prefix": Case(changed("ipmi", addresses=("10.40.0.17/16",)), "ipmi", "10.40.0.17/24 is missing"),
    "one address more": Case(
        changed("ipmi", addresses=("10.40.0.17/24", "10.9.9.9/24")), "ipmi", "does not give it: 10.9.9.9/24", WARN
    ),
    "MTU of the bond": Case(changed("bond0", mtu=1500), "bond0", "the MTU is another", measured="1500"),
    "another name": Case(changed("data0", name="eno2"), "eno2", "another name than the site gives it", WARN),
    "no route": Case(lambda seen: replace(seen, routes=()), "default route", "10.20.0.1 is missing"),
    "a second route": Case(
        lambda seen: replace(seen, routes=(*seen.routes, DefaultRoute("10.30.0.1", "storage"))),
        "default route",
        "does not name, over 10.30.0.1",
    ),
    "another name server": Case(
        lambda seen: replace(seen, servers=("10.20.0.2", "1.1.1.1")), "name servers", "asks other name servers"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_difference_is_reported_once_with_a_remedy(name: str) -> None:
    """One finding on the right part, in words, with what is and what should be."""
    case = CASES[name]
    findings = judge_network(BONDED, case.change(healthy()))
    (found,) = [finding for finding in findings if case.expected in finding.cause]
    assert (found.subject, found.verdict) == (case.subject, case.verdict)
    assert case.measured in str(found.measured)
    assert found.remedy
    assert not any(finding.verdict is Verdict.PASS for finding in findings)


def test_a_cable_may_be_plugged_in_again_an_address_may_not() -> None:
    """What may come out otherwise the next time is confirmed before a node is quarantined."""

    def repeats(name: str) -> bool:
        findings: list[Finding] = [*judge_network(BONDED, CASES[name].change(healthy()))]
        return next(f for f in findings if CASES[name].expected in f.cause).deterministic

    assert not repeats("cable out of a member")
    assert repeats("another prefix")


def test_dhcp_gives_address_and_route() -> None:
    """Which ones is the server's word; none at all is a failure."""
    port = HostNetworkInterface("eno1", BOOT, 1500, True, ("10.20.3.4/16",))
    seen = ObservedNetwork((port,), (DefaultRoute("10.20.0.1", "eno1"),), ("10.20.0.2",))
    assert bad(DHCP, seen) == []
    (found,) = bad(DHCP, replace(seen, interfaces=(replace(port, addresses=("fd00::4/64",)),)))
    assert found == ("eno1", "DHCP has given no address", FAIL)


def test_rails_have_mode_link_and_address() -> None:
    """A mode that the host does not report is not taken for the right one."""
    wanted = HostNetwork(ipoib=(RAIL,))

    def found(**changes: object) -> list[tuple[str, str, Verdict]]:
        return bad(wanted, ObservedNetwork((replace(ON_RAIL, **changes),), ()))

    assert found() == []
    assert found(ipoib_mode="datagram") == [("rail0", "the IPoIB interface is in another mode", FAIL)]
    assert found(ipoib_mode="") == [("rail0", "the host does not report the mode", INCONCLUSIVE)]
    assert found(carrier=False) == [("rail0", "the IPoIB interface has no link", FAIL)]
    assert bad(wanted, ObservedNetwork((), ()))[0][1] == "the host has no IPoIB interface rail0"


def test_what_the_site_does_not_name_is_not_judged() -> None:
    """Other ports, their addresses, and containers' bridges are ignored."""
    wanted = HostNetwork(ports=(HostPort(BOOT, "mgmt0", Addressing(("10.20.0.17/16",))),))
    docker = HostNetworkInterface("docker0", "02:42:00:00:00:01", 1500, False, ("172.17.0.1/16",))
    seen = replace(recorded(), interfaces=(*recorded().interfaces, docker), routes=(), servers=("9.9.9.9",))
    assert bad(wanted, seen) == []


def test_a_port_is_known_by_the_mac_burnt_in() -> None:
    """A bond lends its MAC to its members, and a VLAN shows the MAC of what it lies on."""
    seen = recorded()
    assert [one.name for one in (seen.port(FIRST), seen.port(SECOND), seen.port(BOOT)) if one] == [
        "data0",
        "enp0s3",
        "mgmt0",
    ]
    assert seen.port("62:36:38:26:13:f7") is None

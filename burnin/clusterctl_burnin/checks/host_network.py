"""host_network: addresses, MTU, bonds, VLANs, IPoIB, routes and name servers are as the site wants them."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.finding import Finding, not_applicable
from clusterctl.fleet.network.findings import CHECK as NAME
from clusterctl.fleet.network.findings import judge_network
from clusterctl.fleet.network.host_network import HostNetwork, ObservedNetwork
from clusterctl.formats.host.network import Resolver, parse_default_routes, parse_ip_addr, parse_resolv_conf
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

ADDRESSES = Probe("ip_addr", ("ip", "-j", "-d", "addr"))
ROUTES = Probe("ip_route", ("ip", "-j", "route", "show", "default"), timeout=3.0)
ROUTES_6 = Probe("ip_route_6", ("ip", "-j", "-6", "route", "show", "default"), timeout=3.0)
RESOLVER = Probe("resolv_conf", ("cat", "/etc/resolv.conf"), timeout=3.0)
RESOLVED = Probe("resolved_conf", ("cat", "/run/systemd/resolve/resolv.conf"), timeout=3.0)
"""The name servers of systemd-resolved; it exits 1 where that does not run."""
_STUBS = frozenset({"127.0.0.53", "127.0.0.54"})
"""systemd-resolved itself (systemd-resolved.service(8))."""


def _judge(readings: Readings, expected: Expected) -> Iterable[Finding]:
    wanted = expected.network
    if not isinstance(wanted, HostNetwork):
        raise UnmeasuredError(f"the planned network of the host is unknown: {wanted.message}", remedy=wanted.remedy)
    if not wanted:
        return (not_applicable(NAME, "the site does not describe this host's network"),)
    resolver = _resolver(readings) if wanted.nameservers or wanted.search else Resolver()
    routes = *parse_default_routes(readings.text(ROUTES)), *parse_default_routes(readings.text(ROUTES_6))
    seen = ObservedNetwork(parse_ip_addr(readings.text(ADDRESSES)), routes, resolver.servers, resolver.search)
    return judge_network(wanted, seen)


def _resolver(readings: Readings) -> Resolver:
    own = parse_resolv_conf(readings.text(RESOLVER))
    return parse_resolv_conf(readings.text(RESOLVED)) if _STUBS & {*own.servers} else own


CHECK = Check(NAME, (ADDRESSES, ROUTES, ROUTES_6, RESOLVER, RESOLVED), _judge, area=Area.NETWORK)

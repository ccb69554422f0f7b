"""A network of the site's own for one of the machines, and what the host makes of it."""

from __future__ import annotations

from clusterctl.edges.site import load_site
from clusterctl.edges.site.host_networks import host_networks
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.network.findings import judge_network
from clusterctl.fleet.network.host_network import ObservedNetwork
from clusterctl.formats.host.network import parse_default_routes, parse_ip_addr, parse_resolv_conf
from lab.tests.lab_kit import RunningLab
from tests.metal.install_kit import MetalSite

SECTION = """
network:
  nameservers: [{base}.0.53]
  search: [cluster.example]
  rules:
    - nodes: [{node}]
      ports:
        - {{name: mgmt0, port: boot, address: sheet, network: {base}.0.0/16, gateway: {base}.255.254, mtu: 1400}}
"""
"""Of which DHCP would give nothing but the address."""


def want_network(lab: RunningLab, node: str) -> None:
    """Set the site's network of the node from now on; its address stays that of the sheet."""
    base = ".".join(lab.machine(node)["address"].split(".")[:2])
    with (lab.site / "site.yml").open("a") as file:
        file.write(SECTION.format(base=base, node=node))


def network_findings(metal: MetalSite, node: str) -> tuple[Finding, ...]:
    """Return the check's finding on the host's report."""
    wanted = host_networks(load_site(metal.lab.site)).network(metal.node(node))
    routes = (metal.ssh(node, "ip", "-j", *family, "route", "show", "default") for family in ((), ("-6",)))
    resolver = parse_resolv_conf(metal.ssh(node, "cat", "/etc/resolv.conf"))
    seen = ObservedNetwork(
        parse_ip_addr(metal.ssh(node, "ip", "-j", "-d", "addr")),
        tuple(route for text in routes for route in parse_default_routes(text)),
        resolver.servers,
        resolver.search,
    )
    return judge_network(wanted, seen)

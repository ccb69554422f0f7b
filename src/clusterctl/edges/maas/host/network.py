"""Findings about the provisioning network in MAAS: DHCP, enough addresses, gateway and names."""

from __future__ import annotations

from clusterctl.edges.maas.host.questions import Questions
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok, warn
from clusterctl.formats.maas.region import Subnet

NOT_HOSTS = 2
"""Network and broadcast address."""


def dhcp(host: Questions) -> Diagnosis:
    name = "maas_dhcp"
    without = [subnet for subnet in host.subnets if not subnet.dhcp]
    if without or not host.subnets:
        where = named(without) or "any VLAN"
        return broken(
            name,
            f"MAAS serves no DHCP on {where}: no machine can boot from the network",
            "maas PROFILE ipranges create subnet=ID type=dynamic start_ip=… end_ip=…, then "
            "maas PROFILE vlan update FABRIC VID dhcp_on=True primary_rack=ID",
        )
    foreign = [f"{subnet.foreign_dhcp} on {subnet.vlan}" for subnet in host.subnets if subnet.foreign_dhcp]
    if foreign:
        return warn(name, f"another DHCP server answers: {', '.join(foreign)}", "switch it off on that VLAN")
    return ok(name, f"MAAS serves DHCP on {named(host.subnets)}")


def addresses(host: Questions) -> Diagnosis:
    """A machine that boots from the network takes an address of the dynamic range; an installed one has one of
    the rest.
    """
    name, nodes, at_once = "maas_addresses", host.wanted.nodes, min(host.wanted.at_once, host.wanted.nodes)
    ids = {subnet.id for subnet in host.subnets}
    ranges = [item for item in host.ranges if item.subnet in ids]
    dynamic = sum(item.count for item in ranges if item.dynamic)
    total = sum(subnet.network.num_addresses - NOT_HOSTS for subnet in host.subnets if subnet.managed)
    rest = max(total - sum(item.count for item in ranges), 0)
    said = f"{dynamic} addresses for machines that boot, {rest} for installed ones; the site has {nodes} nodes"
    if dynamic < at_once:
        return broken(
            name,
            f"{said}, {at_once} of them at once",
            "maas PROFILE ipranges create subnet=ID type=dynamic start_ip=… end_ip=…, as large as the site",
        )
    if rest < nodes:
        return broken(name, said, "make the subnet larger, or the ranges in it smaller")
    if dynamic < nodes:
        return warn(name, said, "a lease outlives its boot by minutes: make the dynamic range as large as the site")
    return ok(name, said)


def routes(host: Questions) -> Diagnosis:
    name = "maas_subnet"
    stranded = [subnet for subnet in host.subnets if not subnet.gateway]
    if stranded:
        return warn(
            name,
            f"{named(stranded)} has no gateway: installed machines reach nothing beyond it",
            "maas PROFILE subnet update CIDR gateway_ip=ADDRESS, where that is not meant",
        )
    nameless = [subnet for subnet in host.subnets if not subnet.nameservers]
    if nameless and not host.setting("upstream_dns"):
        return warn(
            name,
            f"{named(nameless)} has no name servers and MAAS no upstream DNS: names beyond MAAS are not found",
            "maas PROFILE maas set-config name=upstream_dns value=ADDRESS",
        )
    gateways = ", ".join(subnet.gateway for subnet in host.subnets)
    return ok(name, f"gateway {gateways}" if gateways else "no subnet to look at")


def named(subnets: tuple[Subnet, ...] | list[Subnet]) -> str:
    return ", ".join(f"{subnet.network} ({subnet.vlan})" for subnet in subnets)

"""Which machines wait for each other when they are switched on: those of one rack or PDU, whoever switches them on."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl.edges.redfish import PowerOnStagger
from clusterctl.edges.site import Site
from clusterctl.fleet.stagger import Stagger


def stagger(site: Site) -> Stagger:
    said = site.settings.power.stagger
    return Stagger(said.at_once, said.seconds)


def group_of(site: Site) -> Callable[[str], str]:
    """By a BMC's address the rack or PDU of its machine; those of which nobody has told it are one group."""
    per = site.settings.power.stagger.per
    if per == "site":
        return lambda _host: ""
    groups = {node.bmc: node.pdu if per == "pdu" else node.rack for node in site.nodes}
    return lambda host: groups.get(host, "")


def power_on_stagger(site: Site) -> PowerOnStagger:
    return PowerOnStagger(stagger(site), group_of(site))

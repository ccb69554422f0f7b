"""Which machines wait for each other when they are switched on: those of one rack, whoever switches them on."""

from __future__ import annotations

from collections.abc import Callable

from clusterctl.edges.redfish import Turns
from clusterctl.edges.site import Site
from clusterctl.fleet.stagger import Stagger


def stagger(site: Site) -> Stagger:
    said = site.settings.power.stagger
    return Stagger(said.at_once, said.seconds)


def group_of(site: Site) -> Callable[[str], str]:
    """By a BMC's address the rack of its machine; those whose rack nobody has told are one group."""
    if site.settings.power.stagger.per == "site":
        return lambda _host: ""
    racks = {node.bmc: node.rack for node in site.nodes}
    return lambda host: racks.get(host, "")


def turns(site: Site) -> Turns:
    return Turns(stagger(site), group_of(site))

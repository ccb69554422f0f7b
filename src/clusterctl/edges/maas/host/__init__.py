"""Checks whether the MAAS host is ready to install this site's machines. Reads only."""

from clusterctl.edges.maas.host.checks import HostReport, check_host
from clusterctl.edges.maas.host.facts import HostFacts, SiteNeeds

__all__ = ["HostFacts", "HostReport", "SiteNeeds", "check_host"]

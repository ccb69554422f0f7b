"""BMCs over Redfish."""

from clusterctl.edges.redfish.client import RedfishBmcs
from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.power import Turns
from clusterctl.edges.redfish.session import Pace

__all__ = ["KnownBmcs", "Pace", "RedfishBmcs", "Turns"]

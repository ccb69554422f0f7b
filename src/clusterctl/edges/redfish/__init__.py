"""BMCs over Redfish."""

from clusterctl.edges.redfish.client import RedfishBmcs
from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.power import PowerOnStagger, at_once
from clusterctl.edges.redfish.timing import Timing

__all__ = ["KnownBmcs", "PowerOnStagger", "RedfishBmcs", "Timing", "at_once"]

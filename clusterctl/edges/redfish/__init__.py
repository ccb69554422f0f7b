"""BMCs over Redfish."""

from clusterctl.edges.redfish.client import RedfishBmcs
from clusterctl.edges.redfish.session import Pace

__all__ = ["Pace", "RedfishBmcs"]

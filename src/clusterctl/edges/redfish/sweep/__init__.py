"""Finding BMCs without being told where or whose they are."""

from clusterctl.edges.redfish.sweep.knock import Door
from clusterctl.edges.redfish.sweep.round import Found, Progress, sweep
from clusterctl.edges.redfish.sweep.visit import Visitor

__all__ = ["Door", "Found", "Progress", "Visitor", "sweep"]

"""Finding BMCs without being told where or whose they are."""

from clusterctl.edges.redfish.sweep.candidate import Visitor
from clusterctl.edges.redfish.sweep.port_scan import Door
from clusterctl.edges.redfish.sweep.scan import Found, Progress, sweep

__all__ = ["Door", "Found", "Progress", "Visitor", "sweep"]

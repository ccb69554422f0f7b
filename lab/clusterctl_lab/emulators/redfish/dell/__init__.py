"""Dell iDRAC9, as recorded from a PowerEdge R750 (iDRAC 6.00.30.00, Redfish 1.13.1), for the lab's XE9680.

Every property exists in the recording, at the same place and with the same type; `test_shape.py` lists the exceptions
with their DMTF schema. Links lead only to resources that are served.
"""

from clusterctl_lab.emulators.redfish.dell.profile import DELL

__all__ = ["DELL"]

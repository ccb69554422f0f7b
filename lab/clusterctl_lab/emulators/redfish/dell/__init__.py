"""Dell iDRAC9, as recorded from a PowerEdge R750 (iDRAC 6.00.30.00, Redfish 1.13.1), for the lab's XE9680.

Every property is one that the recording has, at the same place and of the same type; what it lacks is named in
`test_shape.py` with the DMTF schema that it follows. Links lead only to resources that are served.
"""

from clusterctl_lab.emulators.redfish.dell.profile import DELL

__all__ = ["DELL"]

"""HPE iLO 5, as recorded from a ProLiant DL385 Gen10 Plus v2 (iLO 5 v2.72, Redfish 1.6.0), for an eight-GPU ProLiant.

Health is null on network cards; PCI ids are decimal; each NVMe drive has its own storage; cards of the base board are
Ethernet interfaces only. `test_vendor_shapes.py` lists properties that the recording lacks.
"""

from clusterctl_lab.emulators.redfish.hpe.profile import HPE

__all__ = ["HPE"]

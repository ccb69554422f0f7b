"""HPE iLO 5, as recorded from a ProLiant DL385 Gen10 Plus v2 (iLO 5 v2.72, Redfish 1.6.0), for an eight-GPU ProLiant.

Health is null on network cards; PCI ids are decimal; each NVMe drive has a storage of its own; cards of the base board
are Ethernet interfaces and nothing else. What the recording lacks is named in `test_vendor_shapes.py`.
"""

from clusterctl_lab.emulators.redfish.hpe.profile import HPE

__all__ = ["HPE"]

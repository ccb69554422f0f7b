"""Supermicro's BMC, as recorded from a SYS-821GE-TNHR (BMC 11.01.01, Redfish 1.11.0): eight H100, eight ConnectX-7.

GPUs are PCIe devices and nothing else; HCAs show as Ethernet adapters, without GUID; drives hang below a chassis whose
collection of drives is empty. What the recording lacks is named in `test_vendor_shapes.py` with its source.
"""

from clusterctl_lab.emulators.redfish.supermicro.profile import SUPERMICRO

__all__ = ["SUPERMICRO"]

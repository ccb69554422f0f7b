"""The BMC of an NVIDIA DGX H100: AMI's for the host (MegaRAC SP-X, Redfish 1.11.0), which passes on what NVIDIA's
OpenBMC reports about the HGX board: a second system with the GPUs, and a chassis for each of them.

The shapes follow a DGX H100 recorded by NVIDIA (NVIDIA/libredfish, tests/mockups/nvidia_viking) and NVIDIA's user guide
of the DGX H100, "Redfish APIs Support". In that recording the drives report nothing about themselves and the power
supplies have no status; what they have here is from the DMTF's schemas.
"""

from clusterctl_lab.emulators.redfish.openbmc.profile import OPENBMC

__all__ = ["OPENBMC"]

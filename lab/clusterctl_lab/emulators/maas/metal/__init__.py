"""The lab's MAAS as a boot server for machines with their own firmware: DHCP, TFTP, iPXE scripts, and the protocol of
the booted machine. The machines run the deployer of the boot folder, started by iPXE.
"""

from clusterctl_lab.emulators.maas.metal.boot_files import read_boot_files
from clusterctl_lab.emulators.maas.metal.service import MetalNetboot, Netting, serve_netboot

__all__ = ["MetalNetboot", "Netting", "read_boot_files", "serve_netboot"]

"""How the lab's MAAS boots machines that have a firmware of their own: DHCP, TFTP, iPXE scripts, and what the booted
machine tells and is told. What runs on them is the deployer of the boot folder, started by iPXE.
"""

from clusterctl_lab.emulators.maas.metal.boot_files import read_boot_files
from clusterctl_lab.emulators.maas.metal.service import MetalNetboot, Netting, serve_netboot

__all__ = ["MetalNetboot", "Netting", "read_boot_files", "serve_netboot"]

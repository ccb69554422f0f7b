"""The lab's InfiniBand fabric: ibsim simulates the cables, OpenSM manages the subnet, the real tools read it."""

from clusterctl_lab.emulators.fabric.emulator import LabFabric
from clusterctl_lab.emulators.fabric.topology import trunks

__all__ = ["LabFabric", "trunks"]

"""The lab's InfiniBand fabric: ibsim carries the machines' cables, OpenSM runs it, the real tools read it."""

from clusterctl_lab.emulators.fabric.emulator import LabFabric
from clusterctl_lab.emulators.fabric.topology import trunks

__all__ = ["LabFabric", "trunks"]

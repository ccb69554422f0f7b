"""The lab's InfiniBand fabric: ibsim carries the machines' cables, OpenSM runs it, the real tools read it."""

from clusterctl.lab.faces.fabric.face import LabFabric
from clusterctl.lab.faces.fabric.topology import trunks

__all__ = ["LabFabric", "trunks"]

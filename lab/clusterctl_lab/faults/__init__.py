"""What can be wrong with a machine of the lab. Each fault is a function Machine → Machine; one module per subject."""

from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.faults.registry import FAULTS, find, inject, inject_all, machine_named, partners

__all__ = ["FAULTS", "Fault", "find", "inject", "inject_all", "machine_named", "partners"]

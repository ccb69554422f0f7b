"""What can be wrong with a machine of the lab. Each fault is one file and one function Machine → Machine."""

from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.faults.registry import FAULTS, find, inject, inject_all, machine_named, partners

__all__ = ["FAULTS", "Fault", "find", "inject", "inject_all", "machine_named", "partners"]

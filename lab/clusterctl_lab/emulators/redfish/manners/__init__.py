"""How a BMC misbehaves (`Manner`, data on the machine): one file each. A client should cope with nearly all of them."""

from clusterctl_lab.emulators.redfish.manners.habit import Certificate, Habit
from clusterctl_lab.emulators.redfish.manners.registry import HABITS, Habits, certificate_of

__all__ = ["HABITS", "Certificate", "Habit", "Habits", "certificate_of"]

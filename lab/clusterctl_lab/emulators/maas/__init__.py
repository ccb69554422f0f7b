"""The lab's MAAS 3.4: the API that installers use, its states and refusals, in front of the lab's machines.

It switches machines through their BMCs by Redfish and hears of them when they boot from the network; it is measured
against recorded exchanges with a real MAAS 3.4.10 (`lab/tests/emulators/maas/test_replay.py`).
"""

from clusterctl_lab.emulators.maas.faults import Failure, Faults
from clusterctl_lab.emulators.maas.server import LabMaas, serve_maas

__all__ = ["Failure", "Faults", "LabMaas", "serve_maas"]

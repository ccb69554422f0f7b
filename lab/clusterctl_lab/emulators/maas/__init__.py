"""The lab's MAAS 3.4: the API that installers use, its states and errors, in front of the lab's machines.

It switches machines through their BMCs by Redfish and receives an event when they boot from the network.
`lab/tests/emulators/maas/test_replay.py` compares it with recorded exchanges with a real MAAS 3.4.10.
"""

from clusterctl_lab.emulators.maas.faults import Failure, Faults
from clusterctl_lab.emulators.maas.server import LabMaas, serve_maas

__all__ = ["Failure", "Faults", "LabMaas", "serve_maas"]

"""The lab's BMCs: one Redfish service per machine, each on its own address with its own certificate.

`bmc.py` implements the protocol (DMTF DSP0266) and `services/` the operations. A profile (`dell/`) defines the
contents, behaviour and error messages of a vendor's service. Another vendor is another profile; `quirks/` are
deviations that any of them may have.
"""

from clusterctl_lab.emulators.redfish.server import BmcServers, Serving, serve_bmcs

__all__ = ["BmcServers", "Serving", "serve_bmcs"]

"""The lab's BMCs: one Redfish service per machine, each on its own address with its own certificate.

`bmc.py` speaks the protocol (DMTF DSP0266), a profile (`dell/`) says what a vendor's service contains and how it words
its errors. Another vendor is another profile.
"""

from clusterctl.lab.faces.redfish.server import BmcServers, serve_bmcs

__all__ = ["BmcServers", "serve_bmcs"]

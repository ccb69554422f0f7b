"""The lab's BMCs: one Redfish service per machine, each on its own address with its own certificate.

`bmc.py` speaks the protocol (DMTF DSP0266), `services/` do what can be asked of it, a profile (`dell/`) says what a
vendor's service contains, how it behaves and how it words its errors. Another vendor is another profile; `quirks/` are
what any of them may do wrong.
"""

from clusterctl_lab.emulators.redfish.server import BmcServers, Serving, serve_bmcs

__all__ = ["BmcServers", "Serving", "serve_bmcs"]

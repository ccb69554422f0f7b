"""How the lab marks what it emulates: whoever collects evidence from it sees that the evidence is simulated."""

from __future__ import annotations

HOST_FILE = "/etc/clusterctl/simulated"
"""On every lab host and virtual machine."""
HOST_FILE_TEXT = "simulated\n"
BMC_OEM = {"Clusterctl": {"Simulated": True}}
"""In `Oem` of every emulated BMC's service root."""
HTTP_HEADERS = {"Clusterctl-Simulated": "true"}
"""In every response of the emulated MAAS."""

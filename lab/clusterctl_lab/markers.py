"""The marker of everything that the lab emulates: its evidence is recognised as simulated."""

from __future__ import annotations

HOST_FILE = "/etc/clusterctl/simulated"
"""On every lab host and virtual machine."""
HOST_FILE_TEXT = "simulated\n"
BMC_OEM = {"Clusterctl": {"Simulated": True}}
"""In `Oem` of every emulated BMC's service root."""
HTTP_HEADERS = {"Clusterctl-Simulated": "true"}
"""In every response of the emulated MAAS."""

"""mlxlink: `-d HCA -m --json`, the module in an adapter's port.

The document has the shape of a published one for an OSFP module in a ConnectX-8 (values with their ranges, lane by
lane). The part is NVIDIA's twin-port OSFP transceiver for NDR, MMA4Z00-NS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Hca, load

LANES = 4
NOTHING = "N/A"


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if len(words) != 4 or words[0] != "-d" or words[2:] != ["-m", "--json"]:
        sys.stderr.write("the lab's mlxlink knows -d HCA -m --json\n")
        return 1
    hca = next((each for each in load().hcas if each.name == words[1]), None)
    if hca is None:
        sys.stderr.write(f"-E- Failed to open device: {words[1]}\n")
        return 1
    module = {"Module Info": _module(hca) if hca.plugged else _none()}
    json.dump({"result": {"output": module}, "status": {"code": 0, "message": "success"}}, sys.stdout, indent="\t")
    return 0


def _module(hca: Hca) -> dict[str, object]:
    lanes = ",".join([f"{hca.rx_dbm:g}"] * LANES)
    return {
        "Cable Type": "Optical Module (separated)",
        "FW Version": hca.module_firmware,
        "Identifier": "OSFP",
        "Rx Power Current [dBm]": f"{lanes} [-8..6]",
        "Temperature [C]": "48 [-5..75]",
        "Tx Power Current [dBm]": f"{','.join(['2'] * LANES)} [-6..6]",
        "Vendor Name": "NVIDIA",
        "Vendor Part Number": "MMA4Z00-NS          ",
        "Vendor Serial Number": f"MT{hca.lid:08d}",
        "Voltage [mV]": "3273.6 [2970..3630]",
    }


def _none() -> dict[str, object]:
    names = ("Cable Type", "Identifier", "Rx Power Current [dBm]", "Temperature [C]", "Tx Power Current [dBm]")
    return dict.fromkeys((*names, "Vendor Name", "Vendor Part Number", "Vendor Serial Number"), NOTHING)

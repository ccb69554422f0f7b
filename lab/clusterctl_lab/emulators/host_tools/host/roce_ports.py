"""roce-ports: what each adapter in Ethernet mode needs for RoCE.

Stands in for the burn-in's program of that name, which reads /sys/class/infiniband: hosts in namespaces have no
adapters. The GID is that of the rail interface's IPv4 address; priority 3 has flow control and ECN.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Hca, load
from clusterctl_lab.emulators.host_tools.host.ib_write_bw import ipv4_address

MTU = 4200
GID_INDEX = 3
LOSSLESS = 3


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's roce-ports takes no argument\n")
        return 2
    json.dump({"ports": [_port(hca) for hca in load().hcas if hca.ethernet]}, sys.stdout)
    return 0


def _port(hca: Hca) -> dict[str, object]:
    try:
        octets = [int(octet) for octet in ipv4_address(hca.interface).split(".")]
    except OSError:
        octets = []
    gids = [_gid(hca, octets)] if octets else []
    port = {"name": hca.name, "interface": hca.interface, "mtu": MTU}
    return {**port, "gids": gids, "pfc": [LOSSLESS] if hca.lossless else [], "ecn": [LOSSLESS]}


def _gid(hca: Hca, octets: Sequence[int]) -> dict[str, object]:
    high, low = octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]
    gid = f"0000:0000:0000:0000:0000:ffff:{high:04x}:{low:04x}"
    return {"index": GID_INDEX, "gid": gid, "kind": "RoCE v2", "interface": hca.interface}

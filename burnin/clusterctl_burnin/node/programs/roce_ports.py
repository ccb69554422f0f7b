"""Runs on a node, as the built-in probe `roce-ports`: what each adapter in Ethernet mode needs for RoCE.

Standard library only, Python 3.9. The kernel reports the GIDs with their kinds and network interfaces
(Documentation/ABI/testing/sysfs-class-infiniband), and the interface's MTU. Flow control and ECN by priority are
reported where a tool or driver has them: `dcb` (iproute2), or the mlx5 driver of NVIDIA's OFED in
/sys/class/net/IF/ecn.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

from clusterctl_burnin.node.processes import Result
from clusterctl_burnin.node.processes import ask as ask_tool

DEVICES = Path("/sys/class/infiniband")
INTERFACES = Path("/sys/class/net")
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"

Ask = Callable[..., Result]


def text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, ValueError):
        return None


def gids(port: Path) -> list[dict[str, Any]]:
    """Return the GIDs that are set, by their index."""
    found = []
    for entry in sorted((port / "gids").glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else -1):
        gid = text(entry)
        if entry.name.isdigit() and gid and gid != NO_GID:
            attributes = port / "gid_attrs"
            kind, interface = text(attributes / "types" / entry.name), text(attributes / "ndevs" / entry.name)
            found.append({"index": int(entry.name), "gid": gid, "kind": kind, "interface": interface})
    return found


def priorities(folder: Path) -> list[int] | None:
    """Return the priorities for which the driver's ECN is on; None where it does not report them."""
    if not folder.is_dir():
        return None
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit() and text(file) == "1")


def flow_control(interface: str, ask: Ask) -> list[int] | None:
    """Return the priorities with PFC, from `dcb -j pfc show`; None where it cannot be read."""
    code, out, _ = ask("dcb", "-j", "pfc", "show", "dev", interface)
    try:
        switches = json.loads(out)["prio_pfc"] if code == 0 else None
        return None if switches is None else sorted(prio for prio, on in enumerate(switches) if on)
    except (ValueError, KeyError, TypeError):
        return None


def port_of(name: str, port: Path, ask: Ask) -> dict[str, Any]:
    found = gids(port)
    interface = next((gid["interface"] for gid in found if gid["interface"]), None)
    folder = INTERFACES / interface if interface else None
    return {
        "name": name,
        "interface": interface,
        "mtu": text(folder / "mtu") if folder else None,
        "gids": found,
        "pfc": flow_control(interface, ask) if interface else None,
        "ecn": priorities(folder / "ecn" / "roce_np" / "enable") if folder else None,
    }


def main(ask: Ask, devices: Path = DEVICES) -> None:
    """Print `{"ports": [{name, interface, mtu, gids, pfc, ecn}]}` of all ports with link layer Ethernet."""
    folders = sorted(devices.iterdir()) if devices.is_dir() else []
    ports = [
        port_of(folder.name, folder / "ports" / "1", ask)
        for folder in folders
        if text(folder / "ports" / "1" / "link_layer") == "Ethernet"
    ]
    json.dump({"ports": ports}, sys.stdout)


if __name__ == "__main__":
    main(ask_tool)

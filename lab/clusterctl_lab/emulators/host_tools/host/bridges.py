"""The PCIe switches above this host's adapters and GPUs, and their Access Control Services (ACS) registers.

As on a recorded XE9680: a root port, a switch's port that looks up, and below it a port for the adapter and one for the
GPU. Addresses are counted down from the adapter's bus.
"""

from __future__ import annotations

import json
import os

from clusterctl_lab.emulators.host_tools.host.facts import Facts, Hca, load
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

STATE = os.environ.get("CLUSTERCTL_LAB_ACS", "/run/clusterctl-lab-acs.json")
AFTER_BOOT = "001d"
"""Source validation, request and completion redirection, upstream forwarding: what Linux sets (pci_enable_acs)."""
OFF = "0000"
LANES = 16


class Bridge:
    """`port` as PCI Express calls it; `behind` to `last`: the buses below; `control` of its ACS, None without."""

    def __init__(
        self, address: str, port: str, behind: int, last: int, lanes: int = LANES, control: str | None = None
    ) -> None:
        self.address, self.port, self.behind, self.last = address, port, behind, last
        self.lanes, self.control = lanes, control


def bridge_of(hca: Hca) -> str:
    """The root port above an adapter, as the kernel spells it."""
    return f"0000:{int(hca.pci[5:7], 16) - 3:02x}:01.0"


def bridges() -> tuple[Bridge, ...]:
    facts = load()
    written = json.loads(text_of(STATE) or "{}")
    hcas = {int(hca.pci[5:7], 16): hca for hca in facts.hcas}
    found = [bridge for bus in sorted(hcas | dict.fromkeys(_buses(facts))) for bridge in _switch(bus, hcas.get(bus))]
    return tuple(_as_written(bridge, written) for bridge in found)


def _buses(facts: Facts) -> list[int]:
    """Return the buses of the adapters next to each GPU."""
    return [int(gpu.address[5:7], 16) - 3 for gpu in facts.gpus]


def _switch(bus: int, hca: Hca | None) -> tuple[Bridge, ...]:
    lanes = hca.switch_width if hca else LANES
    control = AFTER_BOOT if hca and hca.switch_redirects else OFF
    return (
        Bridge(f"0000:{bus - 3:02x}:01.0", "Root Port (Slot-)", bus - 2, bus + 3, lanes, AFTER_BOOT),
        Bridge(f"0000:{bus - 2:02x}:00.0", "Upstream Port", bus - 1, bus + 3, lanes),
        Bridge(f"0000:{bus - 1:02x}:01.0", "Downstream Port (Slot+)", bus, bus, control=control),
        Bridge(f"0000:{bus - 1:02x}:02.0", "Downstream Port (Slot+)", bus + 3, bus + 3, control=control),
    )


def _as_written(bridge: Bridge, written: dict[str, str]) -> Bridge:
    control = bridge.control and written.get(bridge.address, bridge.control)
    return Bridge(bridge.address, bridge.port, bridge.behind, bridge.last, bridge.lanes, control)

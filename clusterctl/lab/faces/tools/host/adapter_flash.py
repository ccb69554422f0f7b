"""What the adapters of this host keep in their flash memory: firmware and settings, in force from the next boot on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clusterctl.lab.faces.tools.host.facts import Hca

STATE = Path(os.environ.get("CLUSTERCTL_LAB_FLASH", "/var/lib/clusterctl-lab/adapters.json"))
BOOT_ID = Path(os.environ.get("CLUSTERCTL_LAB_BOOT_ID", "/proc/sys/kernel/random/boot_id"))
FACTORY = {
    "LINK_TYPE_P1": "IB(1)",
    "KEEP_IB_LINK_UP_P1": "False(0)",
    "LLDP_NB_RX_MODE_P1": "OFF(0)",
    "LLDP_NB_TX_MODE_P1": "OFF(0)",
    "SRIOV_EN": "False(0)",
    "NUM_OF_VFS": "0",
}
"""Of a ConnectX-7, as mstconfig prints them."""


@dataclass(slots=True)
class Flash:
    """One adapter's. `firmware` and `settings` are in force; `burnt` and `changed` will be after the boot `written`.

    Empty firmware is the one that the machine came with.
    """

    firmware: str = ""
    burnt: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    written: str = ""

    def current(self, name: str) -> str:
        return self.settings.get(name, FACTORY[name])

    def next_boot(self, name: str) -> str:
        return self.changed.get(name, self.current(name))


def read(hca: Hca) -> Flash:
    """As it is in this boot: what an earlier boot wrote is in force."""
    raw = _all().get(hca.pci)
    flash = Flash(**raw) if raw is not None else Flash()
    if flash.written != _boot():
        flash.firmware = flash.burnt
        flash.settings, flash.changed = {**flash.settings, **flash.changed}, {}
    return flash


def running(hca: Hca) -> str:
    """The firmware that runs."""
    return read(hca).firmware or hca.firmware


def write(hca: Hca, flash: Flash) -> None:
    """Keep it over the next boot."""
    flash.written = _boot()
    STATE.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    kept = {**_all(), hca.pci: asdict(flash)}
    fresh = STATE.with_suffix(".new")
    fresh.write_text(json.dumps(kept))
    fresh.replace(STATE)


def _all() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(STATE.read_text()) if STATE.exists() else {}
    return found


def _boot() -> str:
    return BOOT_ID.read_text().strip()

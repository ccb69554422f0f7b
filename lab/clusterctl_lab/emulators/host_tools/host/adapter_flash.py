"""The flash memory of this host's adapters: firmware and settings, in force from the next boot."""

from __future__ import annotations

import json
import os

from clusterctl_lab.emulators.host_tools.host.facts import Hca
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATE = os.environ.get("CLUSTERCTL_LAB_FLASH", "/var/lib/clusterctl-lab/adapters.json")
BOOT_ID = os.environ.get("CLUSTERCTL_LAB_BOOT_ID", "/proc/sys/kernel/random/boot_id")
FACTORY = {
    "LINK_TYPE_P1": "IB(1)",
    "KEEP_IB_LINK_UP_P1": "False(0)",
    "LLDP_NB_RX_MODE_P1": "OFF(0)",
    "LLDP_NB_TX_MODE_P1": "OFF(0)",
    "SRIOV_EN": "False(0)",
    "NUM_OF_VFS": "0",
}
"""Of a ConnectX-7, as mstconfig prints them."""


class Flash:
    """One adapter's flash. `firmware` and `settings` are in force; `burnt` and `changed` will be after the boot
    `written`.

    Empty firmware means the firmware that the machine was delivered with.
    """

    def __init__(
        self,
        firmware: str = "",
        burnt: str = "",
        settings: dict[str, str] | None = None,
        changed: dict[str, str] | None = None,
        written: str = "",
    ) -> None:
        self.firmware, self.burnt, self.written = firmware, burnt, written
        self.settings, self.changed = settings or {}, changed or {}

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
    """Write the change so that it survives the next boot."""
    flash.written = _boot()
    os.makedirs(os.path.dirname(STATE), mode=0o755, exist_ok=True)  # noqa: PTH103, PTH120 — see small_files
    kept, fresh = {**_all(), hca.pci: vars(flash)}, f"{STATE}.new"
    with open(fresh, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(kept, file)
    os.replace(fresh, STATE)  # noqa: PTH105


def _all() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(text_of(STATE) or "{}")
    return found


def _boot() -> str:
    return text_of(BOOT_ID).strip()

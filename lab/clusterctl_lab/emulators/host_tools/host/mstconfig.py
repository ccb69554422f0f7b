"""mstconfig: `-e -d PCI query NAME…` and `-y -d PCI set NAME=VALUE…`, for the settings of `adapter_flash`.

Output as of mstflint 4.21 (its tests in k8snetworkplumbingwg/sriov-network-operator, Apache-2.0): three columns, a star
before what differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from clusterctl_lab.emulators.host_tools.host import adapter_flash
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load

_BOOLEAN = ("False(0)", "True(1)")
_LLDP = ("OFF(0)", "MANDATORY(1)", "ALL(2)")
_VALUES: Mapping[str, tuple[str, ...]] = {
    "LINK_TYPE_P1": ("IB(1)", "ETH(2)"),
    "KEEP_IB_LINK_UP_P1": _BOOLEAN,
    "LLDP_NB_RX_MODE_P1": _LLDP,
    "LLDP_NB_TX_MODE_P1": _LLDP,
    "SRIOV_EN": _BOOLEAN,
}
"""Settings with text values; the others are numbers."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mstconfig")
    parser.add_argument("-d", dest="device", required=True)
    parser.add_argument("-e", dest="all_columns", action="store_true")
    parser.add_argument("-y", dest="yes", action="store_true")
    parser.add_argument("command", choices=("q", "query", "s", "set"))
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(argv)
    hca = next((each for each in load().hcas if each.pci == options.device), None)
    if hca is None:
        return _complain("Failed to open the device")
    names = [word.partition("=")[0] for word in options.words]
    if unknown := [name for name in names if name not in adapter_flash.FACTORY]:
        return _complain(f"The Device doesn't support {unknown[0]} parameter")
    if options.command in ("q", "query"):
        return _query(hca, names or sorted(adapter_flash.FACTORY))
    return _set(hca, options.words, sure=options.yes)


def _query(hca: Hca, names: Sequence[str]) -> int:
    flash = adapter_flash.read(hca)
    _head(hca)
    sys.stdout.write(f"Configurations:{'Default':>44}{'Current':>21}{'Next Boot':>23}\n")
    for name in names:
        values = (adapter_flash.FACTORY[name], flash.current(name), flash.next_boot(name))
        star = "*" if len(set(values)) > 1 else " "
        sys.stdout.write(f"{star}       {name:<44}{values[0]:<21}{values[1]:<21}{values[2]:<20}\n")
    return 0


def _set(hca: Hca, words: Sequence[str], *, sure: bool) -> int:
    wanted = {}
    for name, _, value in (word.partition("=") for word in words):
        spelled = _spelled(name, value)
        if spelled is None:
            return _complain(f"Failed to set parameter {name}: {value} is no value of it")
        wanted[name] = spelled
    if not sure:
        return _complain("Apply new Configuration? (y/n) [n] : n")
    flash = adapter_flash.read(hca)
    flash.changed.update(wanted)
    adapter_flash.write(hca, flash)
    _head(hca)
    sys.stdout.write("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
    return 0


def _spelled(name: str, value: str) -> str | None:
    """As it is printed: `1` and `ib` both read `IB(1)`."""
    if name not in _VALUES:
        return value if value.isdigit() else None
    for spelled in _VALUES[name]:
        word, _, number = spelled.rstrip(")").partition("(")
        if value.lower() in (word.lower(), number):
            return spelled
    return None


def _head(hca: Hca) -> None:
    sys.stdout.write(
        "\nDevice #1:\n----------\n\nDevice type:    ConnectX7       \nName:           MCX75310AAS-NEA_Ax\n"
        "Description:    NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP; "
        f"PCIe 5.0 x16\nDevice:         {hca.pci}    \n\n"
    )


def _complain(words: str) -> int:
    sys.stderr.write(f"-E- {words}\n")
    return 3

"""How HPE derives a machine's identities."""

from __future__ import annotations

from clusterctl_lab.machine import Hca, Machine

PRODUCT = "P38411-B21"
_SERIAL_LENGTH = 10


def uuid(machine: Machine) -> str:
    """Six characters of the product number and ten of the serial, as recorded (P38411-B21, MXQ302099S →
    34383350-3131-584D-5133-303230393953): ASCII, the first three groups byte-swapped.
    """
    raw = (PRODUCT[:6] + machine.serial.ljust(_SERIAL_LENGTH, "0")[:_SERIAL_LENGTH]).encode("ascii")
    groups = (raw[3::-1], raw[5:3:-1], raw[7:5:-1], raw[8:10], raw[10:])
    return "-".join(group.hex() for group in groups).upper()


def host_name(machine: Machine) -> str:
    """The default name of an iLO is made of the server's serial."""
    return f"ILO{machine.serial}"


def guid(hca: Hca) -> str:
    """In groups of four, as recorded: `88e9:a4ff:ff87:42c8`."""
    return ":".join(hca.guid[i : i + 4] for i in range(0, len(hca.guid), 4))


def hca_mac(hca: Hca) -> str:
    """The port's Ethernet address: the maker's three bytes and the last three of its GUID."""
    digits = hca.guid[:6] + hca.guid[-6:]
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))


def padded(text: str) -> str:
    """Return the field padded with blanks to 15 characters, as PCIe devices report it."""
    return text.ljust(15)

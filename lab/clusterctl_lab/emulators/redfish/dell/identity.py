"""How Dell derives a machine's identities from its service tag."""

from __future__ import annotations

from clusterctl_lab.machine import Machine

_TAG_LENGTH = 7


def serial_number(machine: Machine) -> str:
    """The board's serial number: not the service tag, which is in `SKU`."""
    return f"CNLAB{machine.index:09d}"


def uuid(machine: Machine) -> str:
    """The system UUID, the tag's seven characters woven in as the recording shows (F54P1G3 → 4c4c4544-0035-3410-…)."""
    first, *rest = machine.serial.encode("ascii").ljust(_TAG_LENGTH, b"0")[:_TAG_LENGTH]
    tag = [f"{byte:02x}" for byte in rest]
    return f"4c4c4544-00{tag[0]}-{tag[1]}10-80{tag[2]}-{first | 0x80:02x}c04f{tag[3]}{tag[4]}{tag[5]}"


def padded(serial: str) -> str:
    """Return the serial padded with blanks to 29 characters, as adapters report it (recorded:
    NetworkAdapters/NIC.Slot.5).
    """
    return serial.ljust(29)

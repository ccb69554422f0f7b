"""The report that `commission.sh` of a booted machine sends. Pure."""

from __future__ import annotations

from dataclasses import dataclass

KIB_OF_MIB = 1024
_FIELDS = 6


@dataclass(frozen=True, slots=True)
class FoundDisk:
    """`path` as `/dev/nvme0n1`, `size` in bytes; `readable`: its beginning is readable."""

    path: str
    serial: str
    wwn: str
    size: int
    model: str
    readable: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class MachineReport:
    """By SMBIOS and the kernel. `memory_mib` is what the kernel has to give, some less than the machine's."""

    serial: str
    uuid: str
    manufacturer: str
    product: str
    bios: str
    cpus: int
    memory_mib: int
    macs: tuple[str, ...]
    disks: tuple[FoundDisk, ...]


def parse(text: str) -> MachineReport:
    """Raises `ValueError` for what is no report."""
    alone: dict[str, str] = {}
    macs: list[str] = []
    disks: list[FoundDisk] = []
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "mac":
            macs.append(value.strip().lower())
        elif name == "disk":
            disks.append(_disk(value))
        else:
            alone[name] = value.strip()
    missing = {"serial", "cpus", "memory"} - alone.keys()
    if missing:
        raise ValueError(f"a report without {', '.join(sorted(missing))}")
    return MachineReport(
        alone["serial"],
        alone.get("uuid", "").lower(),
        alone.get("manufacturer", ""),
        alone.get("product", ""),
        alone.get("bios", ""),
        int(alone["cpus"]),
        int(alone["memory"]) // KIB_OF_MIB,
        tuple(macs),
        tuple(disks),
    )


def _disk(value: str) -> FoundDisk:
    fields = [field.strip() for field in value.split("\t")]
    if len(fields) != _FIELDS or not fields[0].startswith("/dev/"):
        raise ValueError(f"no disk: {value[:80]!r}")
    path, serial, wwn, size, model, readable = fields
    return FoundDisk(path, serial, wwn, int(size), model, readable == "readable")

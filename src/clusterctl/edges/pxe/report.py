"""What a machine tells of itself before anything is written, and whether it may be written. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.hardware.disk_contract import DiskContract, SeenDrive, same_identity
from clusterctl.fleet.node import Serial

MOST_LINES = 4096
_DISK_FIELDS = 6
_ALONE = frozenset({"serial", "uuid", "manufacturer", "product", "clock"})


@dataclass(frozen=True, slots=True)
class MachineReport:
    """By SMBIOS and the kernel of the installer. `clock` is the machine's own, in seconds since 1970."""

    serial: str
    uuid: str = ""
    manufacturer: str = ""
    product: str = ""
    macs: tuple[str, ...] = ()
    drives: tuple[SeenDrive, ...] = ()
    clock: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the machine must not be written."""

    why: str


def parse(text: str) -> MachineReport:
    """Lines `name=value` as probe.sh prints them; names that nobody knows are left out. Raises `ParseError`."""
    lines = text.replace("\r", "").split("\n")
    if len(lines) > MOST_LINES:
        raise ParseError("the report is too long")
    alone: dict[str, str] = {}
    macs: list[str] = []
    drives: list[SeenDrive] = []
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals and line.strip():
            raise ParseError(f"no line of a report: {line[:80]!r}")
        if name == "mac":
            macs.append(value.strip().lower())
        elif name == "disk":
            drives.append(_drive(value))
        elif name in _ALONE:
            if name in alone:
                raise ParseError(f"the report tells {name} twice")
            alone[name] = value.strip()
    if "serial" not in alone:
        raise ParseError("the report tells no serial")
    return MachineReport(
        alone["serial"],
        alone.get("uuid", ""),
        alone.get("manufacturer", ""),
        alone.get("product", ""),
        tuple(macs),
        tuple(drives),
        _whole(alone["clock"]) if alone.get("clock") else None,
    )


def judge(report: MachineReport, serial: Serial, disk: DiskContract) -> SeenDrive | Refusal:
    """The drive that may be overwritten: only where the machine is the one that is meant, and one drive alone fits."""
    if not same_identity(report.serial, serial):
        return Refusal(
            f"the machine that booted says that its serial is {report.serial or 'unknown'}, its BMC says {serial}"
        )
    try:
        return disk.choose(report.drives)
    except EdgeError as error:
        return Refusal(error.message)


def _drive(value: str) -> SeenDrive:
    fields = [part.strip() for part in value.split("\t")]
    if len(fields) != _DISK_FIELDS or not fields[0].startswith("/dev/"):
        raise ParseError(f"a disk of a report has {_DISK_FIELDS} fields, parted by tabs: {value[:80]!r}")
    path, serial, wwn, size, model, fingerprint = fields
    return SeenDrive(path, serial, wwn, model, _whole(size), fingerprint)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ParseError(f"no whole number: {text[:40]!r}")
    return int(text)
